// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"time"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// A lot that was refused is parked until something that can help it happens. For most that is room on nodes, which is counted by shape:
// what happens on nodes that do not take a shape, or leave too few places for it, wakes nobody. A lot that is refused though the count
// says that there is room is doubted from then on: it has its turns within an allowance.

// settle are the delays after an event at which a lot that goes by more than nodes, and still does not fit, is tried again. The model
// and the scheduler's cache learn of an event independently: a plan can be made with a cache that does not have it yet.
var settle = []time.Duration{time.Second, 100 * time.Millisecond}

// sweepAfter is after how long without a turn a parked lot has one though nothing happened. A job that is placed by it shows that
// something was missed.
const sweepAfter = 5 * time.Minute

const (
	// byRoom are the events that the count of places tells more of.
	byRoom = model.RoomMade | model.NodeChanged
	// certain are those after which it is decided anew whether a lot may have a turn at all, whatever the nodes hold.
	certain = model.OutsideAnswered | model.EvictionAnswered
)

// revive wakes the lots that something may have helped, and returns how long until a time set for one comes.
func (d *Dispatcher) revive() time.Duration {
	now := d.cfg.Clock.Now()
	d.backlog.beginPass()
	d.countRoom()
	stir := d.stir(now)
	if others := d.events &^ byRoom; others&d.sensitive != 0 || d.uncountable() || stir || !d.nextLook.After(now) {
		d.lookAtAll(now, stir)
	}
	wake := min(idleWait, d.nextLook.Sub(now))
	if d.newVictims.there {
		wake = min(wake, d.newVictims.next.Sub(now))
	}
	if at := d.alarms.next(); !at.IsZero() {
		wake = min(wake, max(0, at.Sub(now)))
	}
	if at := d.cfg.Policies.Again(); !at.IsZero() {
		wake = min(wake, max(0, at.Sub(now)))
	}
	d.events, d.rooms.judged = 0, false
	return wake
}

// uncountable reports whether what happened to nodes is more than what is counted: some lot goes by more, or all nodes may have changed.
func (d *Dispatcher) uncountable() bool {
	return d.events&byRoom != 0 && (d.rooms.judged || d.unindexed)
}

// lookAtAll wakes what is set aside and may have been helped by something else than counted room, and notes when the next is to be woken
// by the clock.
func (d *Dispatcher) lookAtAll(now time.Time, stir bool) {
	d.sensitive, d.unindexed, d.nextLook = 0, false, now.Add(idleWait)
	for _, lots := range []lotSet{d.backlog.aside[parked], d.backlog.aside[held]} {
		for l := range lots {
			d.lookAt(l, now, stir)
			d.expect(l)
		}
	}
}

// lookAt wakes one lot if it may have been helped.
func (d *Dispatcher) lookAt(l *lot, now time.Time, stir bool) {
	happened := d.events & l.helps
	if !d.rooms.judged && l.indexed() {
		happened &^= byRoom
	}
	switch {
	case happened&certain != 0:
		d.backlog.wake(l, true)
	case happened != 0 && l.lacks() == 0:
		l.checks = len(settle)
		d.backlog.wake(l, false)
	case stir && l.starving, !l.notBefore.IsZero() && !l.notBefore.After(now):
		d.backlog.wake(l, false)
	case l.stage == parked && now.Sub(l.refusedAt) >= sweepAfter:
		l.swept = true
		d.backlog.wake(l, false)
	}
}

// expect notes what a lot that is set aside waits for.
func (d *Dispatcher) expect(l *lot) {
	if l.stage != parked && l.stage != held {
		return
	}
	d.sensitive |= l.helps &^ byRoom
	d.unindexed = d.unindexed || l.stage == parked && l.helps&byRoom != 0 && !l.indexed()
	at := l.notBefore
	if l.stage == parked {
		at = Earliest(at, l.refusedAt.Add(sweepAfter))
	}
	if !at.IsZero() && at.Before(d.nextLook) {
		d.nextLook = at
	}
}

// lotSet is a set of lots.
type lotSet map[*lot]bool

// park sets a lot aside until something happens that can help it. Missed: it happened already, while its plan was made.
func (d *Dispatcher) park(l *lot, reason model.Reason, missed bool) {
	d.cfg.Recorder.Parked(reason.Kind)
	d.backlog.setAside(l, parked, helpedBy(l.best()), d.cfg.Clock.Now())
	if missed && !l.indexed() {
		l.checks = len(settle)
	}
	if l.checks > 0 {
		l.checks--
		l.notBefore = d.cfg.Clock.Now().Add(settle[l.checks])
	}
	d.give(l, reason)
	d.expect(l)
}
