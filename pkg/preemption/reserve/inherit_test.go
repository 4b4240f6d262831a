// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package reserve

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/gang"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// TestSuccessions checks who gives up the room that is kept when others of the job are placed there.
func TestSuccessions(t *testing.T) {
	t.Parallel()
	task := func(uid, nominated string, cpu int64) *model.Task {
		return &model.Task{UID: types.UID(uid), Nominated: nominated, Request: resource.Vector{{Name: "cpu", Value: cpu}}}
	}
	x1, x2, y1, y2 := task("x1", "n1", 1), task("x2", "n2", 1), task("y1", "", 1), task("y2", "", 2)
	x3, big := task("x3", "n1", 1), task("big", "n1", 4)
	for name, c := range map[string]struct {
		tasks      []*model.Task
		placements []gang.Placement
		given      []string
		taken      []string
	}{
		"each gets what is kept for it": {tasks: []*model.Task{x1, x2}, placements: []gang.Placement{{Task: x1, Node: "n1"}, {Task: x2, Node: "n2"}}},
		"two change places":             {tasks: []*model.Task{x1, x2}, placements: []gang.Placement{{Task: x1, Node: "n2"}, {Task: x2, Node: "n1"}}},
		"another task takes a place": {
			tasks: []*model.Task{x1, x2, y1}, placements: []gang.Placement{{Task: y1, Node: "n1"}, {Task: x2, Node: "n2"}},
			given: []string{"y1"}, taken: []string{"x1"},
		},
		"a place where none is kept": {tasks: []*model.Task{x1, y1}, placements: []gang.Placement{{Task: y1, Node: "n2"}}},
		"a large task takes two": {
			tasks: []*model.Task{x1, x3, x2, y2}, placements: []gang.Placement{{Task: y2, Node: "n1"}},
			given: []string{"y2"}, taken: []string{"x1", "x3"},
		},
		"a small task takes that of a large one": {
			tasks: []*model.Task{big, y1}, placements: []gang.Placement{{Task: y1, Node: "n1"}},
			given: []string{"y1"}, taken: []string{"big"},
		},
		"a task leaves its own place and takes another": {
			tasks: []*model.Task{x1, x2}, placements: []gang.Placement{{Task: x2, Node: "n1"}},
			given: []string{"x2"}, taken: []string{"x1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			given, taken := transfers(&model.Job{Tasks: c.tasks}, c.placements)
			var gotGiven, gotTaken []string
			for _, h := range given {
				gotGiven = append(gotGiven, string(h.UID))
			}
			for _, l := range taken {
				gotTaken = append(gotTaken, string(l.UID))
			}
			if !slices.Equal(gotGiven, c.given) || !slices.Equal(gotTaken, c.taken) {
				t.Errorf("%v take over from %v, want %v from %v", gotGiven, gotTaken, c.given, c.taken)
			}
		})
	}
}
