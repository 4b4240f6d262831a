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
	"github.com/caldera-scheduler/caldera/pkg/requests"
)

// tellPods gives every waiting pod of a job the condition PodScheduled=False. With the reason Unschedulable it is
// what cluster autoscalers act on; it is used only when nodes are what is missing. The pod that led the turn has the
// condition from the scheduler already. After each write it calls wrote with how long that took.
func (w *Writer) tellPods(ctx context.Context, key model.JobKey, wrote func(context.Context, time.Duration)) error {
	job, s := w.state.Summary(key), w.show(key)
	if job == nil || s.shown == (model.Reason{}) {
		return nil
	}
	which := (*model.Task).Placeable
	if !s.shown.FromNodes {
		if wait := untroubled - w.clock.Since(s.since); wait > 0 && speaks(job) {
			w.later(w.waiting, key, wait)
			return nil
		}
		which = untold
	}
	first := s.version
	for _, t := range w.tasks(job.Key, which) {
		told, err := w.tellPod(ctx, job, t, s, wrote)
		if err != nil {
			return err
		}
		// Telling thousands of pods takes minutes. The last of them are not to be told what was so when the first were.
		if now := w.show(key); told && now.shown.FromNodes == s.shown.FromNodes && now.shown != (model.Reason{}) {
			s = now
		}
	}
	w.notices.allTold(key, first)
	return nil
}

// tellPod has a pod say why its job waits. It reports whether the pod had to be written.
func (w *Writer) tellPod(ctx context.Context, job *model.Job, t *model.Task, s showing, wrote func(context.Context, time.Duration)) (told bool, err error) {
	kind, have := reasonOf(t, s.shown), scheduledCondition(t.Pod)
	same := have != nil && have.Status == corev1.ConditionFalse && have.Reason == kind
	// What the API server says of a gate tells nothing of what that waits for.
	if same && (have.Message == s.shown.Text() || !s.strict && !t.QueueGated) {
		return false, nil
	}
	begun := w.clock.Now()
	if err := w.writePod(ctx, t.Pod, kind, s.shown.Text()); err != nil {
		return false, err
	}
	wrote(ctx, w.clock.Since(begun))
	if job.Group == nil && (!same || !s.strict) {
		w.event(t.Pod, corev1.EventTypeWarning, podWaitsReason, s.shown.Text())
	}
	return true, nil
}

// reasonOf is the reason on the condition of a pod.
func reasonOf(t *model.Task, shown model.Reason) string {
	switch {
	case t.QueueGated:
		return string(gated)
	case shown.FromNodes:
		return string(unschedulable)
	case shown.Kind == model.SchedulingGated && t.HeldBy == "":
		return string(membersGated)
	}
	return string(shown.Kind)
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

// writePod says on a pod why it waits, unless it has a node by then.
func (w *Writer) writePod(ctx context.Context, pod *corev1.Pod, reason, message string) error {
	err := requests.PatchWaiting(ctx, w.kube, pod, func(now *corev1.Pod) (any, error) {
		c := corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: reason, Message: message}
		return map[string]any{"conditions": []corev1.PodCondition{w.since(now, c)}}, nil
	})
	if err != nil {
		return fmt.Errorf("writing a condition of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}

// writeCondition gives a pod a condition.
func (w *Writer) writeCondition(ctx context.Context, pod *corev1.Pod, c corev1.PodCondition) error {
	return w.patchPod(ctx, pod, "a condition", map[string]any{"conditions": []corev1.PodCondition{w.since(pod, c)}})
}

// since is a condition of a pod with its time. If the pod had it already, and only says more now, it goes on having it since then.
func (w *Writer) since(pod *corev1.Pod, c corev1.PodCondition) corev1.PodCondition {
	c.ObservedGeneration, c.LastTransitionTime = pod.Generation, metav1.NewTime(w.clock.Now())
	for _, have := range pod.Status.Conditions {
		if have.Type == c.Type && have.Status == c.Status && !have.LastTransitionTime.IsZero() {
			c.LastTransitionTime = have.LastTransitionTime
		}
	}
	return c
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
