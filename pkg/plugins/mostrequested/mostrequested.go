// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package mostrequested is the plugin MostRequested: kube-scheduler's score MostAllocated beside its score LeastAllocated. A
// plugin is in a profile once, and NodeResourcesFit has one strategy.
package mostrequested

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	fwk "k8s.io/kube-scheduler/framework"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources"

	"github.com/caldera-scheduler/caldera/pkg/plugins/names"
)

// MostRequested scores nodes by how much of their cores and memory is requested.
type MostRequested struct {
	fit *noderesources.Fit
}

var (
	_ fwk.PreScorePlugin = &MostRequested{}
	_ fwk.ScorePlugin    = &MostRequested{}
	_ fwk.SignPlugin     = &MostRequested{}
)

// Name is the plugin's name in a KubeSchedulerConfiguration.
const Name = names.MostRequested

// New is the factory of the plugin, which takes no arguments.
func New(ctx context.Context, _ runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	fit, err := noderesources.NewFit(ctx, &schedulerconfig.NodeResourcesFitArgs{
		ScoringStrategy: &schedulerconfig.ScoringStrategy{
			Type: schedulerconfig.MostAllocated,
			Resources: []schedulerconfig.ResourceSpec{
				{Name: string(corev1.ResourceCPU), Weight: 1}, {Name: string(corev1.ResourceMemory), Weight: 1},
			},
		},
	}, handle, feature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate))
	if err != nil {
		return nil, fmt.Errorf("building the scorer: %w", err)
	}
	return &MostRequested{fit: fit.(*noderesources.Fit)}, nil
}

// Name returns the plugin's name.
func (pl *MostRequested) Name() string { return Name }

// stateKey is where the scorer keeps its own cycle, beside that of NodeResourcesFit, which has the same keys.
const stateKey fwk.StateKey = Name

type cycle struct{ fwk.CycleState }

// Clone implements fwk.StateData.
func (c cycle) Clone() fwk.StateData { return cycle{c.CycleState.Clone()} }

// PreScore prepares the scores of a pod.
func (pl *MostRequested) PreScore(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, nodes []fwk.NodeInfo) *fwk.Status {
	own := framework.NewCycleState()
	state.Write(stateKey, cycle{own})
	return pl.fit.PreScore(ctx, own, pod, nodes)
}

// Score is the mean of how much of the node's cores and memory would be requested, 0 to 100.
func (pl *MostRequested) Score(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node fwk.NodeInfo) (int64, *fwk.Status) {
	own, err := state.Read(stateKey)
	if err != nil {
		return 0, fwk.AsStatus(fmt.Errorf("reading the scorer's cycle: %w", err))
	}
	return pl.fit.Score(ctx, own.(cycle).CycleState, pod, node)
}

// ScoreExtensions returns nil: the scores need not be normalised.
func (pl *MostRequested) ScoreExtensions() fwk.ScoreExtensions { return nil }

// SignPod says that pods that ask for the same are alike as far as this plugin goes.
func (pl *MostRequested) SignPod(ctx context.Context, pod *corev1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	return pl.fit.SignPod(ctx, pod)
}
