// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// idleWait is how long Run sleeps when no time is set for anything.
const idleWait = time.Hour

// mostPicked is how many turns in a row may end at once because another plugin holds their leads, before others have a say.
const mostPicked = 64

// advance takes in what happened and begins the next turn if none is on and no cycle is; if turns only begin in steps, in a step. It
// returns when it wants to be called again though nothing happens.
func (d *Dispatcher) advance(step bool) time.Duration {
	for range mostPicked {
		wake, again := d.advanceOnce(step)
		if !again {
			return wake
		}
	}
	d.wake()
	return 0
}

// advanceOnce reports, too, whether it has to be called again at once: the turn that it began is over, or jobs were let in.
func (d *Dispatcher) advanceOnce(step bool) (wake time.Duration, again bool) {
	d.mu.Lock()
	var activate []*corev1.Pod
	wake = idleWait
	began, entered := false, false
	if d.running && d.turn != nil {
		activate, wake = d.watch()
	}
	if d.turn == nil {
		d.adopt()
	}
	if d.running && d.turn == nil && !d.cycle.on && (step || !d.stepped) {
		d.takeIn()
		d.askAgain()
		stall := d.stall()
		d.admissions.admit(d.events)
		wake = min(stall, d.revive())
		// Who is let in may come before all who may have turns. The model has to be told first.
		if entered = d.outbox.admits(); !entered {
			t, later := d.nextUnlessPaused()
			if d.turn, began, wake = t, t != nil, min(wake, later); began {
				activate, wake = []*corev1.Pod{t.lead}, nudgeAfter
			}
		}
	}
	number := d.turns
	if d.turn != nil {
		number = d.turn.number
	}
	out := d.outbox.take()
	d.mu.Unlock()
	out.send(&d.cfg)
	if len(activate) > 0 {
		d.activate(number, activate)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.outbox.told()
	return wake, entered || began && d.turn == nil
}

// tellNow tells what was decided while a turn is on. The lock is not held.
func (d *Dispatcher) tellNow() {
	d.mu.Lock()
	out := d.outbox.take()
	d.mu.Unlock()
	out.send(&d.cfg)
	d.mu.Lock()
	d.outbox.told()
	d.mu.Unlock()
}

// askAgain has those outside asked again whose time has come.
func (d *Dispatcher) askAgain() {
	if at := d.cfg.Policies.Again(); !at.IsZero() && !at.After(d.cfg.Clock.Now()) {
		d.cfg.Policies.Asked()
		d.events |= model.OutsideAnswered
	}
}

// proceed tells what was decided, and begins the next turn unless a scheduling cycle is on: then Between does.
func (d *Dispatcher) proceed() {
	if d.advance(false) < nudgeAfter {
		// A time was set that comes before Run would look by itself.
		d.wake()
	}
}

// keyOf is the key of the lot that a job belongs to. One that failed is a lot of its own: it has its turns within the allowance.
func (d *Dispatcher) keyOf(w *waiting, job *model.Job) lotKey {
	if w == nil {
		return keyOf(job, false, d.cfg.Policies.AloneInTurns())
	}
	key := keyOf(job, w.exact, w.failures > 0 || d.cfg.Policies.AloneInTurns())
	key.guest = w.applied != nil
	return key
}

// join puts a job into the lot of its like. A job that changed is not parked for what it asked before.
func (d *Dispatcher) join(w *waiting) {
	key := d.keyOf(w, w.job.Job)
	if w.lot != nil && w.lot.key != key {
		d.leave(w)
	}
	if l := d.backlog.put(w, key); l.stage != ready && !key.guest {
		d.tell(w, l.reason)
	}
}

// leave takes a job out of its lot, and forgets an empty lot.
func (d *Dispatcher) leave(w *waiting) {
	if w.lot == nil {
		return
	}
	if gone := d.backlog.remove(w); gone != nil {
		d.rooms.unfollow(gone)
	}
}

// tell reports why a job waits, if that is news, be it in the numbers only.
func (d *Dispatcher) tell(w *waiting, reason model.Reason) {
	if w.reported == reason {
		return
	}
	w.reported = reason
	d.outbox.report(w.job.Key, reason)
}
