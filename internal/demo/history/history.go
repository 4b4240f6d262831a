// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
)

// History is what has been seen of the workloads. It is fed with every event in order; it is not safe for concurrent
// use.
type History struct {
	begun   time.Time
	entries []*entry
	// partialLimit is how long a gang may hold nodes for fewer pods than its minimum, which is how long binding takes.
	partialLimit time.Duration
}

// New returns the history of workloads that were applied from the given time on.
func New(workloads []Workload, begun time.Time, partialLimit time.Duration) *History {
	h := &History{begun: begun, partialLimit: partialLimit}
	for _, w := range workloads {
		h.entries = append(h.entries, &entry{Workload: w, pods: map[types.UID]*pod{}, lives: map[types.UID]*life{}})
	}
	return h
}

// state is where a pod is in its life.
type state uint8

const (
	pending state = iota
	// bound to a node, and not running yet.
	bound
	running
	succeeded
	failed
	numStates
)

// pod is what matters of a pod.
type pod struct {
	state   state
	node    string
	request corev1.ResourceList
	// why is what the pod says about not having a node.
	why string
}

// bind is a pod's being seen with a node for the first time.
type bind struct {
	at   time.Time
	node string
}

// entry is the history of one workload.
type entry struct {
	Workload
	// seen: the API server has told of it.
	seen  bool
	pods  map[types.UID]*pod
	lives map[types.UID]*life
	binds []bind
	phase volcano.PodGroupPhase
	// why is what the PodGroup says about waiting; empty when it does not wait.
	why string
	// partialSince is when the gang came to hold too few nodes; zero when it does not.
	partialSince time.Time
	// partial is the longest time it held too few.
	partial time.Duration
}

// Pod takes in a pod as it is now.
func (h *History) Pod(p *corev1.Pod, now time.Time) {
	for _, e := range h.entries {
		if e.owns(p) {
			e.put(p, now)
		}
	}
}

// PodGone takes in that a pod was deleted.
func (h *History) PodGone(p *corev1.Pod, now time.Time) {
	for _, e := range h.entries {
		if _, ok := e.pods[p.UID]; ok {
			delete(e.pods, p.UID)
			e.live(p.UID, &pod{state: failed}, now)
			e.checkPartial(now)
		}
	}
}

// Group takes in a PodGroup as it is now.
func (h *History) Group(g *volcano.PodGroup) {
	for _, e := range h.entries {
		if !e.Gang || e.Name != g.Name {
			continue
		}
		e.seen, e.phase, e.why = true, g.Status.Phase, ""
		for _, c := range g.Status.Conditions {
			if c.Type == volcano.PodGroupUnschedulableType && c.Status == corev1.ConditionTrue {
				e.why = c.Message
			}
		}
	}
}

func (e *entry) put(p *corev1.Pod, now time.Time) {
	e.seen = true
	before := e.pods[p.UID]
	after := &pod{state: stateOf(p), node: p.Spec.NodeName, request: requestOf(p), why: whyOf(p)}
	e.pods[p.UID] = after
	if after.node != "" && (before == nil || before.node == "") {
		e.binds = append(e.binds, bind{at: now, node: after.node})
	}
	e.live(p.UID, after, now)
	e.checkPartial(now)
}

// checkPartial keeps the time for which a gang holds nodes for some pods and not for its minimum. Pods that succeeded
// count toward the minimum.
func (e *entry) checkPartial(now time.Time) {
	n := e.counts()
	holds := n[bound] + n[running]
	if e.Gang && holds > 0 && holds+n[succeeded] < e.Min {
		if e.partialSince.IsZero() {
			e.partialSince = now
		}
		return
	}
	e.partial = e.longestPartial(now)
	e.partialSince = time.Time{}
}

func (e *entry) longestPartial(now time.Time) time.Duration {
	if e.partialSince.IsZero() {
		return e.partial
	}
	return max(e.partial, now.Sub(e.partialSince))
}

func (e *entry) counts() (n [numStates]int) {
	for _, p := range e.pods {
		n[p.state]++
	}
	return n
}

func stateOf(p *corev1.Pod) state {
	switch {
	case p.Status.Phase == corev1.PodSucceeded:
		return succeeded
	case p.Status.Phase == corev1.PodFailed:
		return failed
	case p.Status.Phase == corev1.PodRunning:
		return running
	case p.Spec.NodeName != "":
		return bound
	}
	return pending
}

// requestOf sums up what the containers ask for; the demo's pods have no init containers.
func requestOf(p *corev1.Pod) corev1.ResourceList {
	total := corev1.ResourceList{}
	for i := range p.Spec.Containers {
		for name, amount := range p.Spec.Containers[i].Resources.Requests {
			sum := total[name]
			sum.Add(amount)
			total[name] = sum
		}
	}
	return total
}

func whyOf(p *corev1.Pod) string {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c.Message
		}
	}
	return ""
}
