// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/caldera-scheduler/caldera/pkg/heap"
	"github.com/caldera-scheduler/caldera/pkg/model"
)

// idleWait is how long Run sleeps when no time is set for anything.
const idleWait = time.Hour

// advance takes in what happened and begins the next turn if none is on. It returns when it wants to be called again
// though nothing happens.
func (d *Dispatcher) advance() time.Duration {
	d.mu.Lock()
	var activate []*corev1.Pod
	wake := idleWait
	switch {
	case !d.running:
	case d.turn != nil:
		activate, wake = d.watch()
	}
	if d.running && d.turn == nil {
		d.takeIn()
		wake = d.revive()
		if t := d.next(); t != nil {
			d.turn = t
			activate, wake = []*corev1.Pod{t.lead}, nudgeAfter
		}
	}
	reports, settlements := d.reports, d.settlements
	d.reports, d.settlements = nil, nil
	d.mu.Unlock()
	for _, s := range settlements {
		d.cfg.Settle(s.members, s.bind)
	}
	for _, r := range reports {
		d.cfg.Report(r.job, r.reason)
	}
	if len(activate) > 0 {
		d.cfg.Activate(activate)
	}
	return wake
}

// proceed begins the next turn from within a scheduling cycle.
func (d *Dispatcher) proceed() {
	if d.advance() < nudgeAfter {
		// A time was set that comes before Run would look by itself.
		d.wake()
	}
}

// watch looks after a turn that stands still: its pods are activated once more, in the end it is abandoned.
func (d *Dispatcher) watch() (activate []*corev1.Pod, wake time.Duration) {
	t, now := d.turn, d.cfg.Clock.Now()
	switch {
	case now.Sub(t.progress) >= giveUpAfter:
		d.end(false)
		if w := d.jobs[t.job]; w != nil {
			d.rest(w)
		}
		return nil, 0
	case now.Sub(t.progress) >= nudgeAfter && now.Sub(t.nudged) >= nudgeAfter:
		t.nudged = now
		if t.members == nil {
			return []*corev1.Pod{t.lead}, nudgeAfter
		}
		for _, m := range t.members {
			if !m.done {
				activate = append(activate, m.pod)
			}
		}
	}
	return activate, nudgeAfter
}

// takeIn brings the order up to date with the jobs that changed.
func (d *Dispatcher) takeIn() {
	now := d.cfg.Clock.Now()
	for key, w := range d.resting {
		if !w.notBefore.After(now) {
			d.changed[key] = true
		}
	}
	if d.events&model.QueueChanged != 0 {
		for key := range d.jobs {
			d.changed[key] = true
		}
	}
	for key := range d.changed {
		d.refresh(key)
	}
	clear(d.changed)
}

// refresh puts a job where it belongs: in the lot of its like, or aside with the reason.
func (d *Dispatcher) refresh(key model.JobKey) {
	job := d.cfg.State.Head(key)
	w := d.jobs[key]
	if job == nil || !waits(job) {
		if w != nil {
			d.tell(w, model.Reason{})
			d.leave(w)
			delete(d.jobs, key)
			delete(d.resting, key)
		}
		return
	}
	if w == nil {
		w = &waiting{at: -1}
		d.jobs[key] = w
	}
	w.job = job
	if w.notBefore.After(d.cfg.Clock.Now()) {
		d.leave(w)
		d.resting[key] = w
		return
	}
	delete(d.resting, key)
	if reason := d.blocked(job); reason != (model.Reason{}) {
		d.leave(w)
		d.tell(w, reason)
		return
	}
	d.join(w)
}

// waits reports whether a job has something to wait for: tasks without a node, members to make up its minimum, or a
// PodGroup to be mended.
func waits(job *model.Job) bool {
	return job.Counts.Placeable() > 0 || job.Counts.PendingGated > 0 || job.Partial() ||
		job.Blocked().Kind == model.InvalidPodGroup
}

// blocked says what keeps a job from having turns at all.
func (d *Dispatcher) blocked(job *model.Job) model.Reason {
	if reason := job.Blocked(); reason != (model.Reason{}) {
		return reason
	}
	return model.QueueRefuses(d.cfg.State.Queue(job.Queue), job)
}

// join puts a job into the lot of its like. A job that changed is not parked for what it asked before.
func (d *Dispatcher) join(w *waiting) {
	key := keyOf(w.job)
	if w.lot != nil && w.lot.key != key {
		d.leave(w)
	}
	l := d.lots[key]
	if l == nil {
		l = &lot{key: key, at: -1, jobs: heap.New(func(a, b *waiting) bool {
			return compare(d.cfg.Orderers, a.job, b.job) < 0
		})}
		d.lots[key] = l
	}
	w.lot = l
	l.jobs.Put(w)
	if l.parked {
		d.tell(w, l.reason)
	} else {
		d.ready.Put(l)
	}
}

// leave takes a job out of its lot, and forgets an empty lot.
func (d *Dispatcher) leave(w *waiting) {
	l := w.lot
	if l == nil {
		return
	}
	w.lot = nil
	// While a lot is in the ready heap its order is that of its best job, so it leaves the heap while that changes.
	ready := d.ready.Has(l)
	d.ready.Remove(l)
	l.jobs.Remove(w)
	switch {
	case l.jobs.Len() == 0:
		delete(d.lots, l.key)
	case ready:
		d.ready.Put(l)
	}
}

// revive unparks the lots that something may have helped, and returns how long until a time set for one comes.
func (d *Dispatcher) revive() time.Duration {
	now := d.cfg.Clock.Now()
	wake := idleWait
	for _, w := range d.resting {
		wake = min(wake, w.notBefore.Sub(now))
	}
	for _, l := range d.lots {
		if !l.parked {
			continue
		}
		switch {
		case l.helps&d.events != 0:
			l.checks = len(settle)
		case l.notBefore.IsZero():
			continue
		case l.notBefore.After(now):
			wake = min(wake, l.notBefore.Sub(now))
			continue
		}
		l.parked = false
		d.ready.Put(l)
	}
	d.events = 0
	return wake
}

// park sets a lot aside until something happens that can help it. Events that came while its plan was made count.
func (d *Dispatcher) park(l *lot, reason model.Reason, missed model.Event) {
	if l == nil {
		return
	}
	d.ready.Remove(l)
	l.parked = true
	l.helps = helpedBy(l.best().job.Traits)
	l.notBefore = time.Time{}
	if missed&l.helps != 0 {
		l.checks = len(settle)
	}
	if l.checks > 0 {
		l.checks--
		l.notBefore = d.cfg.Clock.Now().Add(settle[l.checks])
	}
	changed := !l.reason.Same(reason)
	l.reason = reason
	for _, w := range l.jobs.Items() {
		if changed || !w.reported.Same(reason) {
			d.tell(w, reason)
		}
	}
}

// tell reports why a job waits, if that is news, be it in the numbers only.
func (d *Dispatcher) tell(w *waiting, reason model.Reason) {
	if w.reported == reason {
		return
	}
	w.reported = reason
	d.reports = append(d.reports, report{job: w.job.Key, reason: reason})
}

// next takes the first job in order that may fit and begins its turn.
func (d *Dispatcher) next() *turn {
	if d.ready.Len() == 0 {
		return nil
	}
	totals := d.cfg.State.Totals()
	for d.ready.Len() > 0 {
		l := d.ready.Top()
		w := l.best()
		// The first attempt is a full plan even when it must fail: its reason says what is short where.
		if l.reason != (model.Reason{}) && !d.cfg.MayFit(w.job, totals) {
			d.park(l, l.reason, 0)
			continue
		}
		if job := d.cfg.State.Job(w.job.Key); job != nil {
			if lead := d.cfg.Lead(job); lead != nil {
				d.turns++
				return &turn{number: d.turns, job: job.Key, lead: lead.Pod, progress: d.cfg.Clock.Now()}
			}
		}
		// The job changed since it was taken in, and will be taken in again.
		d.leave(w)
	}
	return nil
}
