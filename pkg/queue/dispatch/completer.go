// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import "github.com/caldera-scheduler/caldera/pkg/model"

// Of the gangs that are broken one at a time goes before all other jobs of its queue.

// precedes reports whether a job goes before others because too few of its members have nodes: until its time is over, and while it has
// members that may have turns.
func (g *brokenGangs) precedes(job *model.Job) bool {
	if !job.Partial() || job.Counts.Placeable() == 0 || job.Blocked() != (model.Reason{}) {
		return false
	}
	return !g.late(job.Key)
}

// chooseCompleter finds the first, in the order of jobs whatever their queues, of those that go before others. It alone may place its missing
// members as they fit; the others place all at once. Else two of which each has half of the room could grow against each other.
func (s *waitlist) chooseCompleter() {
	var first *waiting
	for w := range s.lots.backlog.partial {
		if first == nil || s.cfg.Policies.CompareJobs(w.job, first.job) < 0 {
			first = w
		}
	}
	before := s.completer
	if s.completer = (model.JobKey{}); first != nil {
		s.completer = first.job.Key
	}
	if before == s.completer {
		return
	}
	for _, key := range []model.JobKey{before, s.completer} {
		if s.jobs[key] != nil {
			s.refresh(key, s.summary(key))
		}
	}
	if first != nil && first.lot != nil && s.cfg.Evicts {
		// Others give way to it that did not before.
		first.lot.starving, s.lots.newVictims.there = true, true
	}
}

// othersYield reports whether a job is the one that is completed first, and some broken gang comes after it whose minimum protects it no more: a
// gang that lost a member a moment ago is most often whole again soon.
func (s *waitlist) othersYield(key model.JobKey) bool {
	first := s.jobs[key]
	if key != s.completer || first == nil {
		return false
	}
	now := s.cfg.Clock.Now()
	for other, at := range s.broken.lapses() {
		if w := s.jobs[other]; w != nil && !at.After(now) && s.cfg.Policies.CompareJobs(first.job, w.job) < 0 {
			return true
		}
	}
	return false
}
