// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package prequeue keeps batch pods out of the scheduling queue until it is their turn. Upstream's queue holds gated pods among the
// unschedulable ones and goes through all of these at every event of a node or a bound pod: with 100,000 pods that wait, each bind
// costs milliseconds. In the prequeue a waiting pod is an entry of a map.
//
// A pod whose cycle failed comes back here, too: the queue asks each plugin that refused it about each event. What helps its job is the
// dispatcher's affair.
//
// That pods wait here is an optimisation: without it the queue's gate, BatchQueue at PreEnqueue, keeps the same pods back. Here is also
// where the scheduler takes pods from the queue, and turns of jobs are handed over (handOver).
package prequeue

import (
	"context"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/backend/queue"
	schedulermetrics "k8s.io/kubernetes/pkg/scheduler/metrics"

	"github.com/caldera-scheduler/caldera/pkg/queue/dispatch"
	"github.com/caldera-scheduler/caldera/pkg/scheduler/core"
)

// Install puts a prequeue before the queue of a scheduler that does not run yet, and has the turns of jobs handed over where pods are taken
// from the queue.
func Install(c *core.Core, sched *scheduler.Scheduler) {
	l := newPrequeue(sched.SchedulingQueue, c.Holds)
	l.seen, l.pods = c.Dispatcher.Seen, c.Pods()
	sched.SchedulingQueue = l
	c.QueueBy(core.Queueing{Activate: l.offer, Admit: l.admit})
	handOver(c, sched, l)
}

// prequeue is a scheduling queue whose batch pods wait in front of it.
type prequeue struct {
	queue.SchedulingQueue
	// holds reports whether a pod is to wait. It must be decided before Activate is called for a pod.
	holds func(*corev1.Pod) bool
	// gated counts pods behind a gate, and refused those whose cycle failed, as the queue does with its own.
	gated, refused schedulermetrics.MetricRecorder
	// seen is told of each pod that comes to wait; pods lists them as the informer last had them.
	seen func(types.UID)
	pods corelisters.PodLister

	// mu guards waiting, and is held while a pod goes from there to the queue, so that nothing that happens to it is lost.
	mu      sync.Mutex
	waiting map[types.UID]*entry
	// tried keeps the queue's record of past cycles, for pods that came back.
	tried map[types.UID]attempts
}

// entry is a pod in the prequeue.
type entry struct {
	pod *corev1.Pod
	// refused: its last cycle failed. The plugins in by refused it.
	refused bool
	by      sets.Set[string]
}

func newPrequeue(inner queue.SchedulingQueue, holds func(*corev1.Pod) bool) *prequeue {
	return &prequeue{
		SchedulingQueue: inner, holds: holds, seen: func(types.UID) {},
		gated: schedulermetrics.NewGatedEntitiesRecorder(), refused: schedulermetrics.NewUnschedulableEntitiesRecorder(),
		waiting: map[types.UID]*entry{}, tried: map[types.UID]attempts{},
	}
}

// onePod is what the metrics count.
type onePod struct{}

func (onePod) Size() int               { return 1 }
func (onePod) Type() fwk.EntityKeyType { return fwk.PodKeyType }

// Add implements queue.SchedulingQueue. Nominated pods go to the queue, which tells the filters of them, and so do those that the queue
// keeps in groups, or has for a resize.
func (l *prequeue) Add(ctx context.Context, pod *corev1.Pod) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.takes(pod) {
		l.SchedulingQueue.Add(ctx, pod)
		l.seen(pod.UID)
		return
	}
	l.put(&entry{pod: pod})
}

// takes reports whether a pod is to wait in the prequeue.
func (l *prequeue) takes(pod *corev1.Pod) bool {
	return pod.Status.NominatedNodeName == "" && pod.Spec.NodeName == "" && l.holds(pod)
}

// put has a pod wait. The lock is held.
func (l *prequeue) put(e *entry) {
	l.take(e.pod.UID)
	l.count(e).Add(onePod{})
	for plugin := range e.by {
		schedulermetrics.UnschedulableReason(plugin, e.pod.Spec.SchedulerName).Inc()
	}
	l.waiting[e.pod.UID] = e
	l.seen(e.pod.UID)
}

// count returns the metric that a pod is counted in.
func (l *prequeue) count(e *entry) schedulermetrics.MetricRecorder {
	if e.refused {
		return l.refused
	}
	return l.gated
}

// recall puts a pod back that was taken from the queue and has no part in a turn.
func (l *prequeue) recall(logger klog.Logger, pod *corev1.Pod) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.SchedulingQueue.Done(pod.UID)
	latest, err := l.pods.Pods(pod.Namespace).Get(pod.Name)
	if err != nil || latest.UID != pod.UID || latest.Spec.NodeName != "" || latest.DeletionTimestamp != nil {
		logger.V(4).Info("A pod that was taken from the queue does not wait any more", "pod", klog.KObj(pod))
		l.seen(pod.UID)
		return
	}
	l.put(&entry{pod: latest})
}

// offer moves pods to the active queue, and tells which of them are not there then.
func (l *prequeue) offer(logger klog.Logger, pods []*corev1.Pod) []dispatch.Standing {
	named := make(map[string]*corev1.Pod, len(pods))
	for _, pod := range pods {
		named[pod.Namespace+"/"+pod.Name] = pod
	}
	l.Activate(logger, named)
	// What changes the queue's pods comes through the prequeue: updates, and events that have gates looked at again.
	l.mu.Lock()
	defer l.mu.Unlock()
	var standings []dispatch.Standing
	for _, pod := range pods {
		info, known := l.SchedulingQueue.GetPod(pod.Name, pod.Namespace, nil)
		switch {
		case !known && l.inFlight(pod.UID):
			// It was taken from the queue at once.
		case !known || info.Pod.UID != pod.UID:
			standings = append(standings, dispatch.Standing{Pod: pod.UID})
		case info.GatingPlugin != "":
			standings = append(standings, dispatch.Standing{Pod: pod.UID, GatedBy: info.GatingPlugin})
		}
	}
	return standings
}

// admit moves pods that wait to the queue, behind its gate: it tells filters of the nomination of a pod only if it has the pod.
func (l *prequeue) admit(logger klog.Logger, pods []*corev1.Pod) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ctx := klog.NewContext(context.Background(), logger)
	for _, pod := range pods {
		if e := l.waiting[pod.UID]; e != nil {
			l.take(pod.UID)
			l.SchedulingQueue.Add(ctx, e.pod)
		}
	}
}

// take takes a pod out of the prequeue if it is there. The lock is held.
func (l *prequeue) take(uid types.UID) {
	e := l.waiting[uid]
	if e == nil {
		return
	}
	delete(l.waiting, uid)
	l.count(e).Remove(onePod{})
	for plugin := range e.by {
		schedulermetrics.UnschedulableReason(plugin, e.pod.Spec.SchedulerName).Dec()
	}
}

// Activate implements queue.SchedulingQueue. A pod from the prequeue comes as the informer last had it.
func (l *prequeue) Activate(logger klog.Logger, pods map[string]*corev1.Pod) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ctx := klog.NewContext(context.Background(), logger)
	queued := map[string]*corev1.Pod{}
	for name, pod := range pods {
		e := l.waiting[pod.UID]
		if e == nil {
			queued[name] = pod
			continue
		}
		l.take(pod.UID)
		l.SchedulingQueue.Add(ctx, e.pod)
	}
	if len(queued) > 0 {
		l.SchedulingQueue.Activate(logger, queued)
	}
}

// inFlight reports whether a pod was taken from the queue and is not back.
func (l *prequeue) inFlight(uid types.UID) bool {
	return slices.ContainsFunc(l.SchedulingQueue.InFlightPods(), func(p *corev1.Pod) bool { return p.UID == uid })
}

// Update implements queue.SchedulingQueue.
func (l *prequeue) Update(ctx context.Context, before, after *corev1.Pod) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.waiting[before.UID]
	if e == nil {
		l.SchedulingQueue.Update(ctx, before, after)
		return
	}
	if before.UID == after.UID && after.Status.NominatedNodeName == "" {
		e.pod = after
		return
	}
	l.take(before.UID)
	l.SchedulingQueue.Add(ctx, after)
}

// Delete implements queue.SchedulingQueue.
func (l *prequeue) Delete(logger klog.Logger, pod *corev1.Pod) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.take(pod.UID)
	delete(l.tried, pod.UID)
	l.SchedulingQueue.Delete(logger, pod)
}

// MoveAllToActiveOrBackoffQueue implements queue.SchedulingQueue. It may change by which plugin a pod is held.
func (l *prequeue) MoveAllToActiveOrBackoffQueue(logger klog.Logger, event fwk.ClusterEvent, before, after any, preCheck queue.PreEnqueueCheck) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.SchedulingQueue.MoveAllToActiveOrBackoffQueue(logger, event, before, after, preCheck)
}

// PendingPods implements queue.SchedulingQueue.
func (l *prequeue) PendingPods() ([]*corev1.Pod, string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	pods, summary := l.SchedulingQueue.PendingPods()
	for _, e := range l.waiting {
		pods = append(pods, e.pod)
	}
	return pods, fmt.Sprintf("%s; %d wait in the prequeue", summary, len(l.waiting))
}
