// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"time"

	corev1 "k8s.io/api/core/v1"
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

// advanceOnce reports, too, whether it has to be called again at once: jobs were let in, or the turn that it began is over. A step begins one turn
// at most: this one may be over because its pods have nodes by now, and somebody wants them bound before the next.
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
		wake = d.waits.update()
		// Who is let in may come before all who may have turns. The model has to be told first.
		if entered = d.outbox.admits(); !entered {
			t, later := d.nextUnlessPaused()
			if d.turn, began, wake = t, t != nil, min(wake, later); began {
				activate, wake = []*corev1.Pod{t.lead}, nudgeAfter
			}
		}
	}
	number := d.selection.number(d.turn)
	out := d.outbox.take()
	d.mu.Unlock()
	out.send(&d.cfg)
	if len(activate) > 0 {
		d.activate(number, activate)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.outbox.told()
	return wake, entered || began && d.turn == nil && !d.stepped
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

// proceed tells what was decided, and begins the next turn unless a scheduling cycle is on: then Between does.
func (d *Dispatcher) proceed() {
	if d.advance(false) < nudgeAfter {
		// A time was set that comes before Run would look by itself.
		d.wake()
	}
}

// nextUnlessPaused begins the next turn, or returns how long until one may begin though nothing happens.
func (d *Dispatcher) nextUnlessPaused() (t *turn, later time.Duration) {
	if d.unbound.tooMany() {
		return nil, idleWait
	}
	if pause := d.paused.Sub(d.cfg.Clock.Now()); pause > 0 {
		return nil, pause
	}
	if t := d.selection.next(); t != nil {
		return t, 0
	}
	return nil, d.selection.untilRetry()
}
