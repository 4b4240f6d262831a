// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"time"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// Hold stops the dispatcher from beginning turns; a turn that is on goes on. It is for who steps a scheduler through
// time: changes that come while it is held are taken in together.
func (d *Dispatcher) Hold() {
	d.mu.Lock()
	d.running = false
	d.mu.Unlock()
}

// Resume ends a Hold, and has the dispatcher look at what happened.
func (d *Dispatcher) Resume() {
	d.mu.Lock()
	d.running = true
	d.mu.Unlock()
	d.wake()
}

// Quiet reports whether the dispatcher waits: no turn is on, and all that happened is taken in. Next is the first time
// at which it looks again though nothing happens; zero when there is none.
func (d *Dispatcher) Quiet() (quiet bool, next time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.cfg.Clock.Now()
	quiet = d.turn == nil && len(d.changed) == 0 && d.events == 0 && len(d.settlements) == 0 && len(d.admissions) == 0 && len(d.queues) == 0
	at := func(t time.Time) {
		quiet = quiet && t.After(now)
		if next.IsZero() || t.Before(next) {
			next = t
		}
	}
	for _, w := range d.resting {
		at(w.notBefore)
	}
	for _, expiry := range d.expiries {
		at(expiry)
	}
	for _, l := range d.lots {
		if l.parked && !l.notBefore.IsZero() {
			at(l.notBefore)
		}
	}
	return quiet, next
}

// Reasons returns why jobs wait, as last found.
func (d *Dispatcher) Reasons() map[model.JobKey]model.Reason {
	d.mu.Lock()
	defer d.mu.Unlock()
	reasons := map[model.JobKey]model.Reason{}
	for key, w := range d.jobs {
		if w.reported != (model.Reason{}) {
			reasons[key] = w.reported
		}
	}
	return reasons
}
