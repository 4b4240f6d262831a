// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"github.com/caldera-scheduler/caldera/pkg/model"
)

// mostFollowers is how many jobs may share a turn with the first: what they need is planned and placed in some milliseconds, for which a
// more important job may have to wait.
const mostFollowers = 31

// followers returns the jobs that would have the next turns one after the other if each found room, as long as they are single pods. A
// turn for each would plan for each anew. The lock is held.
func (d *Dispatcher) followers(t *turn) []*model.Job {
	lead := d.jobs[t.job]
	if lead == nil || lead.lot == nil || lead.lot.key != t.lot || !single(lead.job.Job) || !d.mayBeFollowed(t) {
		return nil
	}
	line := d.backlog.lines[t.lot.lineKey]
	if line == nil || !line.ready.Has(lead.lot) {
		return nil
	}
	var jobs []*model.Job
	var out []*waiting
	for line.ready.Len() > 0 && len(jobs) < mostFollowers {
		l := line.ready.Top()
		w := l.best()
		if w != lead {
			job := d.follower(line, w, lead)
			if job == nil {
				break
			}
			jobs = append(jobs, job)
		}
		out = append(out, w)
		// The next one shows when this one is out of the order.
		d.backlog.unready(l)
		l.jobs.Remove(w)
		if l.jobs.Len() > 0 {
			d.backlog.makeReady(l)
		}
	}
	for _, w := range out {
		d.backlog.unready(w.lot)
		w.lot.jobs.Put(w)
		d.backlog.makeReady(w.lot)
	}
	return jobs
}

// mayBeFollowed reports whether a placement of the turn's job says nothing about whose turn is next. A guest is let in by itself. Where
// several queues have jobs it may change their order, and policies from outside may go by anything. Evictions that are not agreed to may be refused, and their room is not
// to be counted on.
func (d *Dispatcher) mayBeFollowed(t *turn) bool {
	return d.backlog.queues() == 1 && !t.lot.guest && !t.borrowing && !t.nodesFirst && t.limit == (model.Reason{}) &&
		!d.cfg.Policies.HasOutsiders() && len(d.cfg.State.Evicting()) == 0
}

// follower returns a job that is a single pod; nil when it is more, has nothing to place, asks for something else by now, or has been
// told before that there is no room for what it asks: unless that is what the lead asks for, it is for a plan of its own to tell.
func (d *Dispatcher) follower(line *line, w, lead *waiting) *model.Job {
	if w.lot != lead.lot && w.lot.reason != (model.Reason{}) {
		return nil
	}
	if r := line.retries; d.backlog.retrying && r.Len() > 0 && compareJobs(d.cfg.Policies, r.Top().best(), w) < 0 {
		// One that may be tried again comes before it.
		return nil
	}
	job := d.job(w.job.Key)
	switch {
	case job == nil, !single(job):
		return nil
	case d.changed[job.Key] && keyOf(job, w.exact, false) != w.lot.key:
		return nil
	}
	return job
}

// single reports whether a job is one pod that asks for something, may go anywhere, and for which no room is kept.
func single(job *model.Job) bool {
	return job.Counts.Total() == 1 && job.Counts.Placeable() == 1 && job.Counts.Nominated == 0 && job.Requirement().Tasks == 1 &&
		(job.Group == nil || job.Group.Topology == nil)
}
