// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestJobsThatAreGoneAreNotRemembered: a standby takes no snapshots for weeks, and sees every pod there ever was.
func TestJobsThatAreGoneAreNotRemembered(t *testing.T) {
	for name, snapshots := range map[string]int{"no snapshot was ever taken": 0, "one was taken": 1} {
		t.Run(name, func(t *testing.T) {
			s := NewState()
			s.AddScheduler("volcano")
			pod := func(name string) *corev1.Pod {
				return &corev1.Pod{
					ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)}, Spec: corev1.PodSpec{SchedulerName: "volcano"},
				}
			}
			s.UpsertPod(pod("stays"))
			for range snapshots {
				s.Snapshot()
			}
			for i := range 10_000 {
				p := pod(fmt.Sprintf("p%d", i))
				s.UpsertPod(p)
				s.DeletePod(p.UID)
			}
			if n := len(s.snapshots.dirty); n > fewChanges {
				t.Errorf("%d jobs are remembered, and 1 exists", n)
			}
			var names []string
			for j := range s.Snapshot().Jobs {
				names = append(names, j.Key.Name)
			}
			if len(names) != 1 || names[0] != "stays" {
				t.Errorf("the snapshot has the jobs %v, want the one that stays", names)
			}
		})
	}
}

// TestTheModelIsFreeWhileJobsAreRead: whoever reads them may write in between, and is told of no job that is gone by then but for the few that were copied
// before.
func TestTheModelIsFreeWhileJobsAreRead(t *testing.T) {
	s := NewState()
	s.AddScheduler("volcano")
	const jobs = 3 * few
	for i := range jobs {
		name := fmt.Sprintf("p%d", i)
		s.UpsertPod(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)}, Spec: corev1.PodSpec{SchedulerName: "volcano"}})
	}
	all := 0
	for range s.Jobs {
		all++
	}
	read := 0
	for range s.Jobs {
		read++
		for i := range jobs {
			s.DeletePod(types.UID(fmt.Sprintf("p%d", i)))
		}
	}
	for range s.Jobs {
		t.Error("a job is read after all are gone")
	}
	if all != jobs || read != few {
		t.Errorf("%d of %d jobs are read, and %d when all leave after the first; want %d", all, jobs, read, few)
	}
}
