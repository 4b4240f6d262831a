// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/profile"
)

// landings has pods bound one after the other, in the order of their scheduling cycles, and only while the scheduling loop rests. Upstream binds
// each in a goroutine of its own, beside the cycles of the pods after it. What these find would depend on which pods have failed by then.
type landings struct {
	mu sync.Mutex
	// order are the pods that have a node and are not bound yet.
	order []*landing
	// cleared: the first of them may go on.
	cleared bool
}

// landing is one pod that is about to be bound.
type landing struct {
	pod types.UID
	// ready: nothing but the pods before it keep it from being bound.
	ready bool
	// clear is closed when its time has come.
	clear chan struct{}
}

func (l *landings) find(pod types.UID) int {
	return slices.IndexFunc(l.order, func(a *landing) bool { return a.pod == pod })
}

// expect notes that a pod's scheduling cycle has found a node for it.
func (l *landings) expect(pod types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.order = append(l.order, &landing{pod: pod, clear: make(chan struct{})})
}

// expected reports whether pods are all about to be bound.
func (l *landings) expected(pods []*corev1.Pod) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return l.find(p.UID) < 0 })
}

// await waits until a pod may be bound.
func (l *landings) await(ctx context.Context, pod types.UID) {
	l.mu.Lock()
	i := l.find(pod)
	if i < 0 {
		l.mu.Unlock()
		return
	}
	waits := l.order[i]
	waits.ready = true
	l.mu.Unlock()
	select {
	case <-waits.clear:
	case <-ctx.Done():
	}
}

// landed notes that a pod is bound. As nothing has failed, the one after it is not asked about again.
func (l *landings) landed(pod types.UID) {
	l.drop(pod)
	l.next(func(types.UID) bool { return false })
}

// land has the next pod of some profiles bound. It returns false if none is about to be bound.
func (l *landings) land(profiles profile.Map) bool {
	return l.next(func(pod types.UID) bool {
		for _, f := range profiles {
			if waits := f.GetWaitingPod(pod); waits != nil && len(waits.GetPendingPlugins()) > 0 {
				return true
			}
		}
		return false
	})
}

// drop notes that a pod has been bound, or will not be.
func (l *landings) drop(pod types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := l.find(pod); i >= 0 {
		l.order = slices.Delete(l.order, i, i+1)
		l.cleared = l.cleared && i > 0
	}
}

// next lets the first pod be bound that does not wait for others. It returns false if there is none.
func (l *landings) next(waits func(types.UID) bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cleared {
		return true
	}
	i := slices.IndexFunc(l.order, func(a *landing) bool { return a.ready || !waits(a.pod) })
	if i < 0 {
		return false
	}
	if first := l.order[i]; first.ready {
		l.order = append([]*landing{first}, slices.Delete(l.order, i, i+1)...)
		l.cleared = true
		close(first.clear)
	}
	return true
}

// oneByOne is a profile whose pods are bound when landings says so.
type oneByOne struct {
	framework.Framework
	landings *landings
}

// RunPermitPlugins implements framework.Framework.
func (f oneByOne) RunPermitPlugins(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node string) (map[string]time.Duration, *fwk.Status) {
	times, status := f.Framework.RunPermitPlugins(ctx, state, pod, node)
	if status.IsSuccess() || status.IsWait() {
		f.landings.expect(pod.UID)
	}
	return times, status
}

// WaitOnPermit implements framework.Framework.
func (f oneByOne) WaitOnPermit(ctx context.Context, pod *corev1.Pod) *fwk.Status {
	status := f.Framework.WaitOnPermit(ctx, pod)
	if status.IsSuccess() {
		f.landings.await(ctx, pod.UID)
	}
	return status
}

// RunPostBindPlugins implements framework.Framework.
func (f oneByOne) RunPostBindPlugins(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node string) {
	f.Framework.RunPostBindPlugins(ctx, state, pod, node)
	f.landings.landed(pod.UID)
}
