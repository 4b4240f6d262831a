// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package batchqueue

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// nobodyUrgent is a scheduler in which no turn is on.
type nobodyUrgent struct{ Core }

// Urgent implements Core.
func (nobodyUrgent) Urgent(*corev1.Pod) bool { return false }

// TestPodsHaveOneOrder: there is none in which two pods change places by chance.
func TestPodsHaveOneOrder(t *testing.T) {
	pl := &BatchQueue{core: nobodyUrgent{}}
	queued := func(uid types.UID, priority int32, after time.Duration) *framework.QueuedPodInfo {
		info, err := framework.NewPodInfo(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid}, Spec: corev1.PodSpec{Priority: &priority}})
		if err != nil {
			t.Fatal(err)
		}
		return &framework.QueuedPodInfo{PodInfo: info, QueueingParams: framework.QueueingParams{Timestamp: time.Unix(1000, 0).Add(after)}}
	}
	for name, tc := range map[string]struct{ first, second *framework.QueuedPodInfo }{
		"the more important one, though it came later": {queued("b", 2, time.Second), queued("a", 1, 0)},
		"the one that came first":                      {queued("b", 1, 0), queued("a", 1, time.Nanosecond)},
		"of two that came together the smaller UID":    {queued("a", 1, 0), queued("b", 1, 0)},
	} {
		t.Run(name, func(t *testing.T) {
			if !pl.Less(tc.first, tc.second) || pl.Less(tc.second, tc.first) {
				t.Error("it is not first")
			}
		})
	}
}
