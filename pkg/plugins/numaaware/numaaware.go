// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package numaaware is the plugin NUMAAware: pods that get CPUs for themselves go to nodes whose kubelet can give them CPUs that
// are near each other.
package numaaware

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/helper"

	"github.com/caldera-scheduler/caldera/pkg/gang"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/model/informer"
	"github.com/caldera-scheduler/caldera/pkg/plugins/names"
	"github.com/caldera-scheduler/caldera/pkg/topology/numa"
)

// NUMAAware keeps pods off nodes whose topology manager would refuse them.
type NUMAAware struct {
	layouts *layouts
}

var (
	_ fwk.PreFilterPlugin   = &NUMAAware{}
	_ fwk.FilterPlugin      = &NUMAAware{}
	_ fwk.PreScorePlugin    = &NUMAAware{}
	_ fwk.ScorePlugin       = &NUMAAware{}
	_ fwk.ScoreExtensions   = &NUMAAware{}
	_ fwk.SignPlugin        = &NUMAAware{}
	_ fwk.EnqueueExtensions = &NUMAAware{}
)

// Name is the plugin's name in a KubeSchedulerConfiguration.
const Name = names.NUMAAware

// New returns the factory of the plugin, which takes no arguments. While its context lasts it follows the Numatopologies.
func New(state *model.State, connect informer.Connect) func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) {
	return func(ctx context.Context, _ runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
		clients, err := connect(handle)
		if err != nil {
			return nil, err
		}
		pl := &NUMAAware{layouts: newLayouts(func() { state.Raise(model.NodeChanged) })}
		go pl.layouts.follow(ctx, clients)
		return pl, nil
	}
}

// Name returns the plugin's name.
func (pl *NUMAAware) Name() string { return Name }

// EventsToRegister returns no events: the dispatcher is told when a Numatopology changes.
func (pl *NUMAAware) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return nil, nil
}

// stateKey is where a cycle keeps what its pod wants.
const stateKey fwk.StateKey = Name

// demand is what a pod wants of a node.
type demand struct {
	Policy numa.Policy
	Shares []share
}

// Clone implements fwk.StateData.
func (d *demand) Clone() fwk.StateData { return d }

func demandOf(state fwk.CycleState) (*demand, error) {
	data, err := state.Read(stateKey)
	if err != nil {
		return nil, fmt.Errorf("reading the CPUs that the pod wants: %w", err)
	}
	return data.(*demand), nil
}

// unread is why no pod is placed at first.
const unread = "the NUMA topologies of the nodes have not been read yet; if this lasts, let the scheduler list numatopologies.nodeinfo.volcano.sh"

// PreFilter finds out which CPUs the pod wants. Pods that are not guaranteed get none for themselves.
func (pl *NUMAAware) PreFilter(_ context.Context, state fwk.CycleState, pod *corev1.Pod, _ []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	if !guaranteed(pod) {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	d := &demand{Policy: policyOf(pod), Shares: sharesOf(pod)}
	if !slices.Contains(numa.Policies(), d.Policy) {
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable,
			fmt.Sprintf("annotation %s is %q: use none, best-effort, restricted or single-numa-node", model.NUMAPolicyAnnotation, d.Policy))
	}
	version, read := pl.layouts.version()
	if !read {
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, unread)
	}
	gang.See(state, version)
	state.Write(stateKey, d)
	return nil, nil
}

// PreFilterExtensions returns nil: what pods on a node have is read off the node.
func (pl *NUMAAware) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

// Filter keeps pods off nodes on which their containers cannot have CPUs as the policy says: their own, or for pods without one
// that of the node.
func (pl *NUMAAware) Filter(_ context.Context, state fwk.CycleState, _ *corev1.Pod, info fwk.NodeInfo) *fwk.Status {
	d, err := demandOf(state)
	if err != nil {
		return fwk.AsStatus(err)
	}
	if _, reason := d.on(pl.layouts.of(info.Node().Name), info.GetPods()); reason != "" {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, reason)
	}
	return nil
}

// PreScore skips pods without a policy of their own.
func (pl *NUMAAware) PreScore(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ []fwk.NodeInfo) *fwk.Status {
	if !guaranteed(pod) || policyOf(pod) == numa.None {
		return fwk.NewStatus(fwk.Skip)
	}
	return nil
}

// Score is the number of NUMA nodes that the pod's CPUs would be on; less is better.
func (pl *NUMAAware) Score(_ context.Context, state fwk.CycleState, _ *corev1.Pod, info fwk.NodeInfo) (int64, *fwk.Status) {
	d, err := demandOf(state)
	if err != nil {
		return 0, fwk.AsStatus(err)
	}
	used, reason := d.on(pl.layouts.of(info.Node().Name), info.GetPods())
	if reason != "" { // Only where the profile does not filter by this plugin.
		return numa.MostNUMANodes, nil
	}
	return int64(used.Size()), nil
}

// ScoreExtensions returns the plugin itself.
func (pl *NUMAAware) ScoreExtensions() fwk.ScoreExtensions { return pl }

// NormalizeScore scores nodes from 0 for those with the most NUMA nodes in use to 100 for none: 100 - 100 * count / most. That is
// Volcano's formula (pkg/scheduler/plugins/numaaware/numaaware.go).
func (pl *NUMAAware) NormalizeScore(_ context.Context, _ fwk.CycleState, _ *corev1.Pod, scores fwk.NodeScoreList) *fwk.Status {
	return helper.DefaultNormalizeScore(fwk.MaxScore, true, scores)
}

// SignPod says that pods which want the same CPUs are alike as far as this plugin goes.
func (pl *NUMAAware) SignPod(_ context.Context, pod *corev1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	var wanted *demand
	if guaranteed(pod) {
		wanted = &demand{Policy: policyOf(pod), Shares: sharesOf(pod)}
	}
	return []fwk.SignFragment{{Key: "caldera.NUMAAware", Value: wanted}}, nil
}
