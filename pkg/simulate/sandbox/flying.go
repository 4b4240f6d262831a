// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// flying are the pods that the scheduling loop took from the queue, and of which it is not known yet what became. Upstream gives no sign when a
// pod is bound, or back in the queue. To look at all pods for that would cost more than to schedule them.
type flying struct {
	mu   *sync.Mutex
	pods map[types.UID]*corev1.Pod
	// failed are those whose cycle has failed, once that is dealt with. Others may be back in the queue and not be written of yet.
	failed map[types.UID]bool
}

func newFlying() flying {
	return flying{mu: &sync.Mutex{}, pods: map[types.UID]*corev1.Pod{}, failed: map[types.UID]bool{}}
}

// took notes what the scheduling loop took from the queue; nil is nothing.
func (f flying) took(entity framework.QueuedEntityInfo) {
	if entity == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	entity.ForEachPodInfo(func(info *framework.QueuedPodInfo) bool {
		f.pods[info.Pod.UID] = info.Pod
		delete(f.failed, info.Pod.UID)
		return true
	})
}

// fell notes that the cycle of a pod has failed, and that all that follows from it is done.
func (f flying) fell(p *corev1.Pod) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.pods[p.UID] != nil {
		f.failed[p.UID] = true
	}
}

// hasFailed reports whether the cycle of a pod has failed.
func (f flying) hasFailed(p *corev1.Pod) bool { return f.failed[p.UID] }

// drop forgets the pods that have landed. Landed is called with the lock held.
func (f flying) drop(landed func(*corev1.Pod) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for uid, p := range f.pods {
		if landed(p) {
			delete(f.pods, uid)
			delete(f.failed, uid)
		}
	}
}

// any returns one of the pods; nil when there is none.
func (f flying) any() *corev1.Pod {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.pods {
		return p
	}
	return nil
}

// between says which pod that was taken from the queue is neither on a node nor back in the queue; empty when there is none. All news has been
// delivered, so that the scheduler's informer has what the API has.
func (s *Sandbox) between() string {
	s.flying.drop(s.decided)
	if s.flying.any() == nil {
		return ""
	}
	pending, _ := s.sched.SchedulingQueue.PendingPods()
	queued := make(map[types.UID]bool, len(pending))
	for _, p := range pending {
		queued[p.UID] = true
	}
	s.flying.drop(func(p *corev1.Pod) bool { return s.flying.hasFailed(p) && queued[p.UID] && !s.assumed(p) })
	if p := s.flying.any(); p != nil {
		return fmt.Sprintf("pod %s/%s is being bound, or on its way back to the queue", p.Namespace, p.Name)
	}
	return ""
}

// decided reports whether a pod is on a node, has ended, or is gone.
func (s *Sandbox) decided(p *corev1.Pod) bool {
	known, err := s.kube.Core().V1().Pods().Lister().Pods(p.Namespace).Get(p.Name)
	switch {
	case err != nil || known.UID != p.UID || known.DeletionTimestamp != nil:
		return !s.assumed(p)
	default:
		return known.Spec.NodeName != ""
	}
}

// assumed reports whether the scheduler has given a pod a node that is not written yet.
func (s *Sandbox) assumed(p *corev1.Pod) bool {
	assumed, err := s.sched.Cache.IsAssumedPod(p)
	return err != nil || assumed
}
