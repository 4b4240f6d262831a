// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/caldera-scheduler/caldera/pkg/gang"
)

// moody is a plugin that takes pods on some nodes, and so many of them altogether. Which nodes and how many changes.
type moody struct {
	on  gang.Dependence
	yes map[string]bool
	// most is how many pods may be on all nodes.
	most int
}

func (pl *moody) Name() string { return "Moody" }

// count is how many pods are on the nodes.
type count struct{ pods int }

func (c *count) Clone() fwk.StateData { copied := *c; return &copied }

func (pl *moody) PreFilter(_ context.Context, state fwk.CycleState, _ *corev1.Pod, nodes []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	gang.Depend(state, pl.on)
	c := &count{}
	for _, n := range nodes {
		c.pods += len(n.GetPods())
	}
	state.Write("moody", c)
	return nil, nil
}

func (pl *moody) PreFilterExtensions() fwk.PreFilterExtensions { return pl }

func (pl *moody) AddPod(_ context.Context, state fwk.CycleState, _ *corev1.Pod, _ fwk.PodInfo, _ fwk.NodeInfo) *fwk.Status {
	return pl.add(state, 1)
}

func (pl *moody) RemovePod(_ context.Context, state fwk.CycleState, _ *corev1.Pod, _ fwk.PodInfo, _ fwk.NodeInfo) *fwk.Status {
	return pl.add(state, -1)
}

func (pl *moody) add(state fwk.CycleState, n int) *fwk.Status {
	data, err := state.Read("moody")
	if err != nil {
		return fwk.AsStatus(err)
	}
	data.(*count).pods += n
	return nil
}

func (pl *moody) Filter(_ context.Context, state fwk.CycleState, _ *corev1.Pod, info fwk.NodeInfo) *fwk.Status {
	data, err := state.Read("moody")
	if err != nil {
		return fwk.AsStatus(err)
	}
	if !pl.yes[info.Node().Name] || data.(*count).pods >= pl.most {
		return fwk.NewStatus(fwk.Unschedulable, "not in the mood")
	}
	return nil
}

// TestWhatPluginsSayTheyDependOnIsHeeded plans two equal gangs of one, between which a plugin changes its mind.
func TestWhatPluginsSayTheyDependOnIsHeeded(t *testing.T) {
	for name, tc := range map[string]struct {
		on     gang.Dependence
		labels func(int, *corev1.Pod)
		want   map[string]int
	}{
		"on nothing: it is asked no more":    {0, labelledAlike, map[string]int{"node-0": 2}},
		"on labels, which needs no word":     {0, func(int, *corev1.Pod) {}, map[string]int{"node-0": 1, "node-1": 1}},
		"on the job":                         {gang.OnJob, labelledAlike, map[string]int{"node-0": 1, "node-1": 1}},
		"on pods elsewhere: as for affinity": {gang.OnPodsElsewhere, labelledAlike, map[string]int{"node-0": 1, "node-1": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			pl := &moody{on: tc.on, yes: map[string]bool{"node-0": true}, most: 10}
			w := newFixture(t, nodeShapes{{count: 2, cpu: "8", memory: "32Gi"}}, nil, pl)
			got := map[string]int{}
			for _, job := range []string{"a", "b"} {
				for _, p := range w.plan(t, w.job(gangOf(job, 1, 1, "1", tc.labels))).Placements {
					got[p.Node]++
				}
				pl.yes = map[string]bool{"node-1": true}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want,+got)\n%s", diff)
			}
		})
	}
}

// TestPodsPlannedElsewhereAreTold: a plugin takes two pods at most. If it says that it looks at pods elsewhere, a gang of three does
// not fit; if it does not, it is not told of them before they are placed.
func TestPodsPlannedElsewhereAreTold(t *testing.T) {
	for on, want := range map[gang.Dependence]int{gang.OnPodsElsewhere: 0, gang.OnJob: 3} {
		pl := &moody{on: on, yes: map[string]bool{"node-0": true, "node-1": true, "node-2": true}, most: 2}
		w := newFixture(t, nodeShapes{{count: 3, cpu: "1", memory: "32Gi"}}, nil, pl)
		if got := w.plan(t, w.job(gangOf("a", 3, 3, "1"))).Placements; len(got) != want {
			t.Errorf("depending on %v, %d pods are placed, want %d", on, len(got), want)
		}
	}
}
