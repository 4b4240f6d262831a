// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import "github.com/caldera-scheduler/caldera/pkg/model"

// Of the gangs that are broken one at a time goes before all other jobs of its queue.

// precedes reports whether a job goes before others because too few of its members have nodes: until its time is over, and while it has
// members that may have turns.
func (d *Dispatcher) precedes(job *model.Job) bool {
	if !job.Partial() || job.Counts.Placeable() == 0 || job.Blocked() != (model.Reason{}) {
		return false
	}
	return !d.broken.late(job.Key)
}

// chooseCompleter finds the first, in the order of jobs whatever their queues, of those that go before others. It alone may place its missing
// members as they fit; the others place all at once. Else two of which each has half of the room could grow against each other.
func (d *Dispatcher) chooseCompleter() {
	var first *waiting
	for w := range d.backlog.partial {
		if first == nil || d.cfg.Policies.CompareJobs(w.job, first.job) < 0 {
			first = w
		}
	}
	before := d.completer
	if d.completer = (model.JobKey{}); first != nil {
		d.completer = first.job.Key
	}
	if before == d.completer {
		return
	}
	for _, key := range []model.JobKey{before, d.completer} {
		if d.jobs[key] != nil {
			d.refresh(key, d.head(key))
		}
	}
	if first != nil && first.lot != nil && d.cfg.Evicts {
		// Others give way to it that did not before.
		first.lot.starving, d.newVictims.there = true, true
	}
}

// othersYield reports whether a job is the one that is completed first, and some broken gang comes after it whose minimum protects it no more: a
// gang that lost a member a moment ago is most often whole again soon.
func (d *Dispatcher) othersYield(key model.JobKey) bool {
	first := d.jobs[key]
	if key != d.completer || first == nil {
		return false
	}
	now := d.cfg.Clock.Now()
	for other, at := range d.broken.lapses() {
		if w := d.jobs[other]; w != nil && !at.After(now) && d.cfg.Policies.CompareJobs(first.job, w.job) < 0 {
			return true
		}
	}
	return false
}
