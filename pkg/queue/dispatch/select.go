// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/policy"
	"github.com/caldera-scheduler/caldera/pkg/queue/account"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// next takes the first job, of the first queue, that may fit and begins its turn.
func (d *Dispatcher) next() *turn {
	d.release()
	if len(d.active) == 0 && len(d.held) == 0 {
		return nil
	}
	totals := d.cfg.State.Totals()
	for line := range d.linesInOrder {
		for line.at >= 0 {
			if t := d.try(line.ready.Top(), totals, false); t != nil {
				return t
			}
		}
	}
	return d.lend(totals)
}

// try begins a turn for the first job of a lot. If it may not have one, the lot is no longer ready.
func (d *Dispatcher) try(l *lot, totals model.Totals, borrowing bool) *turn {
	w := l.best()
	if reason := d.limited(w.job.Job, borrowing); reason != (model.Reason{}) {
		d.hold(l, reason)
		return nil
	}
	// The first attempt is a full plan even when it must fail: its reason says what is short where.
	if l.reason != (model.Reason{}) && l.reason.Kind != model.QueueFull && !d.cfg.MayFit(w.job.Job, totals) {
		d.park(l, l.reason, 0)
		return nil
	}
	if job := d.job(w.job.Key); job != nil {
		if lead := d.cfg.Lead(job); lead != nil {
			d.turns++
			return &turn{number: d.turns, job: job.Key, lead: lead.Pod, borrowing: borrowing, progress: d.cfg.Clock.Now()}
		}
	}
	// The job changed since it was taken in, and will be taken in again.
	d.leave(w)
	return nil
}

// limited says what keeps the job's queue from holding what the job's next turn needs. Pods that ask for nothing are
// kept from nothing.
func (d *Dispatcher) limited(job *model.Job, borrowing bool) model.Reason {
	need := job.Need()
	if need.BestEffort() || d.outsized(job, need) {
		return model.Reason{}
	}
	policies, q := d.cfg.Policies, d.queueOf(job)
	if !borrowing {
		if reason := policies.Overused(q); reason != (model.Reason{}) {
			return reason
		}
	}
	return policies.Refuses(q, need, borrowing)
}

// outsized reports whether a turn needs more than all nodes have while the queue's own bound allows it: then it is nodes
// that are missing, which only a plan can tell of in their terms.
func (d *Dispatcher) outsized(job *model.Job, need resource.Vector) bool {
	if need.Exceeding(d.cfg.Policies.Book().Cluster()) == nil {
		return false
	}
	return d.queueOf(job).Capability.Refuses(need, func(corev1.ResourceName) int64 { return 0 }) == nil
}

// budget is what the queue may take for a turn of the job.
func (d *Dispatcher) budget(job *model.Job, borrowing bool) *policy.Budget {
	if d.outsized(job, job.Need()) {
		return &policy.Budget{}
	}
	return d.cfg.Policies.Budget(d.queueOf(job), borrowing)
}

func (d *Dispatcher) queueOf(job *model.Job) *account.Queue {
	return d.cfg.Policies.Book().Queue(job.Queue)
}

// hold sets a lot aside until its queue may have more room.
func (d *Dispatcher) hold(l *lot, reason model.Reason) {
	d.unready(l)
	d.cfg.Recorder.Parked(reason.Kind)
	d.held[l] = true
	d.give(l, reason)
}

// release makes the lots ready again that a queue's limit held, if some queue may have more room since.
func (d *Dispatcher) release() {
	loosened := d.cfg.Policies.Book().Loosened()
	if d.loosened == loosened {
		return
	}
	d.loosened = loosened
	for l := range d.held {
		delete(d.held, l)
		d.makeReady(l)
	}
}

// lend gives a turn to a gang that needs more than its queue will ever be due, once nobody else has a use for the room:
// two such gangs would otherwise keep each other waiting on an idle cluster. The queue's other limits stand.
func (d *Dispatcher) lend(totals model.Totals) *turn {
	var first *lot
	for l := range d.held {
		job := l.best().job.Job
		if !d.cfg.Policies.Outgrows(d.queueOf(job), job) || d.limited(job, true) != (model.Reason{}) {
			continue
		}
		if first == nil || d.compareHeld(l, first) < 0 {
			first = l
		}
	}
	if first == nil {
		return nil
	}
	delete(d.held, first)
	d.makeReady(first)
	return d.try(first, totals, true)
}

func (d *Dispatcher) compareHeld(a, b *lot) int {
	x, y := a.best(), b.best()
	if a.key.queue != b.key.queue {
		return d.cfg.Policies.CompareQueues(d.queueOf(x.job.Job), d.queueOf(y.job.Job))
	}
	return compareJobs(d.cfg.Policies, x, y)
}

// give records why the jobs of a lot wait, and tells it of those to whom it is news.
func (d *Dispatcher) give(l *lot, reason model.Reason) {
	changed := !l.reason.Same(reason)
	l.reason = reason
	for _, w := range l.jobs.Items() {
		if changed || !w.reported.Same(reason) {
			d.tell(w, reason)
		}
	}
}
