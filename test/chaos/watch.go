// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// watcher follows pods from outside of the scheduler.
type watcher struct {
	mu   sync.Mutex // guards what follows
	pods map[types.UID]*corev1.Pod
	// left is how many changes that count are to be seen until reached is closed.
	left    int
	counts  change
	reached chan struct{}
	// victims are the pods of others that have begun to end since after was called, as they were seen last.
	victims map[types.UID]*corev1.Pod
	// moved says which pod was seen on two nodes; empty if none was.
	moved string
}

// change tells whether what happened to a pod counts; before is nil for a new one.
type change func(before, after *corev1.Pod) bool

// bound counts members of gangs that got a node.
func bound(before, after *corev1.Pod) bool {
	return (before == nil || before.Spec.NodeName == "") && after.Spec.NodeName != "" && after.Labels[gangLabel] != ""
}

// evicted counts pods of others that begin to end.
func evicted(before, after *corev1.Pod) bool {
	return (before == nil || before.DeletionTimestamp == nil) && after.DeletionTimestamp != nil && after.Labels[othersLabel] != ""
}

// watch begins to follow pods.
func watch(ctx context.Context, kube kubernetes.Interface) (*watcher, error) {
	w := &watcher{pods: map[types.UID]*corev1.Pod{}, victims: map[types.UID]*corev1.Pod{}}
	factory := informers.NewSharedInformerFactoryWithOptions(kube, 0, informers.WithNamespace(namespace))
	informer := factory.Core().V1().Pods().Informer()
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { w.see(o.(*corev1.Pod)) },
		UpdateFunc: func(_, o any) { w.see(o.(*corev1.Pod)) },
		DeleteFunc: func(o any) {
			if unknown, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = unknown.Obj
			}
			if p, ok := o.(*corev1.Pod); ok {
				w.mu.Lock()
				defer w.mu.Unlock()
				delete(w.pods, p.UID)
			}
		},
	})
	if err != nil {
		return nil, fmt.Errorf("watching pods: %w", err)
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		return nil, context.Cause(ctx)
	}
	return w, nil
}

func (w *watcher) see(p *corev1.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.pods[p.UID]
	w.pods[p.UID] = p
	if before != nil && before.Spec.NodeName != "" && before.Spec.NodeName != p.Spec.NodeName && w.moved == "" {
		w.moved = fmt.Sprintf("pod %s was on node %s, and is on %q", p.Name, before.Spec.NodeName, p.Spec.NodeName)
	}
	if _, known := w.victims[p.UID]; known || evicted(before, p) {
		w.victims[p.UID] = p
	}
	if w.left > 0 && w.counts(before, p) {
		if w.left--; w.left == 0 {
			close(w.reached)
		}
	}
}

// after returns what is closed after so many changes that count from now on. The evictions are counted anew, too.
func (w *watcher) after(n int, counts change) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.left, w.counts, w.reached = n, counts, make(chan struct{})
	w.victims = map[types.UID]*corev1.Pod{}
	return w.reached
}

// evictions is how many pods of others have begun to end since after was called, by what they say of it.
func (w *watcher) evictions() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := map[string]int{}
	for _, p := range w.victims {
		why := "nobody evicted it"
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.DisruptionTarget {
				why = c.Message
			}
		}
		all[p.Spec.NodeName+" "+why]++
	}
	return all
}

// moves says which pod was seen on two nodes; empty if none was.
func (w *watcher) moves() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.moved
}

// catchUp returns when all has been seen that the API server has, which nobody changes meanwhile.
func (w *watcher) catchUp(ctx context.Context, kube kubernetes.Interface) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return wait.PollUntilContextCancel(ctx, poll, true, func(ctx context.Context) (bool, error) {
		list, err := kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: gangLabel})
		if err != nil {
			return false, fmt.Errorf("listing pods: %w", err)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, p := range list.Items {
			if known := w.pods[p.UID]; known == nil || known.Spec.NodeName != p.Spec.NodeName {
				return false, nil
			}
		}
		return true, nil
	})
}

// gang is what is known of a gang.
type gang struct {
	// bound are its members that have nodes and are to stay.
	bound map[types.UID]string
}

func (g gang) half(size int) bool { return len(g.bound) > 0 && len(g.bound) < size }

// gangs returns what is known of gangs.
func (w *watcher) gangs(names []string) map[string]gang {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := make(map[string]gang, len(names))
	for _, name := range names {
		all[name] = gang{bound: map[types.UID]string{}}
	}
	for uid, p := range w.pods {
		if g, ok := all[p.Labels[gangLabel]]; ok && p.Spec.NodeName != "" && p.DeletionTimestamp == nil && p.Status.Phase != corev1.PodFailed {
			g.bound[uid] = p.Spec.NodeName
		}
	}
	return all
}

// on is how many members of gangs are on a node, a core each.
func (w *watcher) on(node string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, p := range w.pods {
		if p.Spec.NodeName == node && p.Labels[gangLabel] != "" {
			n++
		}
	}
	return n
}

// with is how many pods have a label.
func (w *watcher) with(label string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, p := range w.pods {
		if _, ok := p.Labels[label]; ok {
			n++
		}
	}
	return n
}

// halves follows the gangs that were half placed when the scheduler was killed.
type halves struct {
	size int
	// members are those that they had on nodes.
	members map[string]map[types.UID]string
	at      time.Time
	// seen is when they were last looked at.
	seen time.Time
	// released is how many gave back what they held; longest and held are as in round.
	released int
	longest  time.Duration
	held     float64
}

func newHalves(gangs map[string]gang, size int, at time.Time) *halves {
	h := &halves{size: size, members: map[string]map[types.UID]string{}, at: at, seen: at}
	for name, g := range gangs {
		if g.half(size) {
			h.members[name] = g.bound
		}
	}
	return h
}

// see takes in what became of them. One that is whole, or holds nothing, is not followed any more.
func (h *halves) see(gangs map[string]gang, now time.Time) {
	for name := range h.members {
		g := gangs[name]
		if g.half(h.size) {
			h.held += float64(len(g.bound)) * now.Sub(h.seen).Seconds()
			continue
		}
		h.longest = max(h.longest, now.Sub(h.at))
		if len(g.bound) == 0 {
			h.released++
		}
		delete(h.members, name)
	}
	h.seen = now
}

// count is how many gangs are half placed.
func (h *halves) count(gangs map[string]gang) int {
	n := 0
	for _, g := range gangs {
		if g.half(h.size) {
			n++
		}
	}
	return n
}
