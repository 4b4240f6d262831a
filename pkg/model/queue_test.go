// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

func TestQueuesThatTakeJobs(t *testing.T) {
	for state, want := range map[model.QueueState]bool{
		"": true, model.QueueOpen: true, model.QueueShut: false, model.QueueClosing: false, model.QueueUnknown: false,
	} {
		queue := model.Queue{State: state}
		if got := queue.Open(); got != want {
			t.Errorf("a queue in state %q is open: %t, want %t", state, got, want)
		}
	}
}

func TestQueueRefuses(t *testing.T) {
	open := &model.Queue{Name: "q", State: model.QueueOpen}
	closing := &model.Queue{Name: "q", State: model.QueueClosing}
	refused := model.Reason{
		Kind: model.QueueClosed, Subject: "q",
		Message: `queue "q" is Closing and starts no new jobs: open it, or name another queue`,
	}
	for name, tc := range map[string]struct {
		queue *model.Queue
		min   int
		pods  []*corev1.Pod
		want  model.Reason
	}{
		"a queue that does not exist": {nil, 2, members("wait", 2), model.Reason{
			Kind: model.QueueNotFound, Subject: "q",
			Message: `queue "q" does not exist: create it, or name another queue`,
		}},
		"an open queue refuses nothing":                        {open, 2, members("wait", 2), model.Reason{}},
		"a closing queue starts no gang":                       {closing, 2, members("wait", 2), refused},
		"nor takes one that has no pods yet":                   {closing, 2, nil, refused},
		"it extends a gang that has started":                   {closing, 1, slices.Concat(members("run", 1, running), members("wait", 1)), model.Reason{}},
		"it completes a gang of which some members hold nodes": {closing, 2, slices.Concat(members("run", 1, running), members("wait", 1)), model.Reason{}},
		"but not one of which all members are gone or going": {
			closing, 2, slices.Concat(members("go", 1, running, terminating), members("bad", 1, failed), members("wait", 2)), refused,
		},
		"it starts no task of a job without a minimum":       {closing, 0, members("wait", 2), refused},
		"nor takes a job without a minimum and without pods": {closing, 0, nil, refused},
		"it extends a job without a minimum":                 {closing, 0, slices.Concat(members("run", 1, running), members("wait", 1)), model.Reason{}},
	} {
		t.Run(name, func(t *testing.T) {
			job := jobOf(&model.Group{MinMember: tc.min, Queue: "q"}, tc.pods)
			if diff := cmp.Diff(tc.want, model.QueueRefuses(tc.queue, job)); diff != "" {
				t.Errorf("(-want,+got)\n%s", diff)
			}
		})
	}
}
