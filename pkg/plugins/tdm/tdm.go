// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tdm is the plugin TDM: nodes of a zone that may be used at certain times of day only, by pods that may be taken
// off them again.
package tdm

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/clock"

	"github.com/caldera-scheduler/caldera/pkg/apis/config/validation"
	"github.com/caldera-scheduler/caldera/pkg/gang"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/plugins/names"
	"github.com/caldera-scheduler/caldera/pkg/volcano/arguments"
)

// TDM keeps pods off revocable nodes that they may not use now, and leads those that may to them.
type TDM struct {
	zones map[string]arguments.Window
	clock clock.Clock
}

var (
	_ fwk.PreFilterPlugin   = &TDM{}
	_ fwk.FilterPlugin      = &TDM{}
	_ fwk.ScorePlugin       = &TDM{}
	_ fwk.SignPlugin        = &TDM{}
	_ fwk.EnqueueExtensions = &TDM{}
)

// Name is the plugin's name in a KubeSchedulerConfiguration.
const Name = names.TDM

// New returns the factory of the plugin. While its context lasts it has jobs looked at again when a window begins or ends.
func New(state *model.State, c clock.WithTicker) func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) {
	return func(ctx context.Context, obj runtime.Object, _ fwk.Handle) (fwk.Plugin, error) {
		args, err := validation.Args(obj, validation.ValidateTDMArgs)
		if err != nil {
			return nil, err
		}
		pl := &TDM{zones: map[string]arguments.Window{}, clock: c}
		for zone, text := range args.RevocableZones {
			window, err := arguments.ParseWindow(text)
			if err != nil {
				return nil, fmt.Errorf("reading the window of zone %s: %w", zone, err)
			}
			pl.zones[zone] = window
		}
		if len(pl.zones) > 0 {
			go pl.follow(ctx, state)
		}
		return pl, nil
	}
}

// follow announces the times at which a window begins or has ended.
func (pl *TDM) follow(ctx context.Context, state *model.State) {
	for {
		now := pl.clock.Now()
		timer := pl.clock.NewTimer(pl.next(now).Sub(now))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C():
			state.Raise(model.NodeChanged)
		}
	}
}

// next is the first time after now at which a window begins or has ended. There is a window.
func (pl *TDM) next(now time.Time) time.Time {
	var next time.Time
	for _, window := range pl.zones {
		if at := window.Next(now); next.IsZero() || at.Before(next) {
			next = at
		}
	}
	return next
}

// Name returns the plugin's name.
func (pl *TDM) Name() string { return Name }

// EventsToRegister returns no events: the dispatcher knows when nodes change, and is told of the time.
func (pl *TDM) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) { return nil, nil }

// PreFilter says until when verdicts hold.
func (pl *TDM) PreFilter(_ context.Context, state fwk.CycleState, _ *corev1.Pod, _ []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	if len(pl.zones) > 0 {
		gang.See(state, pl.next(pl.clock.Now()).Unix())
	}
	return nil, nil
}

// PreFilterExtensions returns nil: the verdict does not depend on other pods.
func (pl *TDM) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

// notRevocable is Volcano's reason.
const notRevocable = "not allow to dispatch to revocable node"

// Filter keeps pods off revocable nodes outside the windows of their zones, and always those that are not revocable.
func (pl *TDM) Filter(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, info fwk.NodeInfo) *fwk.Status {
	zone := info.Node().Labels[model.RevocableZoneKey]
	if zone == "" {
		return nil
	}
	window, known := pl.zones[zone]
	switch {
	case !known:
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, fmt.Sprintf("revocable zone %s of the node is not configured", zone))
	case !window.Contains(pl.clock.Now()):
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, fmt.Sprintf("revocable zone %s of the node is usable at %s only", zone, window))
	case !model.Revocable(pod):
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, notRevocable)
	}
	return nil
}

// Score leads pods that may use revocable nodes to them: 100, else 0.
func (pl *TDM) Score(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, info fwk.NodeInfo) (int64, *fwk.Status) {
	if info.Node().Labels[model.RevocableZoneKey] != "" && model.Revocable(pod) {
		return fwk.MaxScore, nil
	}
	return 0, nil
}

// ScoreExtensions returns nil: scores are not normalised, because that would change their proportion to other plugins'.
func (pl *TDM) ScoreExtensions() fwk.ScoreExtensions { return nil }

// SignPod says that pods which may use revocable nodes are alike, and those that may not, as far as this plugin goes.
func (pl *TDM) SignPod(_ context.Context, pod *corev1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	return []fwk.SignFragment{{Key: "caldera.TDM", Value: model.Revocable(pod)}}, nil
}
