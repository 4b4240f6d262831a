// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/caldera-scheduler/caldera/pkg/gang"
)

// weather is a plugin that keeps pods off all nodes but one, which is another one every day.
type weather struct {
	day    int
	filter atomic.Int64 // Nodes are filtered side by side.
}

func (*weather) Name() string { return "Weather" }

func (w *weather) PreFilter(_ context.Context, state fwk.CycleState, _ *corev1.Pod, _ []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	gang.See(state, int64(w.day))
	return nil, nil
}

func (*weather) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

func (w *weather) Filter(_ context.Context, _ fwk.CycleState, _ *corev1.Pod, info fwk.NodeInfo) *fwk.Status {
	w.filter.Add(1)
	if info.Node().Name == fmt.Sprintf("node-%d", w.day) {
		return nil
	}
	return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "it rains")
}

func TestCandidatesAreRememberedWhileWhatPluginsSeeOutsideIsTheSame(t *testing.T) {
	w := &weather{day: 1}
	world := newWorld(t, nodeShapes{{count: 3, cpu: "16", memory: "64Gi"}}, nil, w)
	for i, day := range []int{1, 1, 2, 2} {
		w.day = day
		w.filter.Store(0)
		plan := world.plan(t, world.job(gangOf(fmt.Sprintf("g%d", i), 1, 1, "1")))
		if len(plan.Placements) != 1 || plan.Placements[0].Node != fmt.Sprintf("node-%d", day) {
			t.Errorf("gang %d on day %d: placements %v, want one on node-%d: %s", i, day, plan.Placements, day, plan.Reason.Message)
		}
		if same, filtered := i%2 == 1, w.filter.Load(); same != (filtered < 3) {
			t.Errorf("gang %d on day %d: %d nodes filtered of 3, while the day was another one: %t", i, day, filtered, !same)
		}
	}
}
