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

// advance takes in what happened and begins the next turn if none is on; if turns only begin in steps, in a step. It
// returns when it wants to be called again though nothing happens.
func (d *Dispatcher) advance(step bool) time.Duration {
	d.mu.Lock()
	var activate []*corev1.Pod
	wake := idleWait
	switch {
	case !d.running:
	case d.turn != nil:
		activate, wake = d.watch()
	}
	if d.turn == nil {
		d.adopt()
	}
	if d.running && d.turn == nil && (step || !d.stepped) {
		d.takeIn()
		d.askAgain()
		d.admit()
		wake = d.revive()
		if t := d.next(); t != nil {
			d.turn = t
			activate, wake = []*corev1.Pod{t.lead}, nudgeAfter
		} else {
			wake = min(wake, d.untilRetry())
		}
	}
	reports, settlements, admissions, faults := d.reports, d.settlements, d.admissions, d.faults
	d.reports, d.settlements, d.admissions, d.faults = nil, nil, nil, nil
	d.telling++
	d.mu.Unlock()
	for _, f := range faults {
		d.cfg.Fault(f.queue, f.reason)
	}
	for _, a := range admissions {
		d.cfg.State.Admit(a.job, a.admitted)
	}
	for _, s := range settlements {
		d.cfg.Settle(s.members, s.bind)
	}
	for _, r := range reports {
		d.cfg.Report(r.job, r.reason)
	}
	if len(activate) > 0 {
		d.cfg.Activate(activate)
	}
	d.mu.Lock()
	d.telling--
	d.mu.Unlock()
	return wake
}

// askAgain has those outside asked again whose time has come.
func (d *Dispatcher) askAgain() {
	if at := d.cfg.Policies.Again(); !at.IsZero() && !at.After(d.cfg.Clock.Now()) {
		d.cfg.Policies.Asked()
		d.events |= model.OutsideAnswered
	}
}

// proceed begins the next turn from within a scheduling cycle.
func (d *Dispatcher) proceed() {
	if d.advance(false) < nudgeAfter {
		// A time was set that comes before Run would look by itself.
		d.wake()
	}
}

// watch looks after a turn that stands still: its pods are activated once more, in the end it is abandoned.
func (d *Dispatcher) watch() (activate []*corev1.Pod, wake time.Duration) {
	t, now := d.turn, d.cfg.Clock.Now()
	switch {
	case now.Sub(t.progress) >= giveUpAfter:
		d.end(TurnBroken)
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

// join puts a job into the lot of its like. A job that changed is not parked for what it asked before.
func (d *Dispatcher) join(w *waiting) {
	key := keyOf(w.job.Job, w.exact, d.cfg.Policies.AloneInTurns())
	if w.lot != nil && w.lot.key != key {
		d.leave(w)
	}
	l := d.lots[key]
	if l == nil {
		l = &lot{key: key, at: -1, jobs: heap.New(func(a, b *waiting) bool {
			return compareJobs(d.cfg.Policies, a, b) < 0
		})}
		d.lots[key] = l
	}
	w.lot = l
	// While a lot is ready its place among others is that of its best job, so it is taken out while that may change.
	d.unready(l)
	l.jobs.Put(w)
	if l.stage == ready {
		d.makeReady(l)
	} else {
		d.tell(w, l.reason)
	}
}

// leave takes a job out of its lot, and forgets an empty lot.
func (d *Dispatcher) leave(w *waiting) {
	l := w.lot
	if l == nil {
		return
	}
	w.lot = nil
	wasReady := d.unready(l)
	l.jobs.Remove(w)
	switch {
	case l.jobs.Len() == 0:
		delete(d.lots, l.key)
		d.forget(l)
	case wasReady:
		d.makeReady(l)
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
