// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// sums are the node totals in words; resources of which there is none are left out.
type sums struct {
	Nodes                      int
	Allocatable, Used, Largest string
}

func sumsOf(totals model.Totals) sums {
	return sums{
		Nodes: totals.Nodes, Allocatable: present(totals.Allocatable), Used: present(totals.Used), Largest: present(totals.Largest),
	}
}

func present(v resource.Vector) string {
	var some resource.Vector
	for _, a := range v {
		if a.Value != 0 {
			some = append(some, a)
		}
	}
	return some.String()
}

func TestTotals(t *testing.T) {
	type steps = []func(*model.State)
	node := func(name string, options ...func(*corev1.Node)) func(*model.State) {
		return func(s *model.State) { s.UpsertNode(newNode(name, options...)) }
	}
	noNode := func(name string) func(*model.State) { return func(s *model.State) { s.DeleteNode(name) } }
	pod := func(name string, options ...func(*corev1.Pod)) func(*model.State) {
		return func(s *model.State) { s.UpsertPod(newPod(name, options...)) }
	}
	for name, tc := range map[string]struct {
		steps steps
		want  sums
	}{
		"nothing": {want: sums{}},
		"nodes add up, and the largest amounts may be on different ones": {
			steps{node("node-0", having("cpu", "8", "memory", "1Gi")), node("node-1", having("cpu", "2", "memory", "4Gi"))},
			sums{Nodes: 2, Allocatable: "cpu=10 memory=5Gi", Largest: "cpu=8 memory=4Gi"},
		},
		"what waits uses nothing, what runs does, whichever scheduler placed it": {
			steps{node("node-0", having("cpu", "8")), pod("wait"), pod("bound", on("node-0")), pod("run", running), pod("other", running, of("default-scheduler"))},
			sums{Nodes: 1, Allocatable: "cpu=8", Largest: "cpu=8", Used: "cpu=3 pods=3"},
		},
		"pods that ask for more than any node has do not overflow what is used": {
			steps{
				node("node-0", having("memory", "1Gi")),
				pod("a", on("node-0"), asking("memory", "5Ei")), pod("b", on("node-0"), asking("memory", "5Ei")), pod("c", running),
			},
			sums{Nodes: 1, Allocatable: "memory=1Gi", Largest: "memory=1Gi", Used: "cpu=1 memory=256Ti pods=3"},
		},
		"what was taken in above the bound is given back whole": {
			steps{
				node("node-0", having("memory", "1Gi")),
				pod("a", on("node-0"), asking("memory", "5Ei")), pod("b", on("node-0"), asking("memory", "5Ei")), pod("c", running),
				func(s *model.State) { s.DeletePod("a"); s.DeletePod("b") },
			},
			sums{Nodes: 1, Allocatable: "memory=1Gi", Largest: "memory=1Gi", Used: "cpu=1 pods=1"},
		},
		"terminating pods use their node, finished ones do not": {
			steps{node("node-0", having("cpu", "8")), pod("go", running, terminating), pod("done", succeeded), pod("bad", failed)},
			sums{Nodes: 1, Allocatable: "cpu=8", Largest: "cpu=8", Used: "cpu=1 pods=1"},
		},
		"a pod of a node that is not heard of uses its node": {
			steps{node("node-0", having("cpu", "8")), pod("lost", on("node-0"), phase(corev1.PodUnknown))},
			sums{Nodes: 1, Allocatable: "cpu=8", Largest: "cpu=8", Used: "cpu=1 pods=1"},
		},
		"pods seen before their node count from when it comes": {
			steps{pod("run", running), node("node-0", having("cpu", "8"))},
			sums{Nodes: 1, Allocatable: "cpu=8", Largest: "cpu=8", Used: "cpu=1 pods=1"},
		},
		"pods on nodes nobody knows count nowhere": {
			steps{pod("run", running), node("node-1", having("cpu", "8"))},
			sums{Nodes: 1, Allocatable: "cpu=8", Largest: "cpu=8"},
		},
		"a node that goes takes its pods' usage along": {
			steps{node("node-0", having("cpu", "8")), node("node-1", having("cpu", "2")), pod("run", running), noNode("node-0")},
			sums{Nodes: 1, Allocatable: "cpu=2", Largest: "cpu=2"},
		},
		"and brings it back when it returns": {
			steps{node("node-0", having("cpu", "8")), pod("run", running), noNode("node-0"), node("node-0", having("cpu", "4"))},
			sums{Nodes: 1, Allocatable: "cpu=4", Largest: "cpu=4", Used: "cpu=1 pods=1"},
		},
		"but not that of a pod deleted meanwhile": {
			steps{
				node("node-0", having("cpu", "8")), pod("run", running), noNode("node-0"),
				func(s *model.State) { s.LeavePod("run") }, node("node-0", having("cpu", "8")),
			},
			sums{Nodes: 1, Allocatable: "cpu=8", Largest: "cpu=8"},
		},
		"a node that goes twice goes once": {
			steps{node("node-0", having("cpu", "8")), node("node-1", having("cpu", "2")), noNode("node-0"), noNode("node-0")},
			sums{Nodes: 1, Allocatable: "cpu=2", Largest: "cpu=2"},
		},
		"a node that shrinks, or loses a device": {
			steps{node("node-0", having("cpu", "8", "x/gpu", "4")), pod("run", running), node("node-0", having("cpu", "2"))},
			sums{Nodes: 1, Allocatable: "cpu=2", Largest: "cpu=2", Used: "cpu=1 pods=1"},
		},
		"the same node again changes nothing": {
			steps{node("node-0", having("cpu", "8")), pod("run", running), node("node-0", having("cpu", "8"))},
			sums{Nodes: 1, Allocatable: "cpu=8", Largest: "cpu=8", Used: "cpu=1 pods=1"},
		},
		"a pod that moves is on one node": {
			steps{
				node("node-0", having("cpu", "8")), node("node-1", having("cpu", "8")),
				pod("run", running), pod("run", on("node-1")), noNode("node-0"),
			},
			sums{Nodes: 1, Allocatable: "cpu=8", Largest: "cpu=8", Used: "cpu=1 pods=1"},
		},
		"a pod that is resized": {
			steps{node("node-0", having("cpu", "8")), pod("run", running), pod("run", running, asking("cpu", "3", "memory", "1Gi"))},
			sums{Nodes: 1, Allocatable: "cpu=8", Largest: "cpu=8", Used: "cpu=3 memory=1Gi pods=1"},
		},
		"a reservation uses its node at once": {
			steps{node("node-0", having("cpu", "8")), pod("wait"), func(s *model.State) { s.Assume("wait", "node-0") }},
			sums{Nodes: 1, Allocatable: "cpu=8", Largest: "cpu=8", Used: "cpu=1 pods=1"},
		},
		"confirmed it does not use it twice": {
			steps{node("node-0", having("cpu", "8")), pod("wait"), func(s *model.State) { s.Assume("wait", "node-0") }, pod("wait", on("node-0"))},
			sums{Nodes: 1, Allocatable: "cpu=8", Largest: "cpu=8", Used: "cpu=1 pods=1"},
		},
		"taken back it uses nothing": {
			steps{node("node-0", having("cpu", "8")), pod("wait"), func(s *model.State) { s.Assume("wait", "node-0"); s.Forget("wait") }},
			sums{Nodes: 1, Allocatable: "cpu=8", Largest: "cpu=8"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			state := model.NewState()
			state.AddScheduler(batch)
			for _, step := range tc.steps {
				step(state)
			}
			if diff := cmp.Diff(tc.want, sumsOf(state.Totals())); diff != "" {
				t.Errorf("(-want,+got)\n%s", diff)
			}
		})
	}
}

func TestIdleIsWhatIsLeft(t *testing.T) {
	state := model.NewState()
	state.UpsertNode(newNode("node-0", having("cpu", "2", "x/gpu", "4", "pods", "10")))
	state.UpsertPod(newPod("run", running, asking("cpu", "3")))
	totals := state.Totals()
	if got, want := totals.Idle().String(), "cpu=0 pods=9 x/gpu=4"; got != want {
		t.Errorf("idle is %q, want %q", got, want)
	}
	want := sums{Nodes: 1, Allocatable: "cpu=2 pods=10 x/gpu=4", Used: "cpu=3 pods=1", Largest: "cpu=2 pods=10 x/gpu=4"}
	if diff := cmp.Diff(want, sumsOf(totals)); diff != "" {
		t.Errorf("asking what is idle changed the totals (-want,+got)\n%s", diff)
	}
}

// TestWhatIsWantingOnOneNodeIsNotOnOthers: nodes shrink and go while pods are on them.
func TestWhatIsWantingOnOneNodeIsNotOnOthers(t *testing.T) {
	state := model.NewState()
	idle := func(want string) {
		t.Helper()
		if got := present(state.Totals().Idle()); got != want {
			t.Errorf("idle is %q, want %q", got, want)
		}
	}
	node := func(name, cpu string) { state.UpsertNode(newNode(name, having("cpu", cpu))) }
	for _, name := range []string{"a", "b"} {
		state.UpsertPod(newPod(name, running, on("shrinks"), asking("cpu", "3")))
	}
	node("shrinks", "8")
	node("other", "4")
	idle("cpu=6")
	node("shrinks", "2")
	idle("cpu=4")
	state.DeletePod("a")
	idle("cpu=4")
	node("shrinks", "4")
	idle("cpu=5")
	node("shrinks", "1")
	state.DeleteNode("shrinks")
	idle("cpu=4")
	node("shrinks", "2")
	state.DeletePod("b")
	idle("cpu=6")
}
