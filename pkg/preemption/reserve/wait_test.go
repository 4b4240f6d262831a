// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package reserve

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// TestWhoHasToLeave checks for whom a job waits for which room is kept on the node n1.
func TestWhoHasToLeave(t *testing.T) {
	t.Parallel()
	job := &model.Job{Tasks: []*model.Task{{UID: "x0", Nominated: "n1"}, {UID: "x1"}}}
	for name, c := range map[string]struct {
		awaited map[types.UID]string
		leaving []model.Leaving
		tasks   map[types.UID]model.Status
		want    []types.UID
	}{
		"a victim until it is gone": {
			awaited: map[types.UID]string{"v": "n1"}, leaving: []model.Leaving{{UID: "v", Node: "n1"}},
			tasks: map[types.UID]model.Status{"v": model.Releasing}, want: []types.UID{"v"},
		},
		"one that the nodes still show": {awaited: map[types.UID]string{"v": "n1"}, want: []types.UID{"v"}},
		"not one that was spared": {
			awaited: map[types.UID]string{"v": "n1"}, tasks: map[types.UID]model.Status{"v": model.Running},
		},
		"a later decision's victim on the same node": {
			leaving: []model.Leaving{{UID: "v", Node: "n1"}}, tasks: map[types.UID]model.Status{"v": model.Releasing}, want: []types.UID{"v"},
		},
		"not one on another node": {
			leaving: []model.Leaving{{UID: "v", Node: "n2"}}, tasks: map[types.UID]model.Status{"v": model.Releasing},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := wait{pods: c.awaited}.toLeave(job, c.leaving, func(uid types.UID) *model.Task {
				if status, ok := c.tasks[uid]; ok {
					return &model.Task{UID: uid, Status: status}
				}
				return nil
			})
			if diff := cmp.Diff(c.want, slices.Sorted(maps.Keys(got))); diff != "" {
				t.Errorf("pods that have to leave (-want +got):\n%s", diff)
			}
		})
	}
}
