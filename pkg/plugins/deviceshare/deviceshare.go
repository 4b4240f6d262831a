// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package deviceshare is the plugin DeviceShare: it chooses the GPUs, or parts of GPUs, that pods get on their nodes, and tells
// device plugins.
package deviceshare

import (
	"context"
	"fmt"
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	corelisters "k8s.io/client-go/listers/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/clock"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/apis/config/validation"
	"github.com/caldera-scheduler/caldera/pkg/gang"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/plugins/deviceshare/card"
	"github.com/caldera-scheduler/caldera/pkg/plugins/names"
)

// DeviceShare gives cards to pods.
type DeviceShare struct {
	args   config.DeviceShareArgs
	mode   card.Mode
	handle fwk.Handle
	nodes  corelisters.NodeLister
	clock  clock.Clock
	ledger *ledger
}

var (
	_ fwk.PreFilterPlugin   = &DeviceShare{}
	_ fwk.FilterPlugin      = &DeviceShare{}
	_ fwk.PreScorePlugin    = &DeviceShare{}
	_ fwk.ScorePlugin       = &DeviceShare{}
	_ fwk.ReservePlugin     = &DeviceShare{}
	_ fwk.PreBindPlugin     = &DeviceShare{}
	_ fwk.SignPlugin        = &DeviceShare{}
	_ fwk.EnqueueExtensions = &DeviceShare{}
)

// Name is the plugin's name in a KubeSchedulerConfiguration.
const Name = names.DeviceShare

// New returns the factory of the plugin.
func New(state *model.State, c clock.WithTicker) func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) {
	return func(_ context.Context, obj runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
		args, err := validation.Args(obj, validation.ValidateDeviceShareArgs)
		if err != nil {
			return nil, err
		}
		pl := &DeviceShare{args: *args, mode: card.ModeOf(args), handle: handle, clock: c, ledger: newLedger()}
		pl.nodes = handle.SharedInformerFactory().Core().V1().Nodes().Lister()
		if err := pl.follow(func() { state.Raise(model.NodeChanged) }); err != nil {
			return nil, err
		}
		return pl, nil
	}
}

// Name returns the plugin's name.
func (pl *DeviceShare) Name() string { return Name }

// EventsToRegister returns no events: the dispatcher is told when pods leave and when the cards of a node change.
func (pl *DeviceShare) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return nil, nil
}

// PreFilter skips pods that ask for no cards.
func (pl *DeviceShare) PreFilter(_ context.Context, state fwk.CycleState, pod *corev1.Pod, _ []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	wants, err := pl.mode.Wants(pod)
	switch {
	case err != nil:
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, err.Error())
	case !wants:
		return nil, fwk.NewStatus(fwk.Skip)
	}
	if len(pl.args.ExclusiveRules) > 0 || card.LooksAtGroup(pod) {
		// The labels and the PodGroup of the pod matter.
		gang.Depend(state, gang.OnJob)
	}
	return nil, nil
}

// PreFilterExtensions returns nil: what pods on a node have is read off the node.
func (pl *DeviceShare) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

// noCards is why a node is not for pods that want cards.
const noCards = "node(s) had no healthy cards"

// Filter keeps pods off nodes whose cards do not suffice.
func (pl *DeviceShare) Filter(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, info fwk.NodeInfo) *fwk.Status {
	_, status := pl.choose(pod, info)
	return status
}

// choose finds out what a pod would get on a node.
func (pl *DeviceShare) choose(pod *corev1.Pod, info fwk.NodeInfo) (card.Choice, *fwk.Status) {
	on := info.Node()
	pods := make([]*corev1.Pod, len(info.GetPods()))
	for i, p := range info.GetPods() {
		pods[i] = p.GetPod()
	}
	cards, err := card.Taken(pl.mode, on, pods, func(p *corev1.Pod) (card.Assignment, bool) { return pl.ledger.of(p.UID, on.Name) })
	switch {
	case err != nil:
		return card.Choice{}, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, err.Error())
	case len(cards) == 0:
		return card.Choice{}, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, noCards)
	}
	choice, reason := pl.mode.Choose(pod, cards)
	if reason != "" {
		return card.Choice{}, fwk.NewStatus(fwk.Unschedulable, reason)
	}
	return choice, nil
}

// PreScore skips pods that ask for no cards, and all if nothing says which cards are better.
func (pl *DeviceShare) PreScore(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ []fwk.NodeInfo) *fwk.Status {
	if wants, err := pl.mode.Wants(pod); err != nil || !wants || pl.args.SchedulePolicy == "" {
		return fwk.NewStatus(fwk.Skip)
	}
	return nil
}

// Score is the mean of the scores of the cards that the pod would get, 0 to 100. Volcano adds them up, without a bound; for one pod
// the order of the nodes is the same.
func (pl *DeviceShare) Score(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, info fwk.NodeInfo) (int64, *fwk.Status) {
	choice, status := pl.choose(pod, info)
	if !status.IsSuccess() {
		return 0, nil
	}
	return int64(math.Round(choice.Score)), nil
}

// ScoreExtensions returns nil: scores are not normalised, because that would change their proportion to other plugins'.
func (pl *DeviceShare) ScoreExtensions() fwk.ScoreExtensions { return nil }

// Reserve keeps the cards of a pod until its annotations tell of them. In a plan they are chosen anew each time.
func (pl *DeviceShare) Reserve(_ context.Context, state fwk.CycleState, pod *corev1.Pod, nodeName string) *fwk.Status {
	if wants, err := pl.mode.Wants(pod); err != nil || !wants || gang.Planning(state) {
		return nil
	}
	info, err := pl.handle.SnapshotSharedLister().NodeInfos().Get(nodeName)
	if err != nil {
		return fwk.AsStatus(fmt.Errorf("finding node %s in the snapshot: %w", nodeName, err))
	}
	choice, status := pl.choose(pod, info)
	if !status.IsSuccess() {
		return status
	}
	pl.ledger.put(pod.UID, &reservation{node: nodeName, assignment: choice.Assignment})
	return nil
}

// SignPod says that pods which want cards are not alike: each changes what is left for the next.
func (pl *DeviceShare) SignPod(_ context.Context, pod *corev1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	if wants, err := pl.mode.Wants(pod); err == nil && !wants {
		return nil, nil
	}
	return nil, fwk.NewStatus(fwk.Unschedulable, "pods that want cards are not alike")
}
