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

// usability is what of the nodes tasks can use, and by what that is told.
type usability struct {
	// usable sums up what tasks can use of the known nodes, or hold; usableChanges counts its changes.
	usable        resource.Vector
	usableChanges uint64
	// foreign is what pods hold of them which are nobody's tasks.
	foreign     resource.Vector
	tolerations tolerations
}

// tolerations are the sets of tolerations that tasks have, each with how many of them have it.
type tolerations map[string]*tolerationSet

type tolerationSet struct {
	of    []corev1.Toleration
	tasks int
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

// count adds n tasks that have the tolerations of a pod, and reports whether a set of them is new or gone.
func (ts tolerations) count(pod *corev1.Pod, n int) bool {
	list := lasting(pod)
	if list == nil {
		return false
	}
	var key strings.Builder
	for _, t := range list {
		for _, part := range []string{t.Key, string(t.Operator), t.Value, string(t.Effect)} {
			key.WriteString(part)
			key.WriteByte(0)
		}
	}
	set := ts[key.String()]
	if set == nil {
		set = &tolerationSet{of: list}
		ts[key.String()] = set
	}
	before := set.tasks
	if set.tasks += n; set.tasks == 0 {
		delete(ts, key.String())
	}
	return before == 0 || set.tasks == 0
}

// bars reports whether no task tolerates all of these taints.
func (ts tolerations) bars(taints []corev1.Taint) bool {
	if len(taints) == 0 {
		return false
	}
	for _, set := range ts {
		if !slices.ContainsFunc(taints, func(taint corev1.Taint) bool { return !set.tolerates(&taint) }) {
			return false
		}
	}
	return true
}

func (set *tolerationSet) tolerates(taint *corev1.Taint) bool {
	return slices.ContainsFunc(set.of, func(t corev1.Toleration) bool { return t.ToleratesTaint(logr.Discard(), taint, true) })
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
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
			taints = append(taints, corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule})
		}
	}
	return taints
}

// follow counts the tolerations of a task that came, changed, finished, or went; nil for none.
func (l *ledger) follow(before, after *Task) {
	was, is := before != nil && !before.Completed(), after != nil && !after.Completed()
	if was && is && slices.Equal(before.Pod.Spec.Tolerations, after.Pod.Spec.Tolerations) {
		return
	}
	changed := false
	if is {
		changed = l.tolerations.count(after.Pod, 1)
	}
	if was {
		changed = l.tolerations.count(before.Pod, -1) || changed
	}
	if !changed {
		return
	}
	for _, n := range l.nodes {
		if len(n.taints) > 0 {
			l.judge(n)
		}
	}
}

// judge finds anew whether tasks may go to a node.
func (l *ledger) judge(n *node) {
	n.barred = l.tolerations.bars(n.taints)
	l.gauge(n)
}

// gauge brings up to date what is usable of a node.
func (l *ledger) gauge(n *node) {
	var usable resource.Vector
	switch {
	case !n.known:
	case n.barred:
		usable = n.used.Clone()
		usable.Sub(n.foreign)
	default:
		usable = n.allocatable.Beyond(n.foreign)
	}
	if !usable.Equal(n.usable) {
		l.usable.Sub(n.usable)
		l.usable.Add(usable)
		l.usableChanges++
	}
	n.usable = usable
}

// held is what tasks hold of the known nodes.
func (l *ledger) held() resource.Vector {
	held := l.used.Clone()
	held.Sub(l.foreign)
	return held
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
