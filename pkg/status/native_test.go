// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"testing"
	"time"

	native "k8s.io/api/scheduling/v1beta1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/status"
)

// TestNativeConditions: what a PodGroup of Kubernetes' own says of a gang with a minimum of two.
func TestNativeConditions(t *testing.T) {
	now := metav1.NewTime(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
	condition := func(status metav1.ConditionStatus, reason, message string) *metav1.Condition {
		return &metav1.Condition{
			Type: native.PodGroupInitiallyScheduled, Status: status, Reason: reason, Message: message, ObservedGeneration: 3, LastTransitionTime: now,
		}
	}
	full := model.Reason{Kind: model.QueueFull, Message: "queue q is full: 3 of 4 cores"}
	whole := condition(metav1.ConditionTrue, "Scheduled", "started with a minimum of 2 tasks")
	waits := condition(metav1.ConditionFalse, "Unschedulable", "QueueFull: queue q is full: 3 of 4 cores")
	for name, tc := range map[string]struct {
		running, pending, min int
		started               bool
		reason                model.Reason
		before, want          *metav1.Condition
	}{
		"it waits for nothing that is known":      {pending: 2, min: 2},
		"it waits":                                {pending: 2, min: 2, reason: full, want: waits},
		"it waits for the same, in other numbers": {pending: 2, min: 2, reason: model.Reason{Kind: model.QueueFull, Message: "4 of 4"}, before: waits, want: waits},
		"it waits for something else":             {pending: 2, min: 2, reason: model.Reason{Kind: model.QueueClosed, Message: "closed"}, before: waits, want: condition(metav1.ConditionFalse, "Unschedulable", "QueueClosed: closed")},
		"an attempt failed":                       {pending: 2, min: 2, reason: model.Reason{Kind: model.SchedulerError, Message: "no answer"}, want: condition(metav1.ConditionFalse, "SchedulerError", "no answer")},
		"its minimum has nodes":                   {running: 2, pending: 1, min: 2, started: true, reason: full, before: waits, want: whole},
		"its minimum may still be refused":        {running: 2, min: 2, want: condition(metav1.ConditionTrue, "Scheduled", "not all members of its minimum are bound yet")},
		"it lost a member":                        {running: 1, pending: 1, min: 2, started: true, reason: full, before: whole, want: whole},
		"without a minimum the first pod does":    {running: 1, pending: 4, started: true, reason: full, want: condition(metav1.ConditionTrue, "Scheduled", "started with a minimum of 2 tasks")},
		"without a minimum none has a node":       {pending: 4, reason: full, want: waits},
	} {
		t.Run(name, func(t *testing.T) {
			job := &model.Job{Group: &model.Group{MinMember: tc.min}}
			job.Counts.ByStatus[model.Running], job.Counts.ByStatus[model.Pending] = tc.running, tc.pending
			if tc.started {
				job.Start = model.Start{Tasks: 2}
			}
			group := &native.PodGroup{ObjectMeta: metav1.ObjectMeta{Generation: 3}}
			other := metav1.Condition{Type: native.DisruptionTarget, Status: metav1.ConditionTrue, Reason: "Other"}
			group.Status.Conditions = []metav1.Condition{other}
			if tc.before != nil {
				group.Status.Conditions = append(group.Status.Conditions, *tc.before)
			}
			after := status.NativeConditions(job, group, tc.reason, now)
			got := apimeta.FindStatusCondition(after, native.PodGroupInitiallyScheduled)
			if (got == nil) != (tc.want == nil) || got != nil && *got != *tc.want {
				t.Errorf("the condition is %+v, want %+v", got, tc.want)
			}
			if left := apimeta.FindStatusCondition(after, native.DisruptionTarget); left == nil || *left != other {
				t.Errorf("another condition is %+v, want %+v", left, other)
			}
		})
	}
}
