// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package resourcestrategyfit is the plugin ResourceStrategyFit: nodes are scored by each resource in its own direction, those
// with scarce resources are left to pods that ask for them, and cores and memory stay free beside idle devices.
package resourcestrategyfit

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/apis/config/validation"
	"github.com/caldera-scheduler/caldera/pkg/gang"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/node"
	"github.com/caldera-scheduler/caldera/pkg/plugins/names"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// ResourceStrategyFit scores nodes by strategies, and keeps proportions.
type ResourceStrategyFit struct {
	args       config.ResourceStrategyFitArgs
	strategies strategies
}

var (
	_ fwk.PreFilterPlugin   = &ResourceStrategyFit{}
	_ fwk.FilterPlugin      = &ResourceStrategyFit{}
	_ fwk.PreScorePlugin    = &ResourceStrategyFit{}
	_ fwk.ScorePlugin       = &ResourceStrategyFit{}
	_ fwk.SignPlugin        = &ResourceStrategyFit{}
	_ fwk.EnqueueExtensions = &ResourceStrategyFit{}
)

// Name is the plugin's name in a KubeSchedulerConfiguration.
const Name = names.ResourceStrategyFit

// New is the factory of the plugin.
func New(_ context.Context, obj runtime.Object, _ fwk.Handle) (fwk.Plugin, error) {
	args, err := validation.Args(obj, validation.ValidateResourceStrategyFitArgs)
	if err != nil {
		return nil, err
	}
	return &ResourceStrategyFit{args: *args, strategies: among(args.Resources)}, nil
}

// Name returns the plugin's name.
func (pl *ResourceStrategyFit) Name() string { return Name }

// EventsToRegister are what may give a node the proportions it lacks.
func (pl *ResourceStrategyFit) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return []fwk.ClusterEventWithHint{
		{Event: fwk.ClusterEvent{Resource: fwk.Pod, ActionType: fwk.Delete | fwk.UpdatePodScaleDown}},
		{Event: fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Add | fwk.UpdateNodeAllocatable}},
	}, nil
}

// stateKey is where a cycle keeps what its pod asks for.
const stateKey fwk.StateKey = Name

// cycle is what is known of the pod of a cycle.
type cycle struct {
	request resource.Vector
	terms   []node.Term
}

// Clone implements fwk.StateData.
func (c *cycle) Clone() fwk.StateData { return c }

// PreFilter skips pods that need not keep proportions: those that ask for such a device.
func (pl *ResourceStrategyFit) PreFilter(_ context.Context, state fwk.CycleState, pod *corev1.Pod, _ []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	request := resource.OfPod(pod)
	exempt := slices.ContainsFunc(request, func(a resource.Amount) bool {
		_, listed := pl.args.Proportions[string(a.Name)]
		return listed
	})
	if exempt || len(pl.args.Proportions) == 0 {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	state.Write(stateKey, &cycle{request: request})
	return nil, nil
}

// PreFilterExtensions returns nil: the verdict on a node depends on nothing but the node.
func (pl *ResourceStrategyFit) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

// Filter keeps pods off nodes whose idle devices would be left without cores or memory.
func (pl *ResourceStrategyFit) Filter(_ context.Context, state fwk.CycleState, _ *corev1.Pod, info fwk.NodeInfo) *fwk.Status {
	c, err := cycleOf(state)
	if err != nil {
		return fwk.AsStatus(err)
	}
	if short, ok := leaves(c.request, pl.args.Proportions, info); !ok {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, fmt.Sprintf("node(s) keep cores and memory for idle %s", short))
	}
	return nil
}

// PreScore finds the resources that count for the pod.
func (pl *ResourceStrategyFit) PreScore(_ context.Context, state fwk.CycleState, pod *corev1.Pod, _ []fwk.NodeInfo) *fwk.Status {
	if pl.args.FitWeight+pl.args.ScarcityWeight == 0 {
		return fwk.NewStatus(fwk.Skip)
	}
	c := &cycle{request: resource.OfPod(pod)}
	counting := pl.strategies
	switch own, err := model.ScoringOf(pod); {
	case err != nil:
		// As in Volcano all nodes are alike then. An event on the pod has told what is wrong.
		counting = nothing
	case own != nil:
		counting = ofPod(own)
	}
	c.terms = counting.terms(c.request)
	state.Write(stateKey, c)
	gang.Refine(state, Name, func(info fwk.NodeInfo) float64 { return pl.score(c, info) })
	return nil
}

// score is the mean, by weight, of how well a node fits the strategies and of how little it has that is scarce, 0 to 100.
func (pl *ResourceStrategyFit) score(c *cycle, info fwk.NodeInfo) float64 {
	fit := node.Allocation(c.terms, func(name corev1.ResourceName) (int64, int64) { return node.Amounts(info, name) })
	score := fit * float64(pl.args.FitWeight)
	if pl.args.ScarcityWeight > 0 {
		score += plenty(c.request, pl.args.ScarceResources, info) * float64(pl.args.ScarcityWeight)
	}
	return score / float64(pl.args.FitWeight+pl.args.ScarcityWeight) * float64(fwk.MaxScore)
}

// Score is how well the node fits the strategies, and how little it has that is scarce.
func (pl *ResourceStrategyFit) Score(_ context.Context, state fwk.CycleState, _ *corev1.Pod, info fwk.NodeInfo) (int64, *fwk.Status) {
	c, err := cycleOf(state)
	if err != nil {
		return 0, fwk.AsStatus(err)
	}
	return int64(math.Round(pl.score(c, info))), nil
}

// ScoreExtensions returns nil: scores are not normalised, because that would change their proportion to other plugins'.
func (pl *ResourceStrategyFit) ScoreExtensions() fwk.ScoreExtensions { return nil }

// SignPod says that pods that ask for the same, by the same strategies, are alike as far as this plugin goes.
func (pl *ResourceStrategyFit) SignPod(_ context.Context, pod *corev1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	return []fwk.SignFragment{{
		Key:   "caldera.ResourceStrategyFit",
		Value: []string{resource.OfPod(pod).String(), pod.Annotations[model.ScoringTypeAnnotation], pod.Annotations[model.ScoringWeightAnnotation]},
	}}, nil
}

func cycleOf(state fwk.CycleState) (*cycle, error) {
	data, err := state.Read(stateKey)
	if err != nil {
		return nil, fmt.Errorf("reading what the pod asks for: %w", err)
	}
	return data.(*cycle), nil
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
