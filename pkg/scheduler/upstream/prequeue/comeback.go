// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package prequeue

import (
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// attempts are the scheduling cycles that a pod has had. The queue's metrics count them once it is placed.
type attempts struct {
	count int
	first *time.Time
}

// comeBack takes a pod from the queue whose cycle failed, if nobody asks for it by now. One that is nominated stays, see Add.
func (l *prequeue) comeBack(logger klog.Logger, info *framework.QueuedPodInfo, status *fwk.Status, nominating *fwk.NominatingInfo) {
	if nominating != nil && nominating.NominatedNodeName != "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	queued, known := l.SchedulingQueue.GetPod(info.Pod.Name, info.Pod.Namespace, nil)
	if !known || queued.Pod.UID != info.Pod.UID || !l.takes(queued.Pod) {
		return
	}
	pod := queued.Pod
	l.SchedulingQueue.Delete(logger, pod)
	l.tried[pod.UID] = attempts{info.Attempts, info.InitialAttemptTimestamp}
	l.put(&entry{pod: pod, refused: true, by: rejectors(status)})
}

// rejectors are the plugins for which no node was found.
func rejectors(status *fwk.Status) sets.Set[string] {
	var fit *framework.FitError
	if !errors.As(status.AsError(), &fit) {
		return nil
	}
	return fit.Diagnosis.UnschedulablePlugins.Union(fit.Diagnosis.PendingPlugins)
}

// resume has a pod that was taken from the queue go on where it was before it came back.
func (l *prequeue) resume(info *framework.QueuedPodInfo) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before, ok := l.tried[info.Pod.UID]
	if !ok {
		return
	}
	delete(l.tried, info.Pod.UID)
	info.Attempts += before.count
	if before.first != nil {
		info.InitialAttemptTimestamp = before.first
	}
}
