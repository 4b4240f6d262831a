// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// staleAfter is how old the numbers may be by which a job is not let in, or not let through a gate, before they are found out anew. Those of
// parked lots are renewed by their sweeps, or when the places that they wait for have become more or fewer by half; those of queues that are full
// whenever somebody asks.
const staleAfter = time.Minute

// mostRenewed is for how many lots plans are made again at a time because of their places: twenty a minute at most, so that those who may fit have
// their turns. The others have a plan by their sweeps.
const mostRenewed = 10

// Renewed returns why jobs wait, with numbers that are 5 minutes old at most, and has those renewed that are about to become older, or are wrong
// by half. It is for who keeps them on show, and meant to be called a few times a minute.
func (d *Dispatcher) Renewed() map[model.JobKey]model.Reason {
	d.mu.Lock()
	asks := false
	if d.running {
		d.lots.renewHeld()
		for _, renew := range []func() bool{d.lots.renewParked, d.waits.admissions.renew, d.waits.gates.renew} {
			asks = renew() || asks
		}
	}
	reasons := make(map[model.JobKey]model.Reason, len(d.waits.jobs))
	for key, w := range d.waits.jobs {
		if reason := w.reason(); reason != (model.Reason{}) {
			reasons[key] = reason
		}
	}
	d.mu.Unlock()
	if asks {
		d.wake()
	}
	return reasons
}

// renewHeld finds out anew what the queues of lots lack that are held. That it is something else now, or nothing, is left to their next turns.
func (s *lots) renewHeld() {
	for l := range s.backlog.aside[held] {
		if reason := s.limits.refuses(l.best().job.Job, false); reason.Same(l.reason) {
			l.reason = reason
		}
	}
}

// renewParked has plans made again for lots for which there are half as many places as there were, or half as many more, or of which half as many
// tasks lack one, and reports whether there are any. Lots for which there is room are woken by that.
func (s *lots) renewParked() (asks bool) {
	due := s.cfg.Clock.Now().Add(-sweepAfter)
	var wrong []*lot
	for l := range s.backlog.aside[parked] {
		if l.helps&byRoom != 0 && l.lacks() > 0 && l.explainedAt.After(due) && l.misleads() {
			wrong = append(wrong, l)
		}
	}
	slices.SortFunc(wrong, func(a, b *lot) int {
		return cmp.Or(a.explainedAt.Compare(b.explainedAt), bytes.Compare(a.key.shape[:], b.key.shape[:]))
	})
	for _, l := range wrong[:min(len(wrong), mostRenewed)] {
		l.explainedAt = due
		s.lookout.expect(l)
	}
	return len(wrong) > 0
}

// misleads reports whether the numbers of when the lot was last refused are wrong by half.
func (l *lot) misleads() bool {
	needs := l.places() + l.lacks()
	return changedByHalf(l.placesThen, l.places()) || changedByHalf(needs-l.placesThen, l.lacks())
}

func changedByHalf(then, now int) bool { return then != now && 2*max(then-now, now-then) >= then }

// renew has those voted on again whose numbers are old, and reports whether there are any.
func (s *admissions) renew() (asks bool) {
	now := s.cfg.Clock.Now()
	for _, a := range s.applying {
		if a.reason != (model.Reason{}) && now.Sub(a.rejectedAt) >= staleAfter {
			a.asks, asks = true, true
		}
	}
	s.asked = s.asked || asks
	return asks
}

// renew has those looked at again whose numbers are old, and reports whether there are any.
func (g *gates) renew() (asks bool) {
	now := g.cfg.Clock.Now()
	for _, c := range g.peers {
		if c.reason != (model.Reason{}) && now.Sub(c.refusedAt) >= staleAfter {
			c.fresh, asks = true, true
		}
	}
	g.fresh = g.fresh || asks
	return asks
}
