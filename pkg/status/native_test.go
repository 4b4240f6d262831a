// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	native "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

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
		"it waits for the same, in other numbers": {pending: 2, min: 2, reason: model.Reason{Kind: model.QueueFull, Message: "4 of 4"}, before: waits, want: condition(metav1.ConditionFalse, "Unschedulable", "QueueFull: 4 of 4")},
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

// TestANativeConditionGetsThere: whether the server fails before it has changed the PodGroup or after, the condition is there in the end, and is
// not written once more. A PodGroup that is gone is not asked for again. Each patch is for this PodGroup only, and leaves the rest alone.
func TestANativeConditionGetsThere(t *testing.T) {
	listFirst(t)
	lost := apierrors.NewTimeoutError("no answer", 0)
	for name, tc := range map[string]struct {
		applied bool
		err     error
		writes  int
		there   bool
	}{
		"at once":                        {writes: 1, there: true},
		"the server fails":               {err: lost, writes: 2, there: true},
		"the answer is lost":             {applied: true, err: lost, writes: 1, there: true},
		"the PodGroup has been replaced": {err: apierrors.NewConflict(native.Resource("podgroups"), "train", errors.New("another UID")), writes: 2, there: true},
		"the PodGroup is gone by now":    {err: apierrors.NewNotFound(native.Resource("podgroups"), "train"), writes: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newFixture(t, &native.PodGroup{
					ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "train", UID: "own-uid"},
					Spec:       native.PodGroupSpec{SchedulingPolicy: native.PodGroupSchedulingPolicy{Gang: &native.GangSchedulingPolicy{MinCount: 2}}},
				})
				apply, first := clienttesting.ObjectReaction(d.kube.Tracker()), true
				d.kube.PrependReactor("patch", "podgroups", func(a clienttesting.Action) (bool, runtime.Object, error) {
					patch := string(a.(clienttesting.PatchAction).GetPatch())
					if a.GetSubresource() != "status" || !strings.Contains(patch, `"uid":"own-uid"`) || strings.Contains(patch, "spec") {
						t.Errorf("%s of %q is patched with %s", a.GetResource().Resource, a.GetSubresource(), patch)
					}
					if !first || tc.err == nil {
						return false, nil, nil
					}
					first = false
					if tc.applied {
						if _, _, err := apply(a); err != nil {
							t.Error(err)
						}
					}
					return true, nil, tc.err
				})
				go d.Run(t.Context())
				d.Waits(model.JobKey{Source: model.FromNative, Namespace: "ns", Name: "train"}, model.Reason{Kind: model.QueueFull, Message: "full"})
				time.Sleep(time.Minute)
				if got := d.writes(d.kube.Actions(), "podgroups"); len(got) != tc.writes {
					t.Errorf("it is written %d times, want %d", len(got), tc.writes)
				}
				g, err := d.kube.SchedulingV1beta1().PodGroups("ns").Get(t.Context(), "train", metav1.GetOptions{})
				d.check(err)
				if c := apimeta.FindStatusCondition(g.Status.Conditions, native.PodGroupInitiallyScheduled); (c != nil) != tc.there {
					t.Errorf("the condition is %+v, want one: %t", c, tc.there)
				}
			})
		})
	}
}
