// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"fmt"
	"slices"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// job returns a job as it is now, with its tasks, or nil. Without the gang policy its tasks start each on their own.
func (d *Dispatcher) job(key model.JobKey) *model.Job {
	job := d.loosen(d.cfg.State.Job(key))
	if job == nil || key != d.completer {
		return job
	}
	marked := *job
	marked.Piecemeal = true
	return &marked
}

func (d *Dispatcher) loosen(job *model.Job) *model.Job {
	if job == nil || d.cfg.Policies.Gangs {
		return job
	}
	return job.Ungrouped()
}

// head returns a job as it is now, without its tasks, or nil.
func (d *Dispatcher) head(key model.JobKey) *model.Job {
	job := d.loosen(d.cfg.State.Head(key))
	if job == nil {
		return nil
	}
	w, outsized := d.jobs[key], d.cfg.NeverFits(job, d.nodes)
	if stalled := w != nil && w.stalled; stalled || outsized || key == d.completer {
		marked := *job
		marked.NeverFits, marked.Stalled, marked.Piecemeal = outsized, stalled, key == d.completer
		return &marked
	}
	return job
}

// measure takes in how large the nodes are: jobs may be too large for them, or no longer be.
func (d *Dispatcher) measure() {
	if d.events&(model.NodeChanged|model.NodeLost) == 0 {
		return
	}
	largest := d.nodes.Largest
	d.nodes = d.cfg.State.Totals()
	if slices.Equal(d.nodes.Largest, largest) {
		return
	}
	for key, w := range d.jobs {
		if d.cfg.NeverFits(w.job.Job, d.nodes) != w.job.NeverFits {
			d.changed[key] = true
		}
	}
}

// takeIn brings the accounts and the order up to date with what changed.
func (d *Dispatcher) takeIn() {
	now := d.cfg.Clock.Now()
	d.alarms.ring(now, func(key model.JobKey) { d.changed[key] = true })
	for key, job := range d.bookIn() {
		d.refresh(key, job)
	}
	d.chooseCompleter()
	clear(d.changed)
}

// bookIn tells the policies what changed, and returns the jobs that have to be looked at again.
func (d *Dispatcher) bookIn() map[model.JobKey]*model.Job {
	d.measure()
	policies := d.cfg.Policies
	jobs := make(map[model.JobKey]*model.Job, len(d.changed))
	for key := range d.changed {
		job := d.head(key)
		jobs[key] = job
		policies.SetJob(key, job)
	}
	if d.events&(model.NodeChanged|model.NodeLost) != 0 && policies.SetCluster(d.nodes.Allocatable) {
		// Shares of the cluster are part of the order of those that hold something.
		for key, w := range d.jobs {
			if _, ok := jobs[key]; !ok && w.job.Share > 0 {
				jobs[key] = w.job.Job
			}
		}
	}
	for name := range d.queues {
		policies.SetQueue(name, d.cfg.State.Queue(name))
	}
	policies.Update()
	if len(d.queues) > 0 {
		d.backlog.rebook()
		clear(d.queues)
		if barred := d.bars.renew(); len(barred) > 0 {
			for key, w := range d.jobs {
				if _, ok := jobs[key]; !ok && barred[w.job.Queue] {
					jobs[key] = w.job.Job
				}
			}
		}
	}
	return jobs
}

// refresh puts a job where it belongs: among the applicants, in the lot of its like, or aside with the reason.
func (d *Dispatcher) refresh(key model.JobKey, job *model.Job) {
	if released := d.broken.watch(key, job); released > 0 {
		d.setbacks.released(key, released)
	}
	w := d.jobs[key]
	if job == nil || !waits(job) {
		if w != nil {
			d.tell(w, model.Reason{})
			d.leave(w)
			d.admissions.withdraw(w)
			d.rank(w, nil)
			delete(d.jobs, key)
			d.alarms.drop(key)
		}
		if job == nil {
			d.setbacks.drop(key)
		}
		return
	}
	if w == nil {
		w = &waiting{at: -1, setback: d.setbacks.of[key]}
		d.jobs[key] = w
	}
	// The order of lots and applicants must not change under them.
	d.backlog.rerank(w, func() { d.rank(w, job) })
	if w.applied != nil {
		w.applied.to.jobs.Put(w.applied)
	}
	d.place(w)
	d.restall(w)
}

// rank records a job as it is now; nil when it no longer waits.
func (d *Dispatcher) rank(w *waiting, job *model.Job) {
	if w.partial = job != nil && d.precedes(job); w.partial {
		d.backlog.partial[w] = true
	} else {
		delete(d.backlog.partial, w)
	}
	if job != nil {
		w.job = d.cfg.Policies.Rank(job)
	}
}

// place decides what a job waits for.
func (d *Dispatcher) place(w *waiting) {
	key, job := w.job.Key, w.job.Job
	admitted := job.LetIn()
	if admitted {
		d.admissions.withdraw(w)
		d.watchPods(w)
	}
	now := d.cfg.Clock.Now()
	if until := d.absence.ofJob(key, now); !until.IsZero() {
		d.alarms.set(key, until)
		d.leave(w)
		d.admissions.withdraw(w)
		return
	}
	if w.notBefore.After(now) {
		d.leave(w)
		d.admissions.withdraw(w)
		d.alarms.set(key, w.notBefore)
		if w.why != (model.Reason{}) {
			d.tell(w, w.why)
		}
		return
	}
	reason := d.blocked(job, admitted)
	if reason != (model.Reason{}) {
		d.leave(w)
		d.admissions.withdraw(w)
		d.tell(w, reason)
		return
	}
	switch {
	case !admitted && d.cfg.Policies.Enqueue:
		if !w.job.Deadline.IsZero() && w.job.Deadline.After(now) {
			d.alarms.set(key, w.job.Deadline)
		}
		d.admissions.apply(w)
		d.admissions.invite(w)
	case !job.Admitted:
		d.admissions.letIn(w)
		d.place(w)
	case job.Counts.Placeable() > 0:
		d.join(w)
	default:
		d.leave(w)
		d.tell(w, model.Reason{})
	}
}

// waits reports whether a job has something to wait for: to be let into its queue, tasks without a node, members to make
// up its minimum, or a PodGroup to be mended.
func waits(job *model.Job) bool {
	switch {
	case job.Counts.Placeable() > 0, job.Counts.PendingGated > 0, job.Partial(), job.Blocked().Kind == model.InvalidPodGroup:
		return true
	}
	return job.Key.Source == model.FromVolcano && job.Group != nil && job.Counts.Total() == 0 && !job.Over()
}

// blocked says what keeps a job from having turns, or from being let into its queue, at all.
func (d *Dispatcher) blocked(job *model.Job, admitted bool) model.Reason {
	if reason := d.cfg.Policies.Bars(job); reason != (model.Reason{}) {
		return reason
	}
	reason := job.Blocked()
	switch {
	case reason == (model.Reason{}):
	case job.Counts.Total() == 0 && job.Group != nil && reason.Kind != model.InvalidPodGroup:
		// Its pods may not exist before it is let in.
		return model.Reason{}
	case admitted, !d.cfg.Policies.Enqueue, job.Group == nil, job.Group.MinResources == nil, reason.Kind == model.InvalidPodGroup:
		// A job that does not say what it needs is judged by its pods, once they are all there.
		return reason
	default:
		return model.Reason{}
	}
	if admitted && !d.cfg.Policies.Backfill && job.Counts.Placeable() > 0 && onlyBestEffort(job) {
		return model.Reason{Kind: model.BackfillOff, Message: fmt.Sprintf(
			"%d pods ask for no resources, and the action backfill, which places such pods, is not configured: add it, or requests", job.Counts.Placeable())}
	}
	return model.Reason{}
}

func onlyBestEffort(job *model.Job) bool {
	for _, d := range job.Pending {
		if !d.Request.BestEffort() {
			return false
		}
	}
	return true
}
