// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import "time"

// Hold has the dispatcher begin turns in Step only; a turn that is on goes on. It is for who steps a scheduler through
// time: whatever happens between two steps is taken in together, so that it does not matter in which order it came.
func (d *Dispatcher) Hold() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stepped = true
}

// Step has a dispatcher that is held take in what happened, and begin the next turn if none is on: one at most.
func (d *Dispatcher) Step() { d.advance(true) }

// Quiet reports whether the dispatcher runs and waits: no turn is on, all that happened is taken in, and what was decided is
// told. Next is the first time at which it looks again though nothing happens; zero when there is none.
func (d *Dispatcher) Quiet() (quiet bool, next time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.cfg.Clock.Now()
	quiet = d.running && d.turn == nil && len(d.waits.changed) == 0 && d.waits.events == 0 && len(d.waits.queues) == 0 &&
		d.outbox.quiet()
	at := func(t time.Time) {
		quiet = quiet && t.After(now)
		if next.IsZero() || t.Before(next) {
			next = t
		}
	}
	if first := d.waits.alarms.next(); !first.IsZero() {
		at(first)
	}
	for _, t := range d.appointments() {
		at(t)
	}
	return quiet, next
}

// appointments are the times at which it looks again though nothing happens, besides those of single jobs.
func (d *Dispatcher) appointments() []time.Time {
	times := d.lots.appointments()
	if wait := d.selection.untilRetry(); wait < idleWait {
		times = append(times, d.cfg.Clock.Now().Add(wait))
	}
	for _, at := range []time.Time{d.cfg.Policies.Again(), d.waits.holders.next} {
		if !at.IsZero() {
			times = append(times, at)
		}
	}
	if d.paused.After(d.cfg.Clock.Now()) {
		times = append(times, d.paused)
	}
	return times
}
