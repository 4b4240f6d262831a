// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"encoding/json"
	"fmt"
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
}

// followQueues writes the status of queues whenever it differs, until the context ends.
func (w *Writer) followQueues(ctx context.Context) {
	ticker := w.clock.NewTicker(lookAtQueues)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
			w.writeQueues(ctx)
		}
	}
}

// writeQueues writes what differs now. What cannot be written is tried again the next time.
func (w *Writer) writeQueues(ctx context.Context) {
	for _, facts := range w.queueFacts() {
		if err := w.writeQueue(ctx, facts); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).V(2).Info("Cannot write the status of a queue; trying again", "queue", facts.Queue.Name, "err", err)
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
	_, err = w.volcano.SchedulingV1beta1().Queues().Patch(ctx, queue.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("writing the status of queue %s: %w", queue.Name, err)
	}
	return nil
}
