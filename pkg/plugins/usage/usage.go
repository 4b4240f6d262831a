// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package usage is the plugin Usage: pods keep off nodes whose cores or memory are really in use, as monitoring tells.
package usage

import (
	"context"
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/util"
	"k8s.io/utils/clock"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/apis/config/validation"
	"github.com/caldera-scheduler/caldera/pkg/gang"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/node/load"
	"github.com/caldera-scheduler/caldera/pkg/plugins/names"
)

// Usage filters and scores nodes by their loads.
type Usage struct {
	args  config.UsageArgs
	clock clock.PassiveClock
	loads *load.Loads
	state *model.State
}

var (
	_ fwk.PreFilterPlugin   = &Usage{}
	_ fwk.FilterPlugin      = &Usage{}
	_ fwk.ScorePlugin       = &Usage{}
	_ fwk.SignPlugin        = &Usage{}
	_ fwk.EnqueueExtensions = &Usage{}
)

// Name is the plugin's name in a KubeSchedulerConfiguration.
const Name = names.Usage

// The reasons, in Volcano's words (pkg/scheduler/plugins/usage/usage.go).
const (
	reasonCPU    = "the CPU load of the node exceeds the upper limit."
	reasonMemory = "the memory load of the node exceeds the upper limit."
)

// New returns the factory of the plugin, which tells a model of nodes that cool down. The source is asked until the context ends.
func New(state *model.State) frameworkruntime.PluginFactory {
	return func(ctx context.Context, obj runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
		args, err := validation.Args(obj, validation.ValidateUsageArgs)
		if err != nil {
			return nil, err
		}
		options := load.Options{Metrics: args.Metrics}
		if handle != nil {
			options.Cluster = handle.KubeConfig()
		}
		from, err := load.New(options)
		if err != nil {
			return nil, err
		}
		pl := build(args, from, clock.RealClock{}, state)
		go pl.follow(ctx)
		return pl, nil
	}
}

func build(args *config.UsageArgs, from load.Source, c clock.WithTicker, state *model.State) *Usage {
	return &Usage{args: *args, clock: c, loads: load.NewLoads(from, c, &args.Metrics), state: state}
}

// follow asks for loads until the context ends. Jobs that wait have their nodes looked at again when one of these is not too loaded any more.
func (pl *Usage) follow(ctx context.Context) {
	var hot map[string]bool
	pl.loads.Follow(ctx, func() {
		before := hot
		hot = pl.loads.Among(func(l load.Load) bool { return pl.reason(l) != "" })
		for name := range before {
			if !hot[name] {
				pl.state.Raise(model.JudgedAnew)
				return
			}
		}
	})
}

// Name returns the plugin's name.
func (pl *Usage) Name() string { return Name }

// EventsToRegister are those of nodes. That a node cools down is no event of kube-scheduler's; any change of it is an occasion to look. Jobs of
// the queues are told by the model.
func (pl *Usage) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return []fwk.ClusterEventWithHint{
		{Event: fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Add | fwk.Update}, QueueingHintFn: pl.isSchedulableAfterNodeChange},
	}, nil
}

// isSchedulableAfterNodeChange reports whether the node takes pods now.
func (pl *Usage) isSchedulableAfterNodeChange(logger klog.Logger, pod *corev1.Pod, oldObj, newObj any) (fwk.QueueingHint, error) {
	_, node, err := util.As[*corev1.Node](oldObj, newObj)
	if err != nil {
		return fwk.Queue, err
	}
	if reason := pl.hot(node); reason != "" {
		logger.V(5).Info("Node changed and is too loaded", "pod", klog.KObj(pod), "node", klog.KObj(node), "reason", reason)
		return fwk.QueueSkip, nil
	}
	logger.V(5).Info("Node changed and is not too loaded", "pod", klog.KObj(pod), "node", klog.KObj(node))
	return fwk.Queue, nil
}

// PreFilter tells the planner of gangs which round decides: what it remembers of nodes holds for that one.
func (pl *Usage) PreFilter(_ context.Context, state fwk.CycleState, _ *corev1.Pod, _ []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	gang.See(state, pl.loads.Round())
	gang.Refine(state, Name, pl.points)
	return nil, nil
}

// PreFilterExtensions returns nil: pods that come and go change no verdict.
func (pl *Usage) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

// Filter keeps pods off nodes whose measured load is above a threshold.
func (pl *Usage) Filter(_ context.Context, _ fwk.CycleState, _ *corev1.Pod, info fwk.NodeInfo) *fwk.Status {
	if reason := pl.hot(info.Node()); reason != "" {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, reason)
	}
	return nil
}

// hot is why a node takes no pods; empty when it does. A load that is not known is no reason.
func (pl *Usage) hot(node *corev1.Node) string { return pl.reason(pl.loads.Of(node)) }

func (pl *Usage) reason(load load.Load) string {
	switch {
	case pl.loads.Fresh(load.CPU) && load.CPU.Percent > pl.args.CPUThreshold:
		return reasonCPU
	case pl.loads.Fresh(load.Memory) && load.Memory.Percent > pl.args.MemoryThreshold:
		return reasonMemory
	}
	return ""
}

// Score is how much of the node is idle, in percent. It is 0 when a load that counts is not known.
func (pl *Usage) Score(_ context.Context, _ fwk.CycleState, _ *corev1.Pod, info fwk.NodeInfo) (int64, *fwk.Status) {
	return int64(math.Round(pl.points(info))), nil
}

// points are the score of a node before it is rounded.
func (pl *Usage) points(info fwk.NodeInfo) float64 { return pl.idle(info) * float64(fwk.MaxScore) }

// idle is how much of the node is idle, 0 to 1, by what was measured and by what pods that came since may use.
func (pl *Usage) idle(info fwk.NodeInfo) float64 {
	load := pl.loads.Of(info.Node())
	if pl.args.CPUWeight > 0 && !pl.loads.Fresh(load.CPU) || pl.args.MemoryWeight > 0 && !pl.loads.Fresh(load.Memory) {
		return 0
	}
	f := fillOf(info, load, &pl.args, pl.clock.Now())
	cpu, memory := f.utilization()
	return mean(&pl.args, 1-cpu, 1-memory)
}

// ScoreExtensions returns nil: scores are not normalised, because that would change their proportion to other plugins'.
func (pl *Usage) ScoreExtensions() fwk.ScoreExtensions { return nil }

// SignPod says that all pods are alike as far as this plugin goes.
func (pl *Usage) SignPod(context.Context, *corev1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	return nil, nil
}
