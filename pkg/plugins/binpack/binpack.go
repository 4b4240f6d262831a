// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package binpack is the plugin Binpack: pods go where the resources they ask for are used most, so that whole nodes stay
// free for those who need them.
package binpack

import (
	"context"
	"fmt"
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/caldera-scheduler/caldera/pkg/apis/config/validation"
	"github.com/caldera-scheduler/caldera/pkg/gang"
	"github.com/caldera-scheduler/caldera/pkg/node"
	"github.com/caldera-scheduler/caldera/pkg/plugins/names"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// Binpack scores nodes by how full they would be.
type Binpack struct {
	weights map[string]int64
}

var (
	_ fwk.PreScorePlugin = &Binpack{}
	_ fwk.ScorePlugin    = &Binpack{}
	_ fwk.SignPlugin     = &Binpack{}
)

// Name is the plugin's name in a KubeSchedulerConfiguration.
const Name = names.Binpack

// New is the factory of the plugin.
func New(_ context.Context, obj runtime.Object, _ fwk.Handle) (fwk.Plugin, error) {
	args, err := validation.Args(obj, validation.ValidateBinpackArgs)
	if err != nil {
		return nil, err
	}
	return &Binpack{weights: args.Resources}, nil
}

// Name returns the plugin's name.
func (pl *Binpack) Name() string { return Name }

// stateKey is where a cycle keeps what its pod asks for.
const stateKey fwk.StateKey = Name

type terms []node.Term

// Clone implements fwk.StateData.
func (t terms) Clone() fwk.StateData { return t }

// PreScore finds the resources that count for the pod. If there are none, all nodes are alike.
func (pl *Binpack) PreScore(_ context.Context, state fwk.CycleState, pod *corev1.Pod, _ []fwk.NodeInfo) *fwk.Status {
	var counting terms
	for _, a := range resource.OfPod(pod) {
		if w, ok := pl.weights[string(a.Name)]; ok && w > 0 {
			counting = append(counting, node.Term{Name: a.Name, Request: a.Value, Weight: w})
		}
	}
	if len(counting) == 0 {
		return fwk.NewStatus(fwk.Skip)
	}
	state.Write(stateKey, counting)
	gang.Refine(state, Name, counting.score)
	return nil
}

// score is how much of what the pod asks for would be in use on a node, 0 to 100; 0 if something does not suffice.
func (t terms) score(info fwk.NodeInfo) float64 {
	used := node.Allocation(t, func(name corev1.ResourceName) (int64, int64) { return node.Amounts(info, name) })
	return used * float64(fwk.MaxScore)
}

// Score is how much of what the pod asks for would be in use on the node, in whole percent.
func (pl *Binpack) Score(_ context.Context, state fwk.CycleState, _ *corev1.Pod, info fwk.NodeInfo) (int64, *fwk.Status) {
	data, err := state.Read(stateKey)
	if err != nil {
		return 0, fwk.AsStatus(fmt.Errorf("reading what the pod asks for: %w", err))
	}
	return int64(math.Round(data.(terms).score(info))), nil
}

// ScoreExtensions returns nil: scores are not normalised, because that would change their proportion to other plugins'.
func (pl *Binpack) ScoreExtensions() fwk.ScoreExtensions { return nil }

// SignPod says that pods that ask for the same are alike as far as this plugin goes.
func (pl *Binpack) SignPod(_ context.Context, pod *corev1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	return []fwk.SignFragment{{Key: "caldera.Binpack", Value: resource.OfPod(pod).String()}}, nil
}
