// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A pod that is moved to another node does not exist there until its controller has created it again. Until then room is kept for it as for a
// nominated task.

// Expect keeps room for pods that are to be created again: tasks with the node that they are expected on as Nominated, by UIDs that are no pod's.
func (s *State) Expect(tasks ...*Task) Change {
	return s.write(func(*Change) {
		if s.expected == nil {
			s.expected = map[types.UID]*Task{}
		}
		for _, t := range tasks {
			s.expected[t.UID] = t
		}
	})
}

// Unexpect gives up the room that is kept for pods that are to be created again.
func (s *State) Unexpect(uids ...types.UID) Change {
	return s.write(func(c *Change) {
		for _, uid := range uids {
			if s.expected[uid] != nil {
				delete(s.expected, uid)
				c.Events |= RoomMade
			}
		}
	})
}

// Expected returns the pods that are to be created again, by UID.
func (s *State) Expected() []*Task {
	s.mu.RLock()
	defer s.mu.RUnlock()
	list := make([]*Task, 0, len(s.expected))
	for _, t := range s.expected {
		list = append(list, t)
	}
	slices.SortFunc(list, func(a, b *Task) int { return cmp.Compare(a.UID, b.UID) })
	return list
}

// ExpectedOn is the task of a pod that is to be created again on a node: as it will be, by a UID that no pod has.
func (t *Task) ExpectedOn(node string) *Task {
	pod := t.Pod.DeepCopy()
	pod.UID = ExpectedUID(t.UID)
	pod.Spec.NodeName, pod.Status, pod.DeletionTimestamp = "", corev1.PodStatus{Phase: corev1.PodPending}, nil
	again := NewTask(pod)
	again.Job, again.Charge = t.Job, t.Charge
	return again.nominated(node)
}

// ExpectedUID is the UID of the task that stands for a pod until it is created again. No pod has it.
func ExpectedUID(of types.UID) types.UID { return "expected/" + of }
