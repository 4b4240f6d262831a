// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// A reservation is what this process knows and the API server does not, until the pod is bound.
func TestReservations(t *testing.T) {
	type place struct {
		Status model.Status
		Node   string
	}
	type steps = []func(*model.State)
	pod := func(options ...func(*corev1.Pod)) func(*model.State) {
		return func(s *model.State) {
			s.UpsertPod(newPod("p", append([]func(*corev1.Pod){in("train")}, options...)...))
		}
	}
	assume := func(node string) func(*model.State) { return func(s *model.State) { s.Assume("p", node) } }
	forget := func(s *model.State) { s.Forget("p") }
	for name, tc := range map[string]struct {
		steps steps
		// want is nil when there is no such task.
		want *place
	}{
		"is made for a task that waits": {
			steps{pod(), assume("node-1")}, &place{model.Allocated, "node-1"},
		},
		"outlives an update of the pod": {
			steps{pod(), assume("node-1"), pod(labelled("app", "x"))}, &place{model.Allocated, "node-1"},
		},
		"goes along when the pod changes its job": {
			steps{pod(), assume("node-1"), pod(in("other"))}, &place{model.Allocated, "node-1"},
		},
		"is confirmed by the pod on its node": {
			steps{pod(), assume("node-1"), pod(on("node-1"))}, &place{model.Bound, "node-1"},
		},
		"gives way to the node the API server has": {
			steps{pod(), assume("node-1"), pod(on("node-2"))}, &place{model.Bound, "node-2"},
		},
		"gives way to a deletion": {
			steps{pod(), assume("node-1"), pod(terminating)}, &place{model.Releasing, ""},
		},
		"is taken back": {
			steps{pod(), assume("node-1"), forget}, &place{model.Pending, ""},
		},
		"is not taken back after it was confirmed": {
			steps{pod(), assume("node-1"), pod(on("node-1")), forget}, &place{model.Bound, "node-1"},
		},
		"is made once": {
			steps{pod(), assume("node-1"), assume("node-2")}, &place{model.Allocated, "node-1"},
		},
		"is not made for a pod that has its node": {
			steps{pod(on("node-2")), assume("node-1")}, &place{model.Bound, "node-2"},
		},
		"is not made for a pod nobody knows": {
			steps{assume("node-1")}, nil,
		},
		"is forgotten with its pod": {
			steps{pod(), assume("node-1"), func(s *model.State) { s.LeavePod("p") }, pod()}, &place{model.Pending, ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			state := model.NewState()
			state.AddScheduler(batch)
			for _, step := range tc.steps {
				step(state)
			}
			var got *place
			if task := state.Task("p"); task != nil {
				got = &place{task.Status, task.Node}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want,+got)\n%s", diff)
			}
		})
	}
}
