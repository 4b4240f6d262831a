// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/caldera-scheduler/caldera/pkg/gang"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/policy"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// singles are jobs of one pod each that ask for the same.
func (w *world) singles(count int, cpu string, change ...func(i int, p *corev1.Pod)) (first *model.Job, others []*model.Task) {
	plain := func(_ int, p *corev1.Pod) { p.Labels = map[string]string{"app": "x"} }
	for i := range count {
		job := w.job(gangOf(fmt.Sprintf("single-%d", i), 1, 1, cpu, append(change, plain)...))
		if i == 0 {
			first = job
		} else {
			others = append(others, job.Tasks[0])
		}
	}
	return first, others
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
	w := newWorld(t, shapes, nil)
	whole := w.plan(t, w.job(gangOf("gang", 12, 12, "1")))
	w = newWorld(t, shapes, nil)
	first, others := w.singles(12, "1")
	request := asking(first)
	request.Followers = others
	plan, err := w.planner.Plan(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(nodesOf(whole), nodesOf(plan)); diff != "" {
		t.Errorf("nodes (-gang,+single pods)\n%s", diff)
	}
	for i, p := range plan.Placements[1:] {
		if p.Task != others[i] {
			t.Errorf("placement %d is of %s, want %s", i+1, p.Task.UID, others[i].UID)
		}
	}
}

func TestFollowersStopWhereThereIsNoRoom(t *testing.T) {
	tight := &policy.Budget{}
	for name, tc := range map[string]struct {
		change func(*world, *gang.Request)
		want   int
	}{
		"on the nodes":                   {func(*world, *gang.Request) {}, 4},
		"for any of them":                {func(_ *world, r *gang.Request) { r.Followers = nil }, 1},
		"if the budget comes in the end": {func(_ *world, r *gang.Request) { r.NodesFirst = true }, 1},
		"in the queue": {func(_ *world, r *gang.Request) {
			r.Budget = func() gang.Budget { return &counting{Budget: tight, left: 3} }
		}, 3},
		"that is sure to be there when they are reserved": {func(w *world, _ *gang.Request) {
			w.planner.ReservationCanFail = func(*corev1.Pod) bool { return true }
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nodeShapes{{count: 1, cpu: "4", memory: "32Gi"}}, nil)
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
