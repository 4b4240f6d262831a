// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"cmp"
	"time"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// nextUnlessPaused begins the next turn, or returns how long until one may begin though nothing happens.
func (d *Dispatcher) nextUnlessPaused() (t *turn, later time.Duration) {
	if pause := d.paused.Sub(d.cfg.Clock.Now()); pause > 0 {
		return nil, pause
	}
	if t := d.next(); t != nil {
		return t, 0
	}
	return nil, d.untilRetry()
}

// next takes the first job, of the first queue, that may fit and begins its turn.
func (d *Dispatcher) next() *turn {
	d.release()
	d.backlog.beginPass()
	if d.backlog.empty() {
		return nil
	}
	d.backlog.retrying = d.allowance.left(d.cfg.Clock.Now())
	totals := d.cfg.State.Totals()
	if t := d.roomiest(totals); t != nil {
		return t
	}
	for line := range d.backlog.linesInOrder {
		for l := d.backlog.first(line); l != nil; l = d.backlog.first(line) {
			if t := d.try(l, totals, false); t != nil {
				return t
			}
		}
	}
	return d.lend(totals)
}

// untilRetry is how long until lots may have turns that wait for the allowance.
func (d *Dispatcher) untilRetry() time.Duration {
	if !d.backlog.retriesLeft() {
		return idleWait
	}
	return d.allowance.until(d.cfg.Clock.Now())
}

// roomiest begins every second turn, while the allowance is spent, for the job with most places to spare: first plans, which are not put
// off, may come to nothing one after the other, and what surely fits is not to wait for all of them. Of those whose places are not
// counted yet the youngest is counted, so that whoever comes behind many is found.
func (d *Dispatcher) roomiest(totals model.Totals) *turn {
	if d.roomy = !d.roomy && !d.backlog.retrying; !d.roomy {
		return nil
	}
	d.countRoom()
	var most, youngest *lot
	for _, line := range d.backlog.active {
		for _, l := range line.ready.Items() {
			switch {
			case len(l.asks) == 0 && (youngest == nil || l.youngerThan(youngest)):
				youngest = l
			case len(l.asks) > 0 && (most == nil || l.roomierThan(most)):
				most = l
			}
		}
	}
	if youngest != nil {
		if d.rooms.follow(youngest); most == nil || youngest.roomierThan(most) {
			most = youngest
		}
	}
	if most == nil {
		return nil
	}
	return d.try(most, totals, false)
}

// roomierThan reports whether it is more likely that there is room for the lot's first job than for another's, as far as places are
// counted: they tell most of pods that go by their nodes alone.
func (l *lot) roomierThan(o *lot) bool {
	if a, b := l.best().job.Traits == 0, o.best().job.Traits == 0; a != b {
		return a
	}
	if a, b := l.spare(), o.spare(); a != b {
		return a > b
	}
	return l.youngerThan(o)
}

// youngerThan compares the lots' first jobs.
func (l *lot) youngerThan(o *lot) bool {
	a, b := l.best().job, o.best().job
	return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.UID, b.UID)) > 0
}

// try begins a turn for the first job of a lot. If it may not have one, the lot is no longer ready.
func (d *Dispatcher) try(l *lot, totals model.Totals, borrowing bool) *turn {
	w := l.best()
	if l.key.guest && !d.admissions.welcome(w) {
		return nil
	}
	if reason := d.limits.withheld(w.job.Job); reason != (model.Reason{}) {
		d.withhold(l, reason)
		return nil
	}
	limit := d.limits.refuses(w.job.Job, borrowing)
	barred, hopeless := d.prospects(l, limit, totals)
	if (barred || hopeless) && !d.mayAppeal(l, borrowing) {
		d.putOff(l, limit, barred)
		return nil
	}
	if !barred && d.awaitsAnswers(l, borrowing) {
		return nil
	}
	t := d.beginFirst(l)
	if t == nil {
		return nil
	}
	t.borrowing, t.nodesFirst = borrowing, limit != (model.Reason{})
	if barred {
		t.limit = limit
	}
	return t
}

// prospects tells whether what its queue may have keeps a lot's first job from a turn, and whether no node can have room for it yet.
func (d *Dispatcher) prospects(l *lot, limit model.Reason, totals model.Totals) (barred, hopeless bool) {
	job := l.best().job.Job
	fits := l.swept || l.lacks() == 0 && d.cfg.MayFit(job, totals)
	// Where both the nodes and what the queue is due are short, it is told of the nodes: more of them help.
	barred = limit != (model.Reason{}) && (fits || d.limits.bounded(job))
	// The first attempt is a full plan even when it must fail: its reason says what is short where.
	return barred, !fits && l.reason.FromNodes
}

// awaitsAnswers parks a lot whose first job's room depends on evictions that have no answer yet, and reports whether it did.
func (d *Dispatcher) awaitsAnswers(l *lot, borrowing bool) bool {
	reason := d.limits.unanswered(l.best().job.Job, borrowing)
	if reason == (model.Reason{}) {
		return false
	}
	d.park(l, reason, false)
	l.helps |= model.EvictionAnswered
	d.lookout.expect(l)
	return true
}

// beginFirst begins a turn for the first job of a lot. One that has nobody to lead it leaves the lot.
func (d *Dispatcher) beginFirst(l *lot) *turn {
	w := l.best()
	t := d.begin(w.job.Key)
	if t == nil {
		// The job changed since it was taken in, and will be taken in again.
		d.leave(w)
		return nil
	}
	if l.retry {
		d.cfg.Recorder.Retried()
	}
	return t
}

// putOff sets a lot aside without a turn: its queue has no room for it, or still no node has.
func (d *Dispatcher) putOff(l *lot, limit model.Reason, barred bool) {
	if barred {
		d.hold(l, limit)
	} else {
		d.park(l, l.reason, false)
	}
}

// begin makes the turn of a job; nil when it has no task to lead it.
func (d *Dispatcher) begin(key model.JobKey) *turn {
	job := d.job(key)
	if job == nil {
		return nil
	}
	lead := d.cfg.Lead(job)
	if lead == nil {
		return nil
	}
	now := d.cfg.Clock.Now()
	d.turns++
	return &turn{number: d.turns, job: job.Key, uid: job.UID, least: job.Min(), lead: lead.Pod, progress: now, began: now}
}

// hold sets a lot aside until its queue may have more room.
func (d *Dispatcher) hold(l *lot, reason model.Reason) {
	d.cfg.Recorder.Parked(reason.Kind)
	job := l.best().job.Job
	d.backlog.setAside(l, held, 0, d.cfg.Clock.Now())
	l.outgrows = d.limits.outgrows(job)
	d.give(l, reason)
	d.lookout.expect(l)
}

// withhold sets a lot aside until somebody outside has answered, or answers otherwise. Evictions do not help it.
func (d *Dispatcher) withhold(l *lot, reason model.Reason) {
	d.backlog.setAside(l, parked, model.OutsideAnswered, d.cfg.Clock.Now())
	l.checks = 0
	d.lookout.expect(l)
	if reason.Kind != model.Unanswered {
		d.cfg.Recorder.Parked(reason.Kind)
		d.give(l, reason)
	}
}

// release makes the lots ready again that a queue's limit held, if some queue may have more room since.
func (d *Dispatcher) release() {
	loosened := d.cfg.Policies.Book().Loosened()
	if d.loosened == loosened {
		return
	}
	d.loosened = loosened
	d.backlog.wakeAll(held)
}

// lend gives a turn to a gang that needs more than its queue will ever be due, once nobody else has a use for the room:
// two such gangs would otherwise keep each other waiting on an idle cluster. The queue's other limits stand.
func (d *Dispatcher) lend(totals model.Totals) *turn {
	first := d.backlog.firstHeld(func(l *lot) bool {
		return l.outgrows && !l.key.guest && d.limits.refuses(l.best().job.Job, true) == (model.Reason{})
	})
	if first == nil {
		return nil
	}
	d.backlog.move(first, ready)
	return d.try(first, totals, true)
}

// give records why the jobs of a lot wait, and tells it of those to whom it is news.
func (d *Dispatcher) give(l *lot, reason model.Reason) {
	changed := !l.reason.Same(reason)
	l.reason = reason
	if l.key.guest {
		// They are told why they are not let in.
		return
	}
	for _, w := range l.jobs.Items() {
		if changed || !w.reported.Same(reason) {
			d.tell(w, reason)
		}
	}
}
