// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"testing"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// Admission belongs to one PodGroup object: what the queue let in must not let in what takes its name.
func TestAdmissionEndsWithItsPodGroup(t *testing.T) {
	type steps = []func(*model.State)
	put := func(g model.Group) func(*model.State) { return func(s *model.State) { s.UpsertGroup(train, &g) } }
	pod := func(s *model.State) { s.UpsertPod(newPod("p", in("train"))) }
	admit := func(s *model.State) { s.Admit(train, true) }
	gone := func(s *model.State) { s.DeleteGroup(train) }
	for name, tc := range map[string]struct {
		steps steps
		want  bool
	}{
		"admitted here": {
			steps{put(model.Group{UID: "a", Phase: model.PhasePending}), pod, admit}, true,
		},
		"admitted by a scheduler before this one": {
			steps{put(model.Group{UID: "a", Phase: model.PhaseInqueue}), pod}, true,
		},
		"an update of the same PodGroup that has not heard of it": {
			steps{put(model.Group{UID: "a", Phase: model.PhasePending}), pod, admit, put(model.Group{UID: "a", Phase: model.PhasePending})}, true,
		},
		"another PodGroup takes the name": {
			steps{put(model.Group{UID: "a", Phase: model.PhasePending}), pod, admit, put(model.Group{UID: "b"})}, false,
		},
		"the PodGroup is deleted, and another one takes the name": {
			steps{put(model.Group{UID: "a", Phase: model.PhasePending}), pod, admit, gone, put(model.Group{UID: "b"})}, false,
		},
		"the other one was let in by a scheduler before this one": {
			steps{put(model.Group{UID: "a", Phase: model.PhaseInqueue}), pod, put(model.Group{UID: "b", Phase: model.PhaseInqueue})}, true,
		},
		"the PodGroup is deleted": {
			steps{put(model.Group{UID: "a", Phase: model.PhasePending}), pod, admit, gone}, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			state := watching()
			for _, step := range tc.steps {
				step(state)
			}
			if got := state.Job(train).Admitted; got != tc.want {
				t.Errorf("admitted is %t", got)
			}
		})
	}
}
