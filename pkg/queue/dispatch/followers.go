// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"github.com/caldera-scheduler/caldera/pkg/model"
)

// mostFollowers is how many jobs may share a turn with the first: what they need is planned and placed in some milliseconds, for which a
// more important job may have to wait.
const mostFollowers = 31

// followers returns the tasks of the jobs that would have the next turns one after the other if each found room: single pods that ask for
// what the turn's job asks for, while nobody else is in between. A turn for each would plan for each anew. The lock is held.
func (d *Dispatcher) followers(t *turn) []*model.Task {
	l, lead := d.lots[t.lot], d.jobs[t.job]
	if l == nil || lead == nil || lead.lot != l || !single(lead.job.Job) || !d.mayBeFollowed(t) || !d.unready(l) {
		return nil
	}
	defer d.makeReady(l)
	var rival *waiting
	if line := d.lines[l.key.queue]; line.ready.Len() > 0 {
		rival = line.ready.Top().best()
	}
	var tasks []*model.Task
	var out []*waiting
	for l.jobs.Len() > 0 && len(tasks) < mostFollowers {
		w := l.best()
		if rival != nil && compareJobs(d.cfg.Policies, rival, w) < 0 {
			break
		}
		out = append(out, l.jobs.Pop())
		if w == lead {
			continue
		}
		task := d.only(w)
		if task == nil {
			break
		}
		tasks = append(tasks, task)
	}
	for _, w := range out {
		l.jobs.Put(w)
	}
	return tasks
}

// mayBeFollowed reports whether a placement of the turn's job says nothing about whose turn is next. Where several queues have jobs it may
// change their order, and policies from outside may go by anything. Evictions that are not agreed to may be refused, and their room is not to be counted on.
func (d *Dispatcher) mayBeFollowed(t *turn) bool {
	return len(d.active) == 1 && !t.borrowing && !t.nodesFirst && t.limit == (model.Reason{}) &&
		!d.cfg.Policies.HasOutsiders() && len(d.cfg.State.Evicting()) == 0
}

// only returns the task of a job that is a single pod; nil when it is more, has nothing to place, or asks for something else by now.
func (d *Dispatcher) only(w *waiting) *model.Task {
	job := d.job(w.job.Key)
	switch {
	case job == nil, !single(job):
		return nil
	case d.changed[job.Key] && keyOf(job, false) != w.lot.key:
		return nil
	}
	return job.Tasks[0]
}

// single reports whether a job is one pod that asks for something, may go anywhere, and for which no room is kept.
func single(job *model.Job) bool {
	return job.Counts.Total() == 1 && job.Counts.Placeable() == 1 && job.Counts.Nominated == 0 && job.Requirement().Tasks == 1 &&
		(job.Group == nil || job.Group.Topology == nil)
}
