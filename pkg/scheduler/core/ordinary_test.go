// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package core

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// TestWhoIsPreemptedLeavesAtOnce: before the API server says so, and not for long if it never does.
func TestWhoIsPreemptedLeavesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := New()
		e.State.AddScheduler("volcano")
		for _, name := range []types.UID{"a", "b"} {
			e.State.UpsertPod(&corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: string(name), UID: name},
				Spec:       corev1.PodSpec{SchedulerName: "volcano", NodeName: "n"}, Status: corev1.PodStatus{Phase: corev1.PodRunning},
			})
		}
		want := func(a, b model.Status) {
			t.Helper()
			synctest.Wait()
			if x, y := e.State.Task("a").Status, e.State.Task("b").Status; x != a || y != b {
				t.Errorf("the pods are %s and %s, want %s and %s", x, y, a, b)
			}
		}
		e.Preempted(t.Context(), []types.UID{"a", "b", "nobody's"})
		want(model.Releasing, model.Releasing)
		leaving := e.State.Task("a").Pod.DeepCopy()
		leaving.DeletionTimestamp = &metav1.Time{Time: time.Now()}
		e.State.UpsertPod(leaving)
		time.Sleep(preemptedWithin + time.Millisecond)
		want(model.Releasing, model.Running)
	})
}
