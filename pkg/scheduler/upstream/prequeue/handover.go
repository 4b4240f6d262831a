// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package prequeue

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/caldera-scheduler/caldera/pkg/scheduler/core"
)

// handOver has turns begin and end between two scheduling cycles, and the dispatcher told of every cycle that fails. Upstream guarantees
// that NextEntity is called between two cycles whatever became of the one before, and FailureHandler for each that failed, after the
// reservation was taken back.
func handOver(c *core.Core, sched *scheduler.Scheduler, l *prequeue) {
	next := sched.NextEntity
	sched.NextEntity = func(logger klog.Logger) (framework.QueuedEntityInfo, error) {
		// Upstream has no other sign of leading than that it asks for its first pod.
		c.Lead()
		for {
			c.Dispatcher.Between()
			entity, err := next(logger)
			info, single := entity.(*framework.QueuedPodInfo)
			switch {
			case err != nil || !single || info.Pod == nil || !c.Batch(info.Pod):
				c.Dispatcher.Busy()
				return entity, err
			case c.Dispatcher.Begins(info.Pod.UID):
				l.resume(info)
				return entity, nil
			}
			l.recall(logger, info.Pod)
		}
	}
	fail := sched.FailureHandler
	sched.FailureHandler = func(ctx context.Context, f framework.Framework, info *framework.QueuedPodInfo, status *fwk.Status, nominating *fwk.NominatingInfo, start time.Time) {
		fail(ctx, f, info, status, nominating, start)
		if pod := info.Pod; c.Batch(pod) {
			l.comeBack(klog.FromContext(ctx), info, status, nominating)
			failed(c, pod, status)
		}
	}
}

// failed tells the dispatcher of a cycle that failed.
func failed(c *core.Core, pod *corev1.Pod, status *fwk.Status) {
	err := status.AsError()
	if errors.Is(err, scheduler.ErrNoNodesAvailable) {
		c.Dispatcher.NoNodes(pod.UID)
	}
	if status.IsRejected() {
		err = nil
	} else {
		err = fmt.Errorf("scheduling pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	c.Dispatcher.Failed(pod.UID, c.State.JobOf(pod), err)
}
