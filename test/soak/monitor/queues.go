// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"fmt"
	"slices"
	"time"

	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/pkg/queue/proportion"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// queue is what a queue is allowed and what its pods hold.
type queue struct {
	name   string
	groups map[*group]bool
	weight int64
	// changed is when the queue's object last changed.
	changed                         time.Time
	capability, guarantee, deserved resource.Vector
	// held is what bound pods ask for that do not end; waits is what the others ask for.
	held, waits resource.Vector
	// over is since when the queue has been above its capability though it got pods then; evidence is how that began.
	over     time.Time
	evidence string
	reported bool
	// changes are the latest changes of what is held, evictions aside.
	changes []change
}

// change is a pod that began to hold room, or ceased to for other reasons than an eviction.
type change struct {
	at      time.Time
	bound   bool
	group   *group
	request resource.Vector
}

func (m *Monitor) queue(name string) *queue {
	q := m.queues[name]
	if q == nil {
		q = &queue{name: name, groups: map[*group]bool{}}
		m.queues[name] = q
	}
	return q
}

func (q *queue) set(spec *volcano.QueueSpec, now time.Time) {
	capability, guarantee := resource.FromList(spec.Capability), resource.FromList(spec.Guarantee.Resource)
	deserved := resource.FromList(spec.Deserved)
	if !q.changed.IsZero() && q.weight == int64(spec.Weight) && capability.Equal(q.capability) &&
		guarantee.Equal(q.guarantee) && deserved.Equal(q.deserved) {
		return // Only its status has changed.
	}
	q.weight, q.capability, q.guarantee, q.deserved, q.changed = int64(spec.Weight), capability, guarantee, deserved, now
}

// count adds what a pod in some state holds or waits for, n times.
func (q *queue) count(p *pod, in state, n int64) {
	switch in {
	case held:
		q.held.AddTimes(p.request, n)
	case waiting:
		q.waits.AddTimes(p.request, n)
	case unknown, done, over:
	}
}

func (q *queue) note(c change) { q.changes = append(q.changes, c) }

func (q *queue) forget(before time.Time) {
	q.changes = slices.DeleteFunc(q.changes, func(c change) bool { return c.at.Before(before) })
}

// checkCapability looks at a queue that has just got a pod: above its capability it must not get any, even if it was
// within that before it was lowered. One that was lowered a moment ago may not be known yet to whoever bound the pod.
func (m *Monitor) checkCapability(q *queue, p *pod, now time.Time) {
	if now.Sub(q.changed) <= m.config.Lag || !q.over.IsZero() {
		return
	}
	for _, most := range q.capability {
		if has := q.held.Get(most.Name); has > most.Value && p.request.Get(most.Name) > 0 {
			q.over, q.evidence = now, fmt.Sprintf("queue %s held %d of %s, its capability is %d since %s; the pod bound first is %s of %s",
				q.name, has, most.Name, most.Value, q.changed.Format(time.TimeOnly), p.name, p.group.key)
		}
	}
}

// judgeCapability judges a queue that got pods above its capability. A moment, in which the API server is being asked to
// evict those whose place they take, is counted; what lasts longer is a violation.
func (m *Monitor) judgeCapability(q *queue, now time.Time) {
	if q.over.IsZero() {
		return
	}
	above := slices.ContainsFunc(q.capability, func(most resource.Amount) bool { return q.held.Get(most.Name) > most.Value })
	lasts := now.Sub(q.over)
	switch {
	case !above:
		if !q.reported {
			m.figures.OverMoments++
			m.figures.OverLongest = max(m.figures.OverLongest, lasts)
		}
		q.over, q.reported = time.Time{}, false
	case lasts > m.config.Lag && !q.reported:
		q.reported = true
		m.violate(OverCapability, q.over, []string{q.name}, "%s; after %s it holds %s", q.evidence, lasts, q.held)
	}
}

// sample is what queues were due at a time.
type sample struct {
	at  time.Time
	due map[string]resource.Portion
}

// sample keeps what queues are due now.
func (m *Monitor) sample(now time.Time) {
	m.samples = append(m.samples, sample{at: now, due: m.due()})
	old := now.Add(-m.config.Hold - 2*m.config.Lag)
	m.samples = slices.DeleteFunc(m.samples, func(s sample) bool { return s.at.Before(old) })
}

// leastDue is the least that a queue was due of each resource between two times.
func (m *Monitor) leastDue(name string, from, to time.Time) (due resource.Portion, known bool) {
	for _, s := range m.samples {
		if s.at.Before(from) || s.at.After(to) {
			continue
		}
		if !known {
			due, known = slices.Clone(s.due[name]), true
			continue
		}
		for i := range due {
			due[i].Value = min(due[i].Value, s.due[name].Get(due[i].Name))
		}
	}
	return due, known
}

// due is what queues are due now. Of the scheduler only the division is used.
func (m *Monitor) due() map[string]resource.Portion {
	var all []*queue
	for _, q := range m.queues {
		if !q.changed.IsZero() {
			all = append(all, q)
		}
	}
	slices.SortFunc(all, func(a, b *queue) int {
		if a.name < b.name {
			return -1
		}
		return 1
	})
	var guaranteed resource.Vector
	for _, q := range all {
		guaranteed.Add(q.guarantee)
	}
	left := m.total.Beyond(guaranteed)
	due := map[string]resource.Portion{}
	var asking []*queue
	var demands []proportion.Demand
	for _, q := range all {
		most := left.Clone()
		most.Add(q.guarantee)
		limit := resource.Limit{Amounts: most.Portion(), Unnamed: resource.Nothing}
		limit.Tighten(q.capability.Portion())
		if m.config.ByObject {
			part := resource.Limit{Amounts: q.deserved.Portion()}
			part.Tighten(limit.Amounts)
			due[q.name] = part.Amounts.AtLeast(q.guarantee)
		} else if len(q.groups) > 0 {
			request := q.held.Clone()
			request.Add(q.waits)
			asking = append(asking, q)
			demands = append(demands, proportion.Demand{Weight: q.weight, Request: request, Guarantee: q.guarantee, Limit: limit})
		}
	}
	if len(demands) > 0 {
		for i, part := range proportion.Divide(m.total, demands) {
			due[asking[i].name] = part
		}
	}
	return due
}
