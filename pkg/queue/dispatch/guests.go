// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"time"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/policy"
)

// What a job was promised when it was let in keeps others out, so that it can start before them. If nodes refuse it though its queue and
// the cluster have room in sum, that may be so for good, and others that fit would wait for nothing. So once it has been refused for long,
// jobs that have their pods and would be let in but for it are its guests: they have turns after all others, and are let in if their plan
// holds. Those that fit nowhere stay outside, so that no more is promised than without guests. Whose pods are created once it is let in
// cannot be planned, and is let in if there is room for it in sum. Volcano keeps all of them out for ever.
//
// The same goes for a job that was let in because others might be evicted for it, if nobody is: its queue has no room for it.
//
// The same goes for a job that may have no turns for as long, most often because pods of its minimum do not exist. A ResourceQuota may be full,
// for instance. As long as more of its pods appear the promise holds.
//
// And it goes at once for a job that has failed, because the API server refuses to bind its pods for instance, until one of its pods is
// bound: it still has its turns before any guest, and whoever waited for it would wait as often as it fails.

// promise tells whether what a job was promised still keeps others out.
type promise struct {
	// stalled: the accounts know that it does not.
	stalled bool
	// podless is since when it has been without pods; zero when it is not.
	podless time.Time
	// idle is since when it may have no turns though it has pods, and has had no more of them than most; zero when it may.
	idle time.Time
	most int
	// letIn is since when it has been let in without the pods of its minimum; zero if it has not been. Whole is since when they have existed.
	// Planned: it has had its first plan since.
	letIn   time.Time
	whole   time.Time
	planned bool
}

// watchTurns keeps the time since when a job that was let in may have no turns.
func (s *waitlist) watchTurns(w *waiting) {
	pods := w.job.Counts.Total()
	if s.cfg.StalledAfter == 0 || !w.job.LetIn() || w.lot != nil || pods == 0 || s.gates.has(w.job.Key) {
		w.idle, w.most = time.Time{}, 0
		return
	}
	if now := s.cfg.Clock.Now(); w.idle.IsZero() || pods > w.most {
		w.idle, w.most = now, pods
	}
	if !s.idles(w) {
		s.alarms.set(w.job.Key, w.idle.Add(s.cfg.StalledAfter))
	}
}

// idles reports whether a job that was let in has not been able to have turns for long.
func (s *waitlist) idles(w *waiting) bool {
	return !w.idle.IsZero() && s.cfg.Clock.Since(w.idle) >= s.cfg.StalledAfter
}

// stall is a lot that nodes refuse, and since when.
type stall struct {
	lot   *lot
	since time.Time
}

// stalls are the lots that nodes refuse, in the order of since when, but for those that have stalled by now. All methods are called with the
// dispatcher's lock held.
type stalls struct {
	cfg     *Config
	refused []stall
}

// note takes in that a lot was refused: by nodes, or by its queue though others might have been evicted for it.
func (s *stalls) note(l *lot, reason model.Reason) {
	if !reason.FromNodes && reason.Kind != model.QueueFull || l.key.guest || !l.refusedSince.IsZero() || s.cfg.StalledAfter == 0 {
		return
	}
	l.refusedSince = s.cfg.Clock.Now()
	s.refused = append(s.refused, stall{l, l.refusedSince})
}

// next is when the next lot is to be looked at; zero if there is none.
func (s *stalls) next() time.Time {
	if len(s.refused) == 0 {
		return time.Time{}
	}
	return s.refused[0].since.Add(s.cfg.StalledAfter)
}

// due returns the lots of a backlog that nodes have refused for long by now. Lots that are gone, or were placed since, are forgotten.
func (s *stalls) due(now time.Time, b *backlog) []*lot {
	var due []*lot
	for ; len(s.refused) > 0; s.refused = s.refused[1:] {
		first := s.refused[0]
		if b.lots[first.lot.key] != first.lot || !first.lot.refusedSince.Equal(first.since) {
			continue
		}
		if s.next().After(now) {
			break
		}
		due = append(due, first.lot)
	}
	return due
}

// hosts reports whether nothing but promises to stalled jobs keeps a job from being let in.
func (s *admissions) hosts(world policy.World, w *waiting) bool {
	return !s.cfg.Policies.Book().Stalled().IsZero() && s.cfg.Policies.AdmitGuest(world, w.job) == (model.Reason{})
}

// trusted reports whether a job without pods is let in though it cannot be planned. What it is promised counts, so that no more are let in
// at once than there is room for.
func (s *admissions) trusted(world policy.World, w *waiting) bool {
	return w.job.Counts.Total() == 0 && s.hosts(world, w) && s.cfg.Policies.RoomBeside(world, w.job, s.keptIdle())
}

// inviteAll lets applicants have turns as guests, or no longer.
func (s *admissions) inviteAll(a *applicants, guests bool) {
	if a.guests == guests {
		return
	}
	a.guests = guests
	for _, w := range a.jobs.Items() {
		s.invite(w.waiting)
	}
}

// invite lets an applicant have turns as a guest if it may and has its pods.
func (s *admissions) invite(w *waiting) {
	if w.applied.to.guests && s.blocked(w.job.Job, true) == (model.Reason{}) && w.job.Counts.Placeable() > 0 {
		s.lots.join(w)
	} else {
		s.lots.leave(w)
	}
}

// welcome reports whether a guest may still be one; if not, it has no turns, and neither have those that claim the same.
func (s *admissions) welcome(w *waiting) bool {
	if s.hosts(s.world(), w) {
		return true
	}
	s.inviteAll(w.applied.to, false)
	return false
}

// receive lets a job in, if it is a guest, because the plan of its turn holds.
func (s *admissions) receive(w *waiting) (received bool) {
	if w == nil || w.applied == nil {
		return false
	}
	s.lots.leave(w)
	s.letIn(w)
	s.cfg.Policies.Entered(w.job.Job)
	return true
}
