// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// tellPods gives every waiting pod of a job the condition PodScheduled=False. With the reason Unschedulable it is
// what cluster autoscalers act on; it is used only when nodes are what is missing. The pod that led the turn has the
// condition from the scheduler already. After each write it calls wrote with how long that took.
func (w *Writer) tellPods(ctx context.Context, key model.JobKey, wrote func(context.Context, time.Duration)) error {
	job, reason := w.state.Summary(key), w.reason(key)
	if job == nil || reason == (model.Reason{}) || !reason.FromNodes && speaks(job) {
		return nil
	}
	kind, which := corev1.PodReasonUnschedulable, (*model.Task).Placeable
	if !reason.FromNodes {
		kind, which = string(reason.Kind), untold
	}
	for _, t := range w.tasks(job.Key, which) {
		kind, known := kind, false
		if have := scheduledCondition(t.Pod); have != nil && have.Status == corev1.ConditionFalse {
			if known = have.Reason == kind; t.QueueGated {
				// The API server has said that much itself, and clients know the pod by it.
				kind = corev1.PodReasonSchedulingGated
				known = have.Reason == kind && have.Message == reason.Text()
			}
		}
		if known {
			continue
		}
		begun := w.clock.Now()
		if err := w.writePod(ctx, t.Pod, kind, reason.Text()); err != nil {
			return err
		}
		wrote(ctx, w.clock.Since(begun))
		if job.Group == nil {
			w.recorder.Event(t.Pod, corev1.EventTypeWarning, "FailedScheduling", reason.Text())
		}
	}
	return nil
}

// speaks reports whether a job has a PodGroup that says why the job waits.
func speaks(job *model.Job) bool {
	return job.Group != nil && !job.Group.ByOwner
}

// pause leaves the API server to others for a while after a write: the longer that took, the longer others wait for it, too.
func (w *Writer) pause(ctx context.Context, took time.Duration) {
	select {
	case <-ctx.Done():
	case <-w.clock.After(min(courtesy*took, longestPause)):
	}
}

// writeNominations brings the nominated nodes of a job's waiting pods in line with the room that is kept for them:
// autoscalers look at them, and a scheduler that takes over keeps the room. What another scheduler has left there is cleared.
func (w *Writer) writeNominations(ctx context.Context, job *model.Job) error {
	if job.Counts.Placeable() == 0 {
		return nil
	}
	for _, t := range w.tasks(job.Key, (*model.Task).Placeable) {
		node := t.Nominated
		if t.Reserved {
			node = ""
		}
		if t.Pod.Status.NominatedNodeName == node {
			continue
		}
		// It is invalid for a pod that was bound since, and then has none.
		err := w.patchPod(ctx, t.Pod, "the nominated node", map[string]any{"nominatedNodeName": node})
		if err != nil && !apierrors.IsInvalid(err) {
			return err
		}
	}
	return nil
}

func scheduledCondition(pod *corev1.Pod) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == corev1.PodScheduled {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

func (w *Writer) writePod(ctx context.Context, pod *corev1.Pod, reason, message string) error {
	return w.writeCondition(ctx, pod, corev1.PodCondition{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: reason, Message: message,
	})
}

// writeCondition gives a pod a condition as of now.
func (w *Writer) writeCondition(ctx context.Context, pod *corev1.Pod, c corev1.PodCondition) error {
	c.ObservedGeneration, c.LastTransitionTime = pod.Generation, metav1.NewTime(w.clock.Now())
	return w.patchPod(ctx, pod, "a condition", map[string]any{"conditions": []corev1.PodCondition{c}})
}

// patchPod writes a part of a pod's status; what names it in errors. A pod that is gone, or was created again, has none. A
// conflict with another writer is no reason to leave it: what is written is not made of what that may have changed.
func (w *Writer) patchPod(ctx context.Context, pod *corev1.Pod, what string, status map[string]any) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID}, "status": status})
	if err != nil {
		return fmt.Errorf("encoding %s of pod %s/%s: %w", what, pod.Namespace, pod.Name, err)
	}
	client := w.kube.CoreV1().Pods(pod.Namespace)
	write := func() error {
		_, err := client.Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
		return err
	}
	if err = write(); apierrors.IsConflict(err) {
		var live *corev1.Pod
		if live, err = client.Get(ctx, pod.Name, metav1.GetOptions{}); err == nil && live.UID == pod.UID {
			err = write()
		}
	}
	if err == nil || apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("writing %s of pod %s/%s: %w", what, pod.Namespace, pod.Name, err)
}
