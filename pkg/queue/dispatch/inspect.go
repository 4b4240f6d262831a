// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"slices"
	"time"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/queue/account"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// Hold has the dispatcher begin turns in Step only; a turn that is on goes on. It is for who steps a scheduler through
// time: whatever happens between two steps is taken in together, so that it does not matter in which order it came.
func (d *Dispatcher) Hold() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stepped = true
}

// Step has a dispatcher that is held take in what happened, and begin the next turn if none is on.
func (d *Dispatcher) Step() { d.advance(true) }

// Quiet reports whether the dispatcher runs and waits: no turn is on, all that happened is taken in, and what was decided is
// told. Next is the first time at which it looks again though nothing happens; zero when there is none.
func (d *Dispatcher) Quiet() (quiet bool, next time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.cfg.Clock.Now()
	quiet = d.running && d.turn == nil && len(d.changed) == 0 && d.events == 0 && len(d.queues) == 0 &&
		d.outbox.quiet()
	at := func(t time.Time) {
		quiet = quiet && t.After(now)
		if next.IsZero() || t.Before(next) {
			next = t
		}
	}
	if first := d.alarms.next(); !first.IsZero() {
		at(first)
	}
	for _, t := range d.appointments() {
		at(t)
	}
	return quiet, next
}

// appointments are the times at which lots are looked at though nothing happens.
func (d *Dispatcher) appointments() []time.Time {
	var times []time.Time
	for _, l := range d.backlog.lots {
		if (l.stage == parked || l.stage == held) && !l.notBefore.IsZero() {
			times = append(times, l.notBefore)
		}
	}
	if wait := d.untilRetry(); wait < idleWait {
		times = append(times, d.cfg.Clock.Now().Add(wait))
	}
	if at := d.cfg.Policies.Again(); !at.IsZero() {
		times = append(times, at)
	}
	if at := d.stalls.next(); !at.IsZero() {
		times = append(times, at)
	}
	if d.newVictims.there {
		times = append(times, d.newVictims.next)
	}
	if d.paused.After(d.cfg.Clock.Now()) {
		times = append(times, d.paused)
	}
	return times
}

// Reasons returns why jobs wait, as last found.
func (d *Dispatcher) Reasons() map[model.JobKey]model.Reason {
	d.mu.Lock()
	defer d.mu.Unlock()
	reasons := map[model.JobKey]model.Reason{}
	for key, w := range d.jobs {
		if w.reported != (model.Reason{}) {
			reasons[key] = w.reported
		}
	}
	return reasons
}

// QueueFigures is the account of a queue, for those who show it.
type QueueFigures struct {
	Name   string
	Parent string
	// Spec is the queue's object; nil for a queue that does not exist but is named by jobs.
	Spec *model.Queue
	// Usage is that of the queue's own jobs; of the whole subtree where the tree is looked at. Total is always that of
	// the subtree, Groups are the PodGroups of the queue itself.
	Usage, Total account.Usage
	Groups       account.Groups
	// Deserved is what the queue is due, Real what it may hold at most; both are empty where nothing divides the cluster.
	Deserved resource.Portion
	Real     resource.Limit
	// Capability is the queue's own bound.
	Capability resource.Limit
	// Overused: the queue holds more than its due.
	Overused bool
	// Share is the dominant part of its due that the queue holds.
	Share float64
	// Fault says why the queue is left out of scheduling; zero when it is not.
	Fault model.Reason
}

// Shares returns the dominant shares of the cluster that jobs hold.
func (d *Dispatcher) Shares() map[model.JobKey]float64 {
	whole := d.cfg.State.Totals().Allocatable.Portion()
	shares := map[model.JobKey]float64{}
	for job := range d.cfg.State.Snapshot().Jobs {
		shares[job.Key] = job.Usage.Allocated.Dominant(whole)
	}
	return shares
}

// Figures returns the accounts of all queues by name, as of all that happened. It works before Run, too.
func (d *Dispatcher) Figures() []QueueFigures {
	d.mu.Lock()
	defer d.mu.Unlock()
	policies := d.cfg.Policies
	if !d.running {
		d.changeAll()
	}
	for key, job := range d.bookIn() {
		switch {
		case d.running:
			// What was booked in remains to be taken in.
			d.changed[key] = true
		case job != nil:
			d.booked[key] = true
		}
	}
	if !d.running {
		clear(d.changed)
		d.events = 0
	}
	book := policies.Book()
	queues := make([]QueueFigures, 0, len(book.Queues()))
	for _, q := range book.Queues() {
		figures := QueueFigures{
			Name: q.Name, Spec: q.Spec, Usage: book.UsageOf(q).Clone(), Total: q.Total.Clone(), Groups: q.Own.Groups,
			Deserved: slices.Clone(q.Deserved), Real: q.Real.Clone(), Capability: q.Capability.Clone(),
			Overused: policies.Overused(q, nil) != (model.Reason{}), Share: q.Share, Fault: q.Fault,
		}
		if q.Parent != nil {
			figures.Parent = q.Parent.Name
		}
		queues = append(queues, figures)
	}
	return queues
}

// Waiting is a job that waits, for those who count them.
type Waiting struct {
	Job model.JobKey
	// Tasks is the number of tasks that have no node, Refused how many turns found no room for them.
	Tasks, Refused int
}

// Waiting returns the jobs that wait.
func (d *Dispatcher) Waiting() []Waiting {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := make([]Waiting, 0, len(d.jobs))
	for key, w := range d.jobs {
		list = append(list, Waiting{Job: key, Tasks: w.job.Counts.ByStatus[model.Pending], Refused: w.refused})
	}
	return list
}
