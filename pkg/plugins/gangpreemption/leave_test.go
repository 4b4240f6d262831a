// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gangpreemption

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// TestWhoIsPreemptedLeavesAtOnce: before the API server says so, for as long as it is being asked, and not for long after that if it never does.
func TestWhoIsPreemptedLeavesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		state := model.NewState()
		answered := time.Now().Add(time.Minute)
		pl := &GangPreemption{
			parts: Parts{State: state, Clock: clock.RealClock{}}, done: t.Context().Done(),
			asking: func(preemptor types.UID) bool { return preemptor == "p" && time.Now().Before(answered) },
		}
		state.AddScheduler("volcano")
		for _, name := range []types.UID{"a", "b"} {
			state.UpsertPod(&corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: string(name), UID: name},
				Spec:       corev1.PodSpec{SchedulerName: "volcano", NodeName: "n"}, Status: corev1.PodStatus{Phase: corev1.PodRunning},
			})
		}
		want := func(a, b model.Status) {
			t.Helper()
			synctest.Wait()
			if x, y := state.Task("a").Status, state.Task("b").Status; x != a || y != b {
				t.Errorf("the pods are %s and %s, want %s and %s", x, y, a, b)
			}
		}
		pl.leave("p", []types.UID{"a", "b", "nobody's"})
		want(model.Releasing, model.Releasing)
		leaving := state.Task("a").Pod.DeepCopy()
		leaving.DeletionTimestamp = &metav1.Time{Time: time.Now()}
		state.UpsertPod(leaving)
		time.Sleep(time.Minute)
		want(model.Releasing, model.Releasing)
		time.Sleep(2*preemptedWithin + time.Millisecond)
		want(model.Releasing, model.Running)
	})
}
