// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/gang"
	"github.com/caldera-scheduler/caldera/pkg/model"
)

// TestResume: before the scheduler started, room was reserved for two pods of four cores, one on each of the first two nodes, by a time in 30 minutes.
func TestResume(t *testing.T) {
	t.Parallel()
	three := nodeShapes{{count: 3, cpu: "4", memory: "64Gi"}}
	told := map[types.UID]string{"new-0": "node-0", "new-1": "node-1"}
	for name, c := range map[string]struct {
		shapes  nodeShapes
		running []gangSpec
		// gang has two pods of four cores unless it says otherwise.
		gang   gangSpec
		queues []*model.Queue
		// estimated: the time was no bound.
		estimated bool
		// in: in so many minutes it starts, 0: at once, and leavers are the pods in its way. None: the room cannot be reserved again.
		none    bool
		in      int
		leavers []string
	}{
		"as it was, though another node is free before": {
			running: []gangSpec{ends("x", "node-0", "4", 20), ends("y", "node-1", "4", 30), ends("z", "node-2", "4", 10)},
			in:      30, leavers: []string{"x-0", "y-0"},
		},
		"a pod that has passed is in the way, too": {
			running: []gangSpec{ends("x", "node-0", "4", 20), ends("y", "node-1", "2", 10), ends("z", "node-1", "2", 30)},
			in:      30, leavers: []string{"x-0", "y-0", "z-0"},
		},
		"a pod in the way has ended": {running: []gangSpec{ends("y", "node-1", "4", 30)}, in: 30, leavers: []string{"y-0"}},
		"all have":                   {running: []gangSpec{ends("z", "node-2", "4", 30)}},
		"somebody has taken the room": {
			running: []gangSpec{ends("x", "node-0", "4", 20), ends("y", "node-1", "4", 31)}, none: true,
		},
		"somebody has taken it, and nobody knows until when": {
			running: []gangSpec{ends("x", "node-0", "4", 20), ends("y", "node-1", "4", 0)}, none: true,
		},
		"of an estimate nobody was to be sure": {
			running: []gangSpec{ends("x", "node-0", "4", 20), ends("y", "node-1", "4", 0)}, estimated: true, in: 60, leavers: []string{"x-0", "y-0"},
		},
		"a service does not end": {
			running: []gangSpec{ends("x", "node-0", "4", 20), ends("y", "node-1", "4", service)}, estimated: true, none: true,
		},
		"a node is gone": {shapes: nodeShapes{{count: 1, cpu: "4", memory: "64Gi"}}, none: true},
		"nodes are shut": {
			shapes: nodeShapes{{count: 2, cpu: "4", memory: "64Gi", taints: []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoSchedule}}}}, none: true,
		},
		"a pod is gone": {gang: gangOf("new", 1, 1, "4"), none: true},
		"a pod runs, and the other takes up its room": {
			running: []gangSpec{ends("x", "node-0", "4", 20)},
			gang: gangOf("new", 2, 2, "4", func(i int, p *corev1.Pod) {
				if i == 1 {
					onNode(p, "node-1")
				}
			}),
			in: 20, leavers: []string{"x-0"},
		},
		"its minimum is higher by now": {gang: gangOf("new", 3, 3, "4"), none: true},
		"its queue holds less by now than it asks for": {
			running: []gangSpec{ends("z", "node-2", "4", 25)}, queues: []*model.Queue{capped("a", 8)}, in: 25, leavers: []string{"z-0"},
		},
		"its queue has given that to somebody else": {
			running: []gangSpec{ends("z", "node-2", "4", 40)}, queues: []*model.Queue{capped("a", 8)}, none: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.shapes == nil {
				c.shapes = three
			}
			if c.gang.pods == nil {
				c.gang = gangOf("new", 2, 2, "4")
			}
			w := newBusy(t, c.shapes, c.running...)
			r := w.ahead(t, c.gang, c.queues...)
			room := gang.Told{Nodes: map[types.UID]string{}, Start: now.Add(30 * time.Minute), Bound: !c.estimated}
			for name, node := range told {
				room.Nodes[pod(string(name), "4").UID] = node
			}
			got, err := w.planner.Resume(r, w.outlook(), room)
			if err != nil {
				t.Fatal(err)
			}
			if c.none {
				if len(got.Placements) > 0 {
					t.Fatalf("room is reserved again: %v by %s", got.Placements, got.Start)
				}
				return
			}
			for _, p := range got.Placements {
				if want := told[types.UID(p.Task.Pod.Name)]; p.Node != want {
					t.Errorf("%s is to go to %s, want %s", p.Task.Pod.Name, p.Node, want)
				}
			}
			var want time.Time
			if c.in > 0 {
				want = now.Add(time.Duration(c.in) * time.Minute)
			}
			if leavers := w.awaited(got); len(got.Placements) != r.Job.Counts.Placeable() || !got.Start.Equal(want) || !slices.Equal(leavers, c.leavers) {
				t.Errorf("%d pods start %s when %v have ended, want %d, %s, %v", len(got.Placements), got.Start, leavers, r.Job.Counts.Placeable(), want, c.leavers)
			}
		})
	}
}

// TestTheTimeThatWasToldIsPlannedFor: the filters refuse the job on the node that has room first. Of the later times that are tried without it, at each a
// node is chosen that is free after what was told.
func TestTheTimeThatWasToldIsPlannedFor(t *testing.T) {
	t.Parallel()
	w := newBusy(t, nodeShapes{{count: 3, cpu: "4", memory: "64Gi"}, {
		count: 1, cpu: "4", memory: "64Gi", prefix: "shut", taints: []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoSchedule}},
	}},
		ends("x", "node-0", "4", 20), ends("y", "node-1", "4", 40), ends("q", "node-2", "2", 15), ends("z", "node-2", "2", 100), ends("w", "shut-0", "1", 50, 60, 70, 80))
	r := w.ahead(t, gangOf("new", 1, 1, "2", avoidsZ))
	for by, want := range map[int]int{0: 40, 30: 20} {
		var told time.Time
		if by > 0 {
			told = now.Add(time.Duration(by) * time.Minute)
		}
		got, err := w.planner.Ahead(t.Context(), r, w.outlook(), told)
		if err != nil {
			t.Fatal(err)
		}
		if in := got.Start.Sub(now); in != time.Duration(want)*time.Minute {
			t.Errorf("it was told %d minutes and starts in %s, want %d minutes", by, in, want)
		}
	}
}
