// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"
	"strings"

	"github.com/go-logr/logr" //nolint:depguard // ToleratesTaint wants a logger. It gets one that says nothing.
	corev1 "k8s.io/api/core/v1"

	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// What of the cluster queues can be due. All nodes together have more than batch pods can ever use: a control plane is tainted, a node is cordoned,
// and pods of other schedulers hold room. Were that divided, too, queues would be due what is not there, and nobody would hold more than its due.
//
// A node counts with what pods that are nobody's tasks leave of it. If no task that there is may go to it, it counts with what tasks hold on it
// only. That is so while it is not ready, is cordoned, or has a taint NoSchedule or NoExecute that no task tolerates for good.

// usability keeps the sum of what tasks can use of the nodes, and what that depends on.
type usability struct {
	// usable sums up what tasks can use of the known nodes, or hold; usableChanges counts its changes. Shut is what is idle on nodes that no task may go
	// to.
	usable, shut  resource.Vector
	usableChanges uint64
	// tolerations are the sets of tolerations that tasks have, barriers the lists of taints that nodes have.
	tolerations map[string]*tolerationSet
	barriers    map[string]*barrier
}

func newUsability() usability {
	return usability{tolerations: map[string]*tolerationSet{}, barriers: map[string]*barrier{}}
}

// tolerationSet is the tolerations that some tasks have, and how many have them.
type tolerationSet struct {
	of    []corev1.Toleration
	tasks int
}

// barrier is the taints that some nodes have, and how many sets of tolerations there are that tolerate all of them.
type barrier struct {
	taints   []corev1.Taint
	nodes    map[*node]bool
	tolerant int
}

// lasting are the tolerations of a pod that are not for a time only. Every pod has some of those, for nodes that are not ready.
func lasting(pod *corev1.Pod) []corev1.Toleration {
	isShort := func(t corev1.Toleration) bool {
		return t.TolerationSeconds != nil || t.Effect == corev1.TaintEffectPreferNoSchedule
	}
	if !slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool { return !isShort(t) }) {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(pod.Spec.Tolerations), isShort)
}

// keyOf is a text that is another one for other parts.
func keyOf(parts ...string) string { return strings.Join(parts, "\x00") }

// tolerates reports whether all of some taints are tolerated.
func (set *tolerationSet) tolerates(taints []corev1.Taint) bool {
	return !slices.ContainsFunc(taints, func(taint corev1.Taint) bool {
		return !slices.ContainsFunc(set.of, func(t corev1.Toleration) bool { return t.ToleratesTaint(logr.Discard(), &taint, true) })
	})
}

// Tolerates reports whether taints of a node keep no pod like this one off it.
func Tolerates(pod *corev1.Pod, taints []corev1.Taint) bool {
	hard := slices.DeleteFunc(slices.Clone(taints), func(t corev1.Taint) bool { return t.Effect == corev1.TaintEffectPreferNoSchedule })
	return (&tolerationSet{of: pod.Spec.Tolerations}).tolerates(hard)
}

// tally adds n tasks that have the tolerations of a pod.
func (l *ledger) tally(pod *corev1.Pod, n int) {
	list := lasting(pod)
	if list == nil {
		return
	}
	var parts []string
	for _, t := range list {
		parts = append(parts, t.Key, string(t.Operator), t.Value, string(t.Effect))
	}
	key := keyOf(parts...)
	set := l.tolerations[key]
	if set == nil {
		set = &tolerationSet{of: list}
		l.tolerations[key] = set
		l.tolerate(set, 1)
	}
	if set.tasks += n; set.tasks == 0 {
		delete(l.tolerations, key)
		l.tolerate(set, -1)
	}
}

// tolerate takes in that there is a set of tolerations, or none such any more: nodes may be barred or not by that.
func (l *ledger) tolerate(set *tolerationSet, n int) {
	for _, b := range l.barriers {
		if !set.tolerates(b.taints) {
			continue
		}
		before := b.tolerant
		if b.tolerant += n; before == 0 || b.tolerant == 0 {
			for node := range b.nodes {
				l.gauge(node)
			}
		}
	}
}

// stand puts a node behind the barrier of its taints, and takes it from behind the one before.
func (l *ledger) stand(n *node, taints []corev1.Taint) {
	same := func(a, b corev1.Taint) bool { return a.Key == b.Key && a.Value == b.Value && a.Effect == b.Effect }
	if n.barrier != nil && slices.EqualFunc(n.barrier.taints, taints, same) {
		return
	}
	if before := n.barrier; before != nil {
		if delete(before.nodes, n); len(before.nodes) == 0 {
			delete(l.barriers, keyOfTaints(before.taints))
		}
	}
	n.barrier = nil
	if len(taints) == 0 {
		return
	}
	key := keyOfTaints(taints)
	b := l.barriers[key]
	if b == nil {
		b = &barrier{taints: taints, nodes: map[*node]bool{}}
		for _, set := range l.tolerations {
			if set.tolerates(taints) {
				b.tolerant++
			}
		}
		l.barriers[key] = b
	}
	b.nodes[n] = true
	n.barrier = b
}

func keyOfTaints(taints []corev1.Taint) string {
	var parts []string
	for _, t := range taints {
		parts = append(parts, t.Key, t.Value, string(t.Effect))
	}
	return keyOf(parts...)
}

// keepOff are the taints of a node that keep pods off, and what comes to the same.
func keepOff(n *corev1.Node) []corev1.Taint {
	var taints []corev1.Taint
	for _, t := range n.Spec.Taints {
		if t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute {
			taints = append(taints, t)
		}
	}
	if n.Spec.Unschedulable {
		taints = append(taints, corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
	}
	if !ready(n) {
		taints = append(taints, corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule})
	}
	return taints
}

// follow counts the tolerations of a task that came, changed, finished, or went; nil for none.
func (l *ledger) follow(before, after *Task) {
	was, is := before != nil && !before.Completed(), after != nil && !after.Completed()
	if was && is && slices.Equal(before.Pod.Spec.Tolerations, after.Pod.Spec.Tolerations) {
		return
	}
	if is {
		l.tally(after.Pod, 1)
	}
	if was {
		l.tally(before.Pod, -1)
	}
}

// barred reports whether no task may go to a node.
func (n *node) barred() bool { return n.barrier != nil && n.barrier.tolerant == 0 }

// gauge brings up to date what is usable of a node.
func (l *ledger) gauge(n *node) {
	var usable, shut resource.Vector
	switch {
	case !n.known:
	case n.barred():
		usable = n.used.Clone()
		usable.Sub(n.foreign)
		shut = n.allocatable.Beyond(n.used)
	default:
		usable = n.allocatable.Beyond(n.foreign)
	}
	if !usable.Equal(n.usable) {
		l.usable.Sub(n.usable)
		l.usable.Add(usable)
		l.usableChanges++
	}
	l.shut.Sub(n.shut)
	l.shut.Add(shut)
	n.usable, n.shut = usable, shut
}

// Usable returns what of the cluster tasks can use or hold, and a number that is another one whenever that changes.
func (s *State) Usable() (usable resource.Vector, changes uint64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.ledger.usable.Clone(), s.ledger.usableChanges
}

// UsableChanges returns the number that Usable does.
func (s *State) UsableChanges() uint64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.ledger.usableChanges
}
