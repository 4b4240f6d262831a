// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	native "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// nativeScheduled is the reason that kube-scheduler gives on the condition when a PodGroup is scheduled.
const nativeScheduled = "Scheduled"

// NativeConditions are the conditions that a PodGroup of Kubernetes' own should have. Whether its minimum was placed is told by
// PodGroupInitiallyScheduled, which never becomes false again. Its message keeps what the gang started with for the next process.
func NativeConditions(job *model.Job, group *native.PodGroup, reason model.Reason, now metav1.Time) []metav1.Condition {
	after := append([]metav1.Condition(nil), group.Status.Conditions...)
	before := apimeta.FindStatusCondition(after, native.PodGroupInitiallyScheduled)
	was := before != nil && before.Status == metav1.ConditionTrue
	condition := metav1.Condition{
		Type: native.PodGroupInitiallyScheduled, Status: metav1.ConditionFalse, ObservedGeneration: group.Generation, LastTransitionTime: now,
	}
	switch started := job.Ready() && job.Counts.Scheduled() > 0; {
	case started:
		condition.Status, condition.Reason = metav1.ConditionTrue, nativeScheduled
		condition.Message = cmp.Or(job.Start.String(), model.Unconfirmed)
	case was, reason == (model.Reason{}):
		return after
	case reason.Kind == model.SchedulerError:
		condition.Reason, condition.Message = native.PodGroupReasonSchedulerError, reason.Text()
	default:
		condition.Reason, condition.Message = native.PodGroupReasonUnschedulable, fmt.Sprintf("%s: %s", reason.Kind, reason.Text())
	}
	apimeta.SetStatusCondition(&after, condition)
	return after
}

// writeNative brings the conditions of a PodGroup of Kubernetes' own up to date.
func (w *Writer) writeNative(ctx context.Context, job *model.Job, group *native.PodGroup, reason model.Reason) error {
	after := NativeConditions(job, group, reason, metav1.NewTime(w.clock.Now()))
	c, before := apimeta.FindStatusCondition(after, native.PodGroupInitiallyScheduled), apimeta.FindStatusCondition(group.Status.Conditions, native.PodGroupInitiallyScheduled)
	if c == nil || before != nil && *before == *c {
		return nil
	}
	patch, err := json.Marshal(map[string]any{
		// The UID makes the patch fail on a PodGroup that took the name of the one the model knows.
		"metadata": map[string]any{"uid": group.UID},
		// Conditions are merged by their type.
		"status": map[string]any{"conditions": []metav1.Condition{*c}},
	})
	if err != nil {
		return fmt.Errorf("encoding the status of PodGroup %s: %w", job.Key, err)
	}
	_, err = w.kube.SchedulingV1beta1().PodGroups(group.Namespace).Patch(ctx, group.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if err == nil || apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("writing the status of PodGroup %s: %w", job.Key, err)
}
