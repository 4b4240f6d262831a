// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"time"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// A turn comes at once, and pods do not: a controller creates them when their job is let in. Of three elastic jobs that are let in together, the
// first one to have its pods would take the whole cluster, and the minimums of the others would wait. In Volcano sessions are a second apart, which
// hides that. So a job that was let in has a claim to room for its minimum: until its pods exist, for a time at most, and from then on until its
// first plan, for as long at most. Tasks beyond the minimums of other jobs leave that room, and so do jobs of its queue that come after it. Room is counted in sum, of the nodes
// that jobs can use and of what the queue may hold. It is only left: nothing is kept from ordinary pods.

// promised are the jobs with such a claim. All methods are called with the dispatcher's lock held.
type promised struct {
	cfg *Config
	of  map[model.JobKey]*claimant
	// sum is what all of them claim, byQueue the same of each queue.
	sum     resource.Vector
	byQueue map[string]*resource.Vector
	// aside are the lots that leave them room; ended: somebody they leave it to may have none to claim any more, or less.
	aside lotSet
	ended bool
}

// claimant is a job with a claim, until when at most. Its pods do not exist yet, or it has had no plan.
type claimant struct {
	*waiting
	queue string
	claim resource.Vector
	until time.Time
}

func newPromised(cfg *Config) *promised {
	return &promised{cfg: cfg, of: map[model.JobKey]*claimant{}, byQueue: map[string]*resource.Vector{}, aside: lotSet{}}
}

// follow takes in a job that changed, and returns until when it has a claim whatever happens; zero if it has none.
func (s *promised) follow(w *waiting) (until time.Time) {
	job, now := w.job, s.cfg.Clock.Now()
	before, ended := s.of[job.Key], s.ended
	s.drop(w)
	if s.cfg.PromiseGrace == 0 || !job.LetIn() || job.Started() || job.NeverFits || !s.cfg.Policies.Gangs {
		w.letIn, w.whole, w.planned = time.Time{}, time.Time{}, false
		return time.Time{}
	}
	switch lacking := job.Counts.Total() < job.Min(); {
	case lacking && w.letIn.IsZero():
		w.letIn, until = now, now.Add(s.cfg.PromiseGrace)
	case lacking:
		until = w.letIn.Add(s.cfg.PromiseGrace)
	case w.letIn.IsZero() || w.planned:
		// Its turns are in the order of all others.
		return time.Time{}
	case w.whole.IsZero():
		w.whole, until = now, now.Add(s.cfg.PromiseGrace)
	default:
		until = w.whole.Add(s.cfg.PromiseGrace)
	}
	if !now.Before(until) {
		return time.Time{}
	}
	c := &claimant{waiting: w, queue: job.Queue, claim: job.Claim(), until: until}
	s.of[job.Key] = c
	s.add(c, 1)
	s.ended = ended || before != nil && !before.claim.Equal(c.claim)
	return until
}

// drop forgets the claim of a job.
func (s *promised) drop(w *waiting) {
	if c := s.of[w.job.Key]; c != nil {
		delete(s.of, w.job.Key)
		s.add(c, -1)
		s.ended = true
	}
}

// add adds n times a claim to the sums.
func (s *promised) add(c *claimant, n int64) {
	s.sum.AddTimes(c.claim, n)
	of := s.byQueue[c.queue]
	if of == nil {
		of = &resource.Vector{}
		s.byQueue[c.queue] = of
	}
	if of.AddTimes(c.claim, n); of.IsZero() {
		delete(s.byQueue, c.queue)
	}
}

// holds reports whether a job still has its claim: its pods are to come, or the scheduling queue is to learn of them, or it has its first turn before
// it.
func (s *promised) holds(c *claimant, now time.Time) bool {
	l := c.lot
	return now.Before(c.until) && (l == nil || s.aside[l] || l.stage == ready && l.reason == (model.Reason{}))
}

// stir has the lot of a job looked at again if that is its first now, and no extra.
func (s *promised) stir(w *waiting) {
	if w.lot != nil && s.aside[w.lot] && w.lot.best() == w && !w.job.Started() {
		s.ended = true
	}
}

// review forgets claims that have ended, and returns the lots that left room for them.
func (s *promised) review() (freed []*lot) {
	if len(s.of) == 0 && len(s.aside) == 0 {
		s.ended = false
		return nil
	}
	now := s.cfg.Clock.Now()
	for _, c := range s.of {
		if !s.holds(c, now) {
			c.planned = c.planned || c.job.Counts.Total() >= c.job.Min()
			s.drop(c.waiting)
		}
	}
	if s.ended {
		s.ended = false
		for l := range s.aside {
			freed = append(freed, l)
		}
		clear(s.aside)
	}
	return freed
}

// leaves returns until when the first job of a lot is to leave room that others were promised, at most; zero if it need not.
func (s *promised) leaves(l *lot, totals model.Totals) (until time.Time) {
	w := l.best()
	delete(s.aside, l)
	if len(s.of) == 0 || w.partial || w.job.Counts.Nominated > 0 {
		return until
	}
	job, idle := w.job.Job, totals.IdleForTasks()
	if of := s.byQueue[job.Queue]; covers(idle, job.Need(), s.sum) && (of == nil || s.queueCovers(job, *of)) {
		return until
	}
	claims, ofQueue, until := s.before(w)
	if until.IsZero() || covers(idle, job.Need(), claims) && s.queueCovers(job, ofQueue) {
		return time.Time{}
	}
	s.aside[l] = true
	return until
}

// before sums up the claims of those that a job is to leave room, and of these the ones in its queue, and tells when the first of them ends at most.
func (s *promised) before(w *waiting) (claims, ofQueue resource.Vector, until time.Time) {
	extra := w.job.Started()
	for _, c := range s.of {
		same := c.queue == w.job.Queue
		if c.waiting == w || !extra && (!same || compareJobs(s.cfg.Policies, c.waiting, w) > 0) {
			continue
		}
		claims.Add(c.claim)
		if same {
			ofQueue.Add(c.claim)
		}
		until = Earliest(until, c.until)
	}
	return claims, ofQueue, until
}

// queueCovers reports whether the queue of a job has room for what it needs and for claims, or has none for it anyway.
func (s *promised) queueCovers(job *model.Job, claims resource.Vector) bool {
	if claims.IsZero() {
		return true
	}
	q, own, need := s.cfg.Policies.Book().Queue(job.Queue), job.OwnHalf(), job.Need()
	all := need.Clone()
	all.Add(claims)
	return s.cfg.Policies.Allows(q, own, all, false) || !s.cfg.Policies.Allows(q, own, need, false)
}

// covers reports whether what is idle is enough for a need besides what others claim of the same resources.
func covers(idle, need, claims resource.Vector) bool {
	for _, a := range need {
		if claimed := claims.Get(a.Name); a.Value > 0 && claimed > 0 && a.Value+claimed > idle.Get(a.Name) {
			return false
		}
	}
	return true
}
