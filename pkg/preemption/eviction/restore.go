// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package eviction

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Restore takes in decisions of a scheduler that led before this one, in any order. It is to be called before any decision is made, and does nothing
// after. What that scheduler did not learn remains unknown: nobody follows up its decisions. Which queue took from which, who took from whom, and which
// pods were moved counts as if it had been decided here. The figures do not: they are those of one scheduler.
func (l *Ledger) Restore(decisions []Decision, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last > 0 {
		return
	}
	decisions = slices.Clone(decisions)
	slices.SortFunc(decisions, func(a, b Decision) int { return cmp.Compare(a.ID, b.ID) })
	for i := range decisions {
		if decisions[i].ID <= l.last {
			continue
		}
		e := &entry{Decision: *decisions[i].clone(), closed: true, since: now}
		l.last = e.ID
		if e.Outcome == Pending {
			e.Outcome, e.Ended = Interrupted, now
		}
		for _, v := range e.Victims {
			switch v.State {
			case Planned, Sent:
				v.State = Lost
			case Leaving:
				l.victims[v.UID] = append(l.victims[v.UID], victim{Victim: v, of: e})
			}
			if v.Evicted {
				l.counts.took(&e.Decision, v)
			}
		}
		l.Moves.begun(&e.Decision)
		l.decisions = append(l.decisions, e)
	}
	l.counts.forget(now, l.cooldown)
	l.dropOldest()
}

// Named returns the decision with the names of its pods only, as it may be written down.
func (d *Decision) Named() Decision {
	named := d.clone()
	for _, v := range named.Victims {
		if v.Pod != nil {
			v.Pod = nameOnly(v.Pod)
		}
	}
	return *named
}

// nameOnly is what is remembered of a pod once its decision is over: which it was, and whose.
func nameOnly(pod *corev1.Pod) *corev1.Pod {
	named := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}}
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		named.OwnerReferences = []metav1.OwnerReference{*owner}
	}
	return named
}
