// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// taking is who takes room from others, and by which action.
type taking struct{ group, queue, action string }

// The two sentences by which a scheduler says for whom a pod is evicted: in the pod's condition, and in an event.
var (
	inCondition = regexp.MustCompile(`make room for \w+ (\S+) in queue (\S+) \((\w+)\)`)
	inEvent     = regexp.MustCompile(`because of (\w+): \w+ (\S+) in queue (\S+) needs`)
)

func takingOf(p *corev1.Pod) (taking, bool) {
	for _, c := range p.Status.Conditions {
		if c.Type != corev1.DisruptionTarget || c.Reason != corev1.PodReasonPreemptionByScheduler {
			continue
		}
		if s := inCondition.FindStringSubmatch(c.Message); s != nil {
			return taking{group: s[1], queue: s[2], action: s[3]}, true
		}
	}
	return taking{}, false
}

// Event takes in an event on a pod.
func (m *Monitor) Event(e *corev1.Event) {
	s := inEvent.FindStringSubmatch(e.Message)
	if s == nil || e.InvolvedObject.Kind != "Pod" {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.told[e.InvolvedObject.UID] = taking{group: s[2], queue: s[3], action: s[1]}
}

// eviction is a pod that ended by nobody's hand but the scheduler's.
type eviction struct {
	pod   *pod
	group *group
	queue *queue
	at    time.Time
	// gone is when the pod was gone; zero while it ends.
	gone time.Time
	// left is what its queue holds without it, and guarantee what that is guaranteed.
	left, guarantee resource.Vector
	changed         time.Time
	by              taking
	batch           *batch
	// served are the groups of the queue for which room was kept when this pod was evicted.
	served map[*group]bool
	judged bool
}

// pair is a job that lost pods and the one that got the room.
type pair struct{ from, to string }

// batch is what is evicted for one beneficiary until that starts.
type batch struct {
	by      taking
	group   *group
	begun   time.Time
	victims []*eviction
	// bound are the beneficiary's pods bound since, and request what they ask for.
	bound   int
	request resource.Vector
	started bool
	over    bool
}

// evicted takes in that a pod has been evicted.
func (m *Monitor) evicted(p *pod, now time.Time) {
	g := p.group
	if len(g.missing) > 0 && strings.HasPrefix(m.by(p).action, "gang") {
		g.missing = append(g.missing, now)
	} else {
		g.robbed(now, now.Add(-m.config.Lag))
	}
	g.note(now, "%s evicted from %s", p.name, p.node)
	e := &eviction{pod: p, group: g, queue: g.queue, at: now, left: g.queue.held.Clone(), guarantee: g.queue.guarantee, changed: g.queue.changed}
	e.served = map[*group]bool{}
	for _, b := range m.batches {
		if !b.over && b.by.queue == g.queue.name {
			e.served[b.group] = true
		}
	}
	for other := range g.queue.groups {
		if other.keeps {
			e.served[other] = true // On room that leaves anyway: there is no eviction for it.
		}
	}
	p.eviction = e
	m.evictions = append(m.evictions, e)
	m.figures.EvictedPods++
	m.figures.EvictedResources.Add(p.request)
	m.attribute(e)
}

// by is for whom a pod is evicted, as far as anybody has said.
func (m *Monitor) by(p *pod) taking {
	if p.told.group != "" {
		return p.told
	}
	return m.told[p.uid]
}

// Decided takes in for whom the scheduler's ledger says that a pod is evicted. It is asked only where neither the pod nor
// an event was seen to say so.
func (m *Monitor) Decided(uid types.UID, job, queue, action string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.told[uid]; !ok {
		m.told[uid] = taking{group: job, queue: queue, action: action}
	}
}

// attribute puts an eviction into the batch of its beneficiary, once that is known.
func (m *Monitor) attribute(e *eviction) {
	if e.batch != nil {
		return
	}
	if e.by = m.by(e.pod); e.by.group == "" {
		return
	}
	m.figures.Evicted[Flow{Action: e.by.action, From: e.queue.name, For: e.by.queue}]++
	g := m.group(e.by.group, e.at)
	e.group.note(e.at, "... for %s of queue %s (%s)", e.by.group, e.by.queue, e.by.action)
	b := g.batch
	if b == nil || b.over {
		b = &batch{by: e.by, group: g, begun: e.at}
		for _, p := range g.pods { // Those that were bound while the API server was being asked.
			if p.state == held && b.begun.Sub(p.placed) <= m.config.Lag {
				b.bound++
				b.request.Add(p.request)
			}
		}
		m.batches = append(m.batches, b)
		g.batch = b
		m.sample(e.at)
	}
	e.batch = b
	b.victims = append(b.victims, e)
	if e.at.Before(b.begun) {
		b.begun = e.at
	}
	m.checkCycle(e)
}

// checkCycle judges whether a beneficiary takes from a job that took from it a short while ago.
func (m *Monitor) checkCycle(e *eviction) {
	from, to := e.group.key, e.by.group
	if from == to {
		return
	}
	if lost, ok := m.losses[pair{from: to, to: from}]; ok && e.at.Sub(lost) <= m.config.Cycle && e.at.After(lost) {
		m.violate(Cycle, e.at, []string{from, to}, "%s of queue %s evicted for %s of queue %s (%s), which had lost pods to it %s before\n%s%s",
			e.pod.name, e.queue.name, to, e.by.queue, e.by.action, e.at.Sub(lost).Round(time.Second), e.group.describe(), m.group(to, e.at).describe())
	}
	m.losses[pair{from: from, to: to}] = e.at
}

// served takes in that a pod of a group got a node.
func (m *Monitor) served(p *pod) {
	if b := p.group.batch; b != nil && !b.over {
		b.bound++
		b.request.Add(p.request)
	}
}

// judgeEvictions judges evictions when it is known what room was kept or being taken while they were decided.
func (m *Monitor) judgeEvictions(now time.Time) {
	for _, e := range m.evictions {
		m.attribute(e)
		if e.judged || now.Sub(e.at) < m.config.Hold {
			continue
		}
		e.judged = true
		switch {
		case e.by.group == "":
			m.figures.Unexplained++
			m.violate(Unexplained, e.at, []string{e.group.key}, "pod %s of queue %s on %s ended, and nobody said for whom", e.pod.name, e.queue.name, e.pod.node)
		case e.by.queue != e.queue.name:
			m.judgeShares(e)
		}
	}
	m.evictions = slices.DeleteFunc(m.evictions, func(e *eviction) bool { return e.judged && e.batch == nil })
	m.evictions = slices.DeleteFunc(m.evictions, func(e *eviction) bool { return e.judged && e.batch.over })
}

// judgeShares judges whether an eviction for another queue left its queue what that is guaranteed and due. What it was due
// is the least since the decision may have been made.
func (m *Monitor) judgeShares(e *eviction) {
	begun := e.batch.begun
	from := begun.Add(-m.config.Lag)
	if e.queue.changed.After(from) || e.changed.After(from) {
		return
	}
	left := m.leftBy(e, from)
	objects := []string{e.queue.name, e.group.key, e.by.group}
	for _, least := range e.guarantee {
		if e.pod.request.Get(least.Name) > 0 && left.Get(least.Name) < least.Value {
			m.violate(BelowGuarantee, e.at, objects, "%s evicted for %s of queue %s (%s): queue %s is left with %d of %s, guaranteed are %d",
				e.pod.name, e.by.group, e.by.queue, e.by.action, e.queue.name, left.Get(least.Name), least.Name, least.Value)
		}
	}
	if due, known := m.leastDue(e.queue.name, from, begun); known && below(left, e.pod.request, due) {
		m.violate(BelowDue, e.at, objects, "%s evicted for %s of queue %s (%s): queue %s is left with %s (seen: %s), it is due %s",
			e.pod.name, e.by.group, e.by.queue, e.by.action, e.queue.name, left, e.left, portion(due))
	}
}

// leftBy is what a queue held after an eviction, as whoever decided it may have seen it: with what left the queue by itself
// after the decision may have been made, and what was bound just after the eviction was seen, or later to room that
// had been taken for it by then.
func (m *Monitor) leftBy(e *eviction, from time.Time) resource.Vector {
	left := e.left.Clone()
	for _, c := range e.queue.changes {
		after := c.at.Sub(e.at)
		switch {
		case !c.bound && c.at.After(from) && after <= 0,
			c.bound && after > 0 && (after <= m.config.Lag || e.served[c.group] && after <= m.config.Hold):
			left.Add(c.request)
		}
	}
	return left
}

// below reports whether what is left is less than due of every resource that a pod asks for and anything is due of: a
// queue that has more than its due of one of them may be reclaimed from.
func below(left, request resource.Vector, due resource.Portion) bool {
	counted := false
	for _, a := range request {
		d := due.Get(a.Name)
		if a.Name == corev1.ResourcePods || a.Value <= 0 || d <= 0 {
			continue
		}
		if float64(left.Get(a.Name)) >= d-1 {
			return false
		}
		counted = true
	}
	return counted
}

func portion(p resource.Portion) string {
	var parts []string
	for _, a := range p {
		parts = append(parts, fmt.Sprintf("%s %.0f", a.Name, a.Value))
	}
	return strings.Join(parts, ", ")
}

// judgeBatches judges whether beneficiaries start once their victims are gone.
func (m *Monitor) judgeBatches(now time.Time) {
	for _, b := range m.batches {
		if b.over {
			continue
		}
		last := b.begun
		waits := 0
		for _, v := range b.victims {
			switch {
			case v.gone.IsZero():
				waits++
			case v.gone.After(last):
				last = v.gone
			}
		}
		_, ready := b.group.placed()
		switch {
		case b.bound > 0 && ready >= b.group.least && waits == 0:
			b.started, b.over = true, true
			m.figures.StartedBatches++
			m.figures.StartedPods += b.bound
			m.figures.StartedResources.Add(b.request)
			for _, v := range b.victims {
				m.figures.StartedVictims++
				m.figures.StartedVictimResources.Add(v.pod.request)
			}
		case b.group.ended:
			b.over = true
			m.figures.EndedBatches++
			m.figures.EndedVictims += len(b.victims)
		case waits == 0 && now.Sub(last) > m.config.Start:
			b.over = true
			m.figures.WastedBatches++
			m.figures.WastedVictims += len(b.victims)
			m.figures.Wasted = append(m.figures.Wasted, fmt.Sprintf("%s: %d pods were evicted for %s of queue %s (%s), gone since %s; %d of its pods were bound since, %d of minMember %d are placed\n%s",
				b.begun.Format(time.TimeOnly), len(b.victims), b.by.group, b.by.queue, b.by.action, last.Format(time.TimeOnly), b.bound, ready, b.group.least, b.group.describe()))
		}
	}
	m.batches = slices.DeleteFunc(m.batches, func(b *batch) bool { return b.over })
}
