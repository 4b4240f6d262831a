// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package eviction

import (
	"maps"
	"time"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// memory is how long evictions of a job's pods are remembered to find jobs that evict each other in a circle.
const memory = time.Hour

// Flow is the way that room went: by which action, from which queue, for which; that is empty when it was for nobody.
type Flow struct{ Action, From, For string }

// Figures are the sums over all decisions since the scheduler started, those that are forgotten included.
type Figures struct {
	// Decisions are the numbers of decisions by action.
	Decisions map[string]uint64
	// Evictions are the numbers of pods that the API server agreed to evict.
	Evictions map[Flow]uint64
	// Wasted are the evicted pods of decisions that ended as Wasted.
	Wasted uint64
	// Cycles are the evicted pods of a job for which, within the hour before, pods of the beneficiary were evicted.
	Cycles uint64
	// Requested is what the beneficiaries of the evictions asked for, and Evicted is what the pods held that were evicted for
	// them.
	Requested, Evicted resource.Vector
}

// queues are the queue that lost room and the queue that got it.
type queues struct{ from, to string }

// jobs are the job that lost pods and the job that got the room.
type jobs struct{ from, to model.JobKey }

// counts are the figures and what is needed to keep them.
type counts struct {
	decisions         map[string]uint64
	evictions         map[Flow]uint64
	wasted, cycles    uint64
	requested, taking resource.Vector
	// taken is when a queue last took from another, as of the time of the decision.
	taken map[queues]time.Time
	// losses is when a job last lost pods for another, likewise.
	losses map[jobs]time.Time
}

func newCounts() counts {
	return counts{
		decisions: map[string]uint64{}, evictions: map[Flow]uint64{},
		taken: map[queues]time.Time{}, losses: map[jobs]time.Time{},
	}
}

// begun counts a decision.
func (c *counts) begun(d *Decision) { c.decisions[d.Action]++ }

// evicted counts an evicted pod, which is marked as such already.
func (c *counts) evicted(d *Decision, v *Victim) {
	c.evictions[Flow{Action: d.Action, From: v.Queue, For: d.Queue}]++
	if d.forNobody() {
		return
	}
	if d.evicted() == 1 {
		for _, m := range d.Members {
			c.requested.Add(m.Request)
		}
	}
	c.taking.Add(v.Request)
	if lost, ok := c.losses[jobs{from: d.Beneficiary, to: v.Job}]; ok && d.Action != Consolidate && d.Time.Sub(lost) <= memory {
		c.cycles++
	}
	c.took(d, v)
}

// took notes who took from whom.
func (c *counts) took(d *Decision, v *Victim) {
	if d.Action == Consolidate || d.forNobody() {
		// Nobody loses room, or nobody gets it.
		return
	}
	if v.Queue != d.Queue {
		note(c.taken, queues{from: v.Queue, to: d.Queue}, d.Time)
	}
	note(c.losses, jobs{from: v.Job, to: d.Beneficiary}, d.Time)
}

// note keeps the latest time of each key.
func note[K comparable](times map[K]time.Time, key K, t time.Time) {
	if t.After(times[key]) {
		times[key] = t
	}
}

// forget drops what lies too far back to matter.
func (c *counts) forget(now time.Time, cooldown time.Duration) {
	maps.DeleteFunc(c.taken, func(_ queues, t time.Time) bool { return now.Sub(t) > cooldown })
	maps.DeleteFunc(c.losses, func(_ jobs, t time.Time) bool { return now.Sub(t) > memory })
}

// Figures returns the sums over all decisions.
func (l *Ledger) Figures() Figures {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Figures{
		Decisions: maps.Clone(l.counts.decisions), Evictions: maps.Clone(l.counts.evictions),
		Wasted: l.counts.wasted, Cycles: l.counts.cycles,
		Requested: l.counts.requested.Clone(), Evicted: l.counts.taking.Clone(),
	}
}
