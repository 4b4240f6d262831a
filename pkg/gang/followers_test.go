// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"pgregory.net/rapid"

	"github.com/caldera-scheduler/caldera/pkg/gang"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/policy"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// singles are jobs of one pod each that ask for the same, unless they are changed.
func (w *fixture) singles(count int, cpu string, change ...func(i int, p *corev1.Pod)) (first *model.Job, others []*model.Job) {
	jobs := make([]*model.Job, count)
	for i := range count {
		jobs[i] = w.job(gangOf(fmt.Sprintf("single-%d", i), 1, 1, cpu, func(_ int, p *corev1.Pod) {
			labelledAlike(i, p)
			for _, c := range change {
				c(i, p)
			}
		}))
	}
	return jobs[0], jobs[1:]
}

// planAlong plans a job with others behind it.
func (w *fixture) planAlong(tb testing.TB, first *model.Job, others []*model.Job) gang.Plan {
	tb.Helper()
	request := asking(first)
	request.Followers = others
	plan, err := w.planner.Plan(tb.Context(), request)
	if err != nil {
		tb.Fatal(err)
	}
	return plan
}

// nodesOf are the nodes of a plan, in order.
func nodesOf(plan gang.Plan) (nodes []string) {
	for _, p := range plan.Placements {
		nodes = append(nodes, p.Node)
	}
	return nodes
}

// TestFollowersGoWhereAGangWould: they are placed one by one as if they were members.
func TestFollowersGoWhereAGangWould(t *testing.T) {
	shapes := nodeShapes{{count: 2, cpu: "8", memory: "32Gi"}, {count: 1, cpu: "4", memory: "16Gi"}}
	w := newFixture(t, shapes, nil)
	whole := w.plan(t, w.job(gangOf("gang", 12, 12, "1")))
	w = newFixture(t, shapes, nil)
	first, others := w.singles(12, "1")
	plan := w.planAlong(t, first, others)
	if diff := cmp.Diff(nodesOf(whole), nodesOf(plan)); diff != "" {
		t.Errorf("nodes (-gang,+single pods)\n%s", diff)
	}
	for i, p := range plan.Placements[1:] {
		if want := others[i].Tasks[0]; p.Task != want {
			t.Errorf("placement %d is of %s, want %s", i+1, p.Task.UID, want.UID)
		}
	}
}

func TestFollowersStopWhereThereIsNoRoom(t *testing.T) {
	tight := &policy.Budget{}
	for name, tc := range map[string]struct {
		change func(*fixture, *gang.Request)
		want   int
	}{
		"on the nodes":                   {func(*fixture, *gang.Request) {}, 4},
		"for any of them":                {func(_ *fixture, r *gang.Request) { r.Followers = nil }, 1},
		"if the budget comes in the end": {func(_ *fixture, r *gang.Request) { r.NodesFirst = true }, 1},
		"in the queue": {func(_ *fixture, r *gang.Request) {
			r.Budget = func() gang.Budget { return &counting{Budget: tight, left: 3} }
		}, 3},
		"that is sure to be there when they are reserved": {func(w *fixture, _ *gang.Request) {
			w.planner.ReservationCanFail = func(*corev1.Pod) bool { return true }
		}, 1},
		"that is sure to be there when one of them is reserved": {func(w *fixture, _ *gang.Request) {
			w.planner.ReservationCanFail = func(p *corev1.Pod) bool { return p.Name == "single-2-0" }
		}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, nodeShapes{{count: 1, cpu: "4", memory: "32Gi"}}, nil)
			first, others := w.singles(6, "1")
			request := asking(first)
			request.Followers = others
			tc.change(w, &request)
			plan, err := w.planner.Plan(t.Context(), request)
			if err != nil {
				t.Fatal(err)
			}
			if got := len(plan.Placements); got != tc.want {
				t.Errorf("%d are placed, want %d", got, tc.want)
			}
		})
	}
}

// counting is a budget for so many tasks.
type counting struct {
	gang.Budget
	left int
}

func (b *counting) Refuses(_ resource.Vector) model.Reason {
	if b.left == 0 {
		return model.Reason{Kind: model.QueueFull, Message: "full"}
	}
	return model.Reason{}
}

func (b *counting) Take(resource.Vector) { b.left-- }

// TestFollowersGoWhereTurnsOfTheirOwnWouldPutThem: what they have in common changes no placement, and neither does what they differ in.
func TestFollowersGoWhereTurnsOfTheirOwnWouldPutThem(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := drawFixture(t, r)
		count := rapid.IntRange(1, 24).Draw(r, "jobs")
		first, others := w.singles(count, "1", drawPods(r)...)
		pods := []*corev1.Pod{first.Tasks[0].Pod}
		for _, job := range others {
			pods = append(pods, job.Tasks[0].Pod)
		}
		plan := w.planAlong(t, first, others)
		placed := len(plan.Placements)
		want, err := straightforward(t.Context(), w, pods[:placed])
		if err != nil {
			r.Fatal(err)
		}
		got := map[string]string{}
		for _, p := range plan.Placements {
			got[p.Task.Pod.Name] = p.Node
		}
		if diff := cmp.Diff(want, got); diff != "" {
			r.Fatalf("placements differ (-straightforward +plan):\n%s", diff)
		}
		if placed == len(pods) {
			return
		}
		if next, err := straightforward(t.Context(), w, pods[:placed+1]); next != nil || err != nil {
			r.Fatalf("%d of %d are placed, though there is room for the next one: %v, %v", placed, len(pods), next, err)
		}
	})
}

// homes is a plugin that keeps the pods of each job on a node of its own.
type homes map[string]string

func (homes) Name() string { return "Homes" }

func (homes) PreFilter(_ context.Context, state fwk.CycleState, _ *corev1.Pod, _ []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	gang.Depend(state, gang.OnJob)
	return nil, nil
}

func (homes) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

func (h homes) Filter(_ context.Context, state fwk.CycleState, _ *corev1.Pod, info fwk.NodeInfo) *fwk.Status {
	if h[gang.Planned(state).Key.Name] == info.Node().Name {
		return nil
	}
	return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "it is not at home")
}

func TestFollowersArePlacedAsTheirOwnJobs(t *testing.T) {
	h := homes{"single-0": "node-2", "single-1": "node-0", "single-2": "node-1"}
	w := newFixture(t, nodeShapes{{count: 3, cpu: "16", memory: "64Gi"}}, nil, h)
	first, others := w.singles(3, "1")
	plan := w.planAlong(t, first, others)
	if diff := cmp.Diff([]string{"node-2", "node-0", "node-1"}, nodesOf(plan)); diff != "" {
		t.Errorf("nodes (-want,+got)\n%s", diff)
	}
}
