// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
)

// trouble is what happens besides jobs that come and go: when it is next, and which nodes are away until when.
type trouble struct {
	node, queue, cancel time.Time
	nodes               map[string]*corev1.Node
	away                map[string]time.Time
}

// disturb loses nodes, changes queues and deletes jobs now and then.
func (w *world) disturb(now time.Time) {
	t := &w.trouble
	every := func(next *time.Time, mean time.Duration) bool {
		if next.IsZero() {
			*next = now.Add(between(w.random, mean/2, mean))
		}
		if now.Before(*next) {
			return false
		}
		*next = now.Add(between(w.random, mean/2, mean*3/2))
		return true
	}
	// As often for each node whatever their number.
	if every(&t.node, max(w.pace.period/8, w.pace.period*25/time.Duration(w.options.nodes))) {
		w.loseNode(now)
	}
	w.sweep(now)
	if every(&t.queue, w.pace.period/5) {
		w.changeQueue()
	}
	if names := slices.Sorted(maps.Keys(w.jobs)); every(&t.cancel, w.pace.period/8) && len(names) > 0 {
		w.done.cancelled++
		w.end(w.jobs[names[w.random.IntN(len(names))]])
	}
}

// sawNode remembers how to bring a node back.
func (w *world) sawNode(n *corev1.Node) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.trouble.nodes == nil {
		w.trouble.nodes, w.trouble.away = map[string]*corev1.Node{}, map[string]time.Time{}
	}
	w.trouble.nodes[n.Name] = n
}

// loseNode deletes a node. Its pods follow.
func (w *world) loseNode(now time.Time) {
	names := slices.Sorted(maps.Keys(w.trouble.nodes))
	if len(names) == 0 {
		return
	}
	name := names[w.random.IntN(len(names))]
	if _, away := w.trouble.away[name]; away {
		return
	}
	w.done.nodesLost++
	w.trouble.away[name] = now.Add(between(w.random, w.pace.period/20, w.pace.period/6))
	w.call(func(ctx context.Context) error {
		return w.kube.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{})
	})
}

// sweep removes what is bound to nodes that are away, as the garbage collector of pods would a minute later, and brings
// nodes back whose time has come.
func (w *world) sweep(now time.Time) {
	for name, until := range w.trouble.away {
		for uid, p := range w.on[name] {
			delete(w.on[name], uid)
			w.monitor.Lost(uid)
			w.call(func(ctx context.Context) error {
				return w.kube.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64), Preconditions: &metav1.Preconditions{UID: &uid}})
			})
		}
		if now.Before(until) {
			continue
		}
		delete(w.trouble.away, name)
		before := w.trouble.nodes[name]
		node := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: before.Labels, Annotations: before.Annotations},
			Spec:       *before.Spec.DeepCopy(), Status: *before.Status.DeepCopy(),
		}
		w.call(func(ctx context.Context) error {
			_, err := w.kube.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
			return err
		})
	}
}

// changeQueue gives a queue another weight, or another capability if it has one; with the weight changes what it deserves.
func (w *world) changeQueue() {
	q := w.queues[w.random.IntN(len(w.queues))]
	w.done.queuesChanged++
	weight := 1 + w.random.Int32N(5)
	part := 0.2 + 0.2*w.random.Float64()
	cores, gi := int64(w.options.nodes*nodeCores), int64(w.options.nodes*nodeGi)
	list := func(of float64) corev1.ResourceList {
		return corev1.ResourceList{
			corev1.ResourceCPU:    *resource.NewQuantity(int64(of*float64(cores)), resource.DecimalSI),
			corev1.ResourceMemory: *resource.NewQuantity(int64(of*float64(gi))<<30, resource.BinarySI),
		}
	}
	w.call(func(ctx context.Context) error {
		queues := w.groups.SchedulingV1beta1().Queues()
		var last error
		for range 5 { // The scheduler writes its status.
			now, err := queues.Get(ctx, q.Name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			change(now, weight, list, part)
			if _, last = queues.Update(ctx, now, metav1.UpdateOptions{}); last == nil {
				return nil
			}
		}
		return last
	})
}

// change changes one queue.
func change(q *volcano.Queue, weight int32, list func(float64) corev1.ResourceList, part float64) {
	if q.Spec.Capability != nil && weight%2 == 0 {
		q.Spec.Capability = list(part)
		return
	}
	q.Spec.Weight, q.Spec.Deserved = weight, list(float64(weight)/12)
}
