// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/queue/account"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// lookAtQueues is how often the status of queues is brought up to date; what happens between makes one write.
const lookAtQueues = time.Second

// QueueFacts is what the status of a queue tells.
type QueueFacts struct {
	Queue *model.Queue
	// Allocated is what the jobs of the queue, and of the queues below it, hold.
	Allocated resource.Vector
	// Groups are the numbers of the queue's own PodGroups.
	Groups account.Groups
	// Recent is what the queue has held on average. Forgotten: a scheduler that starts now would be wrong about it.
	Recent    model.Recent
	Forgotten bool
	// Reservation is room that is reserved for a job of the queue; nil when there is none. Decided: that is known.
	Reservation *model.Reservation
	Decided     bool
}

// followQueues writes the status of queues whenever it differs, until the context ends.
func (w *Writer) followQueues(ctx context.Context) {
	ticker := w.clock.NewTicker(lookAtQueues)
	defer ticker.Stop()
	notes := newQueueNotes(w)
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
			w.writeQueues(ctx, notes)
		}
	}
}

// writeQueues writes what differs now. What cannot be written is tried again the next time.
func (w *Writer) writeQueues(ctx context.Context, notes queueNotes) {
	notes.renew()
	for _, facts := range w.queueFacts() {
		if err := w.writeQueue(ctx, facts); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).V(2).Info("Cannot write the status of a queue; trying again", "queue", facts.Queue.Name, "err", err)
		}
		if err := notes.write(ctx, facts); err != nil && ctx.Err() == nil {
			verbosity := 2
			if refused(err) {
				verbosity = 0
			}
			klog.FromContext(ctx).V(verbosity).Info("Cannot write down what a queue has held, or what room is reserved in it, which a restart would forget; trying again. "+
				"If it is forbidden: allow it by manifests/rbac-optional/queue-notes.yaml", "queue", facts.Queue.Name, "err", err)
		}
	}
}

// DesiredQueue is the status a queue should have: what its jobs hold, how many PodGroups are in which phase, and the
// state Open where nobody has given it one.
func DesiredQueue(before volcano.QueueStatus, facts QueueFacts) volcano.QueueStatus {
	after := *before.DeepCopy()
	after.Allocated = facts.Allocated.List()
	if after.State == "" {
		after.State = volcano.QueueStateOpen
	}
	after.Pending, after.Inqueue, after.Running = int32(facts.Groups.Pending), int32(facts.Groups.Inqueue), int32(facts.Groups.Running)
	after.Unknown, after.Completed = int32(facts.Groups.Unknown), int32(facts.Groups.Completed)
	return after
}

func (w *Writer) writeQueue(ctx context.Context, facts QueueFacts) error {
	queue, ok := facts.Queue.Object.(*volcano.Queue)
	if !ok {
		return nil
	}
	before := queue.Status
	after := DesiredQueue(before, facts)
	if equality.Semantic.DeepEqual(before, after) {
		return nil
	}
	// In a merge patch null takes a resource out that is no longer held.
	allocated := map[corev1.ResourceName]any{}
	for name := range before.Allocated {
		allocated[name] = nil
	}
	for name, quantity := range after.Allocated {
		allocated[name] = quantity
	}
	status := map[string]any{
		"allocated": allocated, "pending": after.Pending, "inqueue": after.Inqueue, "running": after.Running,
		"unknown": after.Unknown, "completed": after.Completed,
	}
	if before.State == "" {
		// The states belong to Volcano's controllers: only a queue that has none gets one.
		status["state"] = after.State
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": queue.UID}, "status": status})
	if err != nil {
		return fmt.Errorf("encoding the status of queue %s: %w", queue.Name, err)
	}
	return w.patchQueue(ctx, queue, patch, "status")
}

// patchQueue writes to a queue. One that is gone, or was replaced by another one of its name, is no error.
func (w *Writer) patchQueue(ctx context.Context, queue *volcano.Queue, patch []byte, subresource ...string) error {
	_, err := w.volcano.SchedulingV1beta1().Queues().Patch(ctx, queue.Name, types.MergePatchType, patch, metav1.PatchOptions{}, subresource...)
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("writing queue %s: %w", queue.Name, err)
	}
	return nil
}

// noteEvery is the least time between two writes of what a queue has held on average, successful or not, and after a write that was refused.
const noteEvery = 5 * time.Minute

// queueNotes writes into the annotations of queues what a restart would forget.
type queueNotes struct {
	*Writer
	// averaged is when it was last tried to write down what a queue has held, refused when the API server last refused to write anything.
	averaged, refused map[types.UID]time.Time
}

func newQueueNotes(w *Writer) queueNotes {
	return queueNotes{w, map[types.UID]time.Time{}, map[types.UID]time.Time{}}
}

// renew has those tried again that were tried long enough ago.
func (w queueNotes) renew() {
	now := w.clock.Now()
	old := func(_ types.UID, at time.Time) bool { return now.Sub(at) >= noteEvery }
	maps.DeleteFunc(w.averaged, old)
	maps.DeleteFunc(w.refused, old)
}

// write writes down what would be forgotten.
func (w queueNotes) write(ctx context.Context, facts QueueFacts) error {
	queue, ok := facts.Queue.Object.(*volcano.Queue)
	if !ok || !w.refused[queue.UID].IsZero() {
		return nil
	}
	notes, err := w.of(queue, facts)
	if err != nil || len(notes) == 0 {
		return err
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": queue.UID, "annotations": notes}})
	if err != nil {
		return fmt.Errorf("encoding the annotations of queue %s: %w", queue.Name, err)
	}
	if err = w.patchQueue(ctx, queue, patch); refused(err) {
		w.refused[queue.UID] = w.clock.Now()
	}
	return err
}

// refused reports whether the API server would refuse the same write again. Any other that failed is tried again the next time.
func refused(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) }

// of are the annotations of a queue that have to change; nil for those that are to be taken off.
func (w queueNotes) of(queue *volcano.Queue, facts QueueFacts) (map[string]any, error) {
	notes := map[string]any{}
	if facts.Forgotten && w.averaged[queue.UID].IsZero() {
		w.averaged[queue.UID] = w.clock.Now()
		value, err := facts.Recent.Annotation()
		if err != nil {
			return nil, fmt.Errorf("encoding what queue %s has held: %w", queue.Name, err)
		}
		notes[model.RecentUseAnnotation] = value
	}
	if facts.Decided && !facts.Reservation.Same(facts.Queue.Reservation) {
		if notes[model.ReservationAnnotation] = nil; facts.Reservation != nil {
			value, err := facts.Reservation.Annotation()
			if err != nil {
				return nil, fmt.Errorf("encoding what room is reserved in queue %s: %w", queue.Name, err)
			}
			notes[model.ReservationAnnotation] = value
		}
	}
	return notes, nil
}
