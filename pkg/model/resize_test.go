// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// TestWhatTheCacheIsToShow: who reads of room on a node finds there as of when the scheduler's cache has it, too.
func TestWhatTheCacheIsToShow(t *testing.T) {
	version := func(v string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.ResourceVersion = v } }
	type expected struct {
		Left    []model.Departure
		Resized []model.Resize
	}
	for name, tc := range map[string]struct {
		change func(*model.State) model.Change
		want   expected
	}{
		"a pod leaves": {
			func(s *model.State) model.Change { return s.LeavePod("p") }, expected{Left: []model.Departure{{Pod: "p", Node: "node-0"}}},
		},
		"a pod finishes": {
			func(s *model.State) model.Change { return s.UpsertPod(newPod("p", succeeded, version("2"))) },
			expected{Left: []model.Departure{{Pod: "p", Node: "node-0"}}},
		},
		"a pod shrinks": {
			func(s *model.State) model.Change {
				return s.UpsertPod(newPod("p", running, asking("cpu", "1"), version("2")))
			},
			expected{Resized: []model.Resize{{Pod: "p", Node: "node-0", Version: "2"}}},
		},
		"a pod of another scheduler shrinks": {
			func(s *model.State) model.Change {
				s.UpsertPod(newPod("q", of("other"), running, asking("cpu", "2"), version("1")))
				return s.UpsertPod(newPod("q", of("other"), running, asking("cpu", "1"), version("2")))
			},
			expected{Resized: []model.Resize{{Pod: "q", Node: "node-0", Version: "2"}}},
		},
		"a pod reports its status": {
			func(s *model.State) model.Change {
				return s.UpsertPod(newPod("p", running, asking("cpu", "2"), version("2")))
			}, expected{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			state := model.NewState()
			state.AddScheduler(batch)
			state.UpsertNode(newNode("node-0", having("cpu", "8")))
			state.UpsertPod(newPod("p", running, asking("cpu", "2"), version("1")))
			c := tc.change(state)
			if diff := cmp.Diff(tc.want, expected{c.Left, c.Resized}); diff != "" {
				t.Errorf("(-want,+got)\n%s", diff)
			}
		})
	}
}
