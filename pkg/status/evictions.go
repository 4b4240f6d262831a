// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/model"
)

// Taking is who takes room from others, and by which action.
type Taking struct {
	Action string
	// For is the job that needs the room, and Queue the queue it is in; zero if nobody does.
	For   model.JobKey
	Queue string
	// Why is why a pod is evicted if nobody needs its room.
	Why string
}

// forNobody reports whether nobody needs the room.
func (t Taking) forNobody() bool { return t.For == (model.JobKey{}) }

// beneficiary is the job as messages call it.
func (t Taking) beneficiary() string {
	switch t.For.Source {
	case model.FromPod:
		return "pod " + t.For.String()
	case model.FromOwner:
		return "gang " + t.For.String()
	}
	return "PodGroup " + t.For.String()
}

// cause is the second half of a sentence that begins with who is evicted.
func (t Taking) cause() string {
	if t.forNobody() {
		return fmt.Sprintf("because of %s: %s", t.Action, t.Why)
	}
	if t.Action == string(config.Complete) {
		return fmt.Sprintf("because of %s: its gang is broken, and so is %s in queue %s, which is to be completed first and needs its room",
			t.Action, t.beneficiary(), t.Queue)
	}
	if t.Action == string(config.Consolidate) {
		return fmt.Sprintf("because of %s: there is room for it on another node, where its controller's next pod is expected, and %s in queue %s needs its place",
			t.Action, t.beneficiary(), t.Queue)
	}
	return fmt.Sprintf("because of %s: %s in queue %s needs its room", t.Action, t.beneficiary(), t.Queue)
}

// Disrupts gives a pod that is being evicted the condition DisruptionTarget, which says for whom. The API server sets
// the same condition when it agrees to evict a pod, over one that is there already, so this one has to come after.
func (w *Writer) Disrupts(ctx context.Context, pod *corev1.Pod, t Taking) error {
	reason, message := forRoom,
		fmt.Sprintf("%s: evicting to make room for %s in queue %s (%s)", reporter, t.beneficiary(), t.Queue, t.Action)
	if t.forNobody() {
		reason, message = byAPI, fmt.Sprintf("%s: evicting %s", reporter, t.cause())
	}
	return w.writeCondition(ctx, pod, corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: string(reason), Message: message,
	})
}

// Evicted records that the API server has agreed to evict a pod: an event on the pod, and one on its PodGroup.
func (w *Writer) Evicted(pod *corev1.Pod, job model.JobKey, t Taking) {
	w.event(pod, corev1.EventTypeWarning, evictReason, "Pod is evicted, "+t.cause())
	if group := w.group(job); group != nil {
		w.event(group, corev1.EventTypeNormal, evictReason, fmt.Sprintf("Pod %s is evicted, %s", pod.Name, t.cause()))
	}
}

// Evicting records once for a decision how many pods of which queues are evicted: on the beneficiary and its queue, if there
// is one, and on the queues that lose the pods.
func (w *Writer) Evicting(t Taking, from map[string]int) {
	if t.forNobody() {
		for _, queue := range slices.Sorted(maps.Keys(from)) {
			w.queueEvent(queue, evictReason, fmt.Sprintf("%s evicted, because of %s", pods(from[queue]), t.Action))
		}
		return
	}
	var parts []string
	for _, queue := range slices.Sorted(maps.Keys(from)) {
		parts = append(parts, fmt.Sprintf("%s of queue %s", pods(from[queue]), queue))
		if queue != t.Queue {
			w.queueEvent(queue, evictReason, fmt.Sprintf("%s evicted, because of %s: %s in queue %s needs the room",
				pods(from[queue]), t.Action, t.beneficiary(), t.Queue))
		}
	}
	if len(parts) == 0 {
		return
	}
	taken := strings.Join(parts, ", ")
	if object := w.object(t.For); object != nil {
		w.event(object, corev1.EventTypeNormal, evictingReason, fmt.Sprintf("evicting %s to start (%s)", taken, t.Action))
	}
	w.queueEvent(t.Queue, evictingReason, fmt.Sprintf("evicting %s for %s (%s)", taken, t.beneficiary(), t.Action))
}

// Released records that so many members of a gang are evicted for nobody's sake, and why, on its PodGroup.
func (w *Writer) Released(job model.JobKey, members int, why string) {
	if group := w.group(job); group != nil {
		w.event(group, corev1.EventTypeWarning, releasedReason, fmt.Sprintf("%s evicted: %s", pods(members), why))
	}
}

// Broken warns on its PodGroup that a gang is broken, and what becomes of it.
func (w *Writer) Broken(job model.JobKey, message string) {
	if group := w.group(job); group != nil {
		w.event(group, corev1.EventTypeWarning, brokenReason, message)
	}
}

// Whole records on its PodGroup that a gang is whole that was broken for so long.
func (w *Writer) Whole(job model.JobKey, lasted time.Duration) {
	if group := w.group(job); group != nil {
		w.event(group, corev1.EventTypeNormal, wholeReason, fmt.Sprintf("its gang is whole; it was broken for %s", lasted.Round(time.Second)))
	}
}

// queueEvent records an event on a queue that exists.
func (w *Writer) queueEvent(name string, reason eventReason, message string) {
	if queue := w.state.Queue(name); queue != nil && queue.Object != nil {
		w.event(queue.Object, corev1.EventTypeNormal, reason, message)
	}
}

// group returns the PodGroup of a job; nil when it has none or is unknown.
func (w *Writer) group(key model.JobKey) runtime.Object {
	if job := w.state.Summary(key); job != nil && job.Group != nil {
		return job.Group.Object
	}
	return nil
}

// object returns what stands for a job: its PodGroup, or the pod of a job of one; nil when it is unknown.
func (w *Writer) object(key model.JobKey) runtime.Object {
	if group := w.group(key); group != nil {
		return group
	}
	if job := w.state.Job(key); job != nil && key.Source == model.FromPod && len(job.Tasks) > 0 {
		return job.Tasks[0].Pod
	}
	return nil
}

func pods(n int) string {
	if n == 1 {
		return "1 pod"
	}
	return fmt.Sprintf("%d pods", n)
}
