// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// ensureQueues creates the queues every cluster has, if they are missing: "root" and, below it, "default". Nobody else
// does, and Volcano's webhook refuses jobs while "default" does not exist. It retries until both are there.
func (w *Writer) ensureQueues(ctx context.Context) {
	logger := klog.FromContext(ctx)
	queues := []*volcano.Queue{
		{
			ObjectMeta: metav1.ObjectMeta{Name: model.RootQueue},
			Spec:       volcano.QueueSpec{Weight: 1, Reclaimable: new(false)},
		},
		{
			ObjectMeta: metav1.ObjectMeta{Name: model.DefaultQueue},
			Spec:       volcano.QueueSpec{Weight: 1, Reclaimable: new(true), Parent: model.RootQueue},
		},
	}
	backoff := wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Cap: 15 * time.Second, Steps: 20}
	for _, queue := range queues {
		err := backoff.DelayFunc().Until(ctx, true, true, func(ctx context.Context) (bool, error) {
			if w.state.Queue(queue.Name) != nil {
				return true, nil
			}
			_, err := w.volcano.SchedulingV1beta1().Queues().Create(ctx, queue, metav1.CreateOptions{})
			switch {
			case err == nil:
				logger.V(2).Info("Created queue", "queue", queue.Name)
				return true, nil
			case apierrors.IsAlreadyExists(err):
				return true, nil
			}
			logger.V(2).Info("Cannot create queue; trying again", "queue", queue.Name, "err", err)
			return false, nil
		})
		if err != nil {
			return
		}
	}
}

// Reloaded tells on the root queue, which stands for all, that the configuration was changed, or why it was not.
func (w *Writer) Reloaded(queue func(string) *model.Queue, err error) {
	root := queue(model.RootQueue)
	switch {
	case root == nil:
	case err != nil:
		w.event(root.Object, corev1.EventTypeWarning, configurationRefusedReason, "the configuration from before stays in force: "+err.Error())
	default:
		w.event(root.Object, corev1.EventTypeNormal, configurationAppliedReason, "a change of the configuration is in force")
	}
}

// QueueFault records an event on a queue that is left out of scheduling, or that no longer is.
func (w *Writer) QueueFault(queue *model.Queue, reason model.Reason) {
	if reason == (model.Reason{}) {
		w.event(queue.Object, corev1.EventTypeNormal, acceptedReason, "the queue takes part in scheduling again")
		return
	}
	w.event(queue.Object, corev1.EventTypeWarning, faultReason, reason.Text())
}
