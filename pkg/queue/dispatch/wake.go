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

// retryDelays are the delays after an event at which a lot that goes by more than nodes, and still does not fit, is tried again. The model
// and the scheduler's cache learn of an event independently: a plan can be made with a cache that does not have it yet.
var retryDelays = []time.Duration{time.Second, 100 * time.Millisecond}

// sweepAfter is after how long without a plan a parked lot has one though nothing happened: what its jobs are told gets no older. A job that is
// placed by it shows that something was missed.
const sweepAfter = 5 * time.Minute

const (
	// byRoom are the events that the count of places tells more of.
	byRoom = model.RoomMade | model.NodeChanged
	// certain are those after which it is decided anew whether a lot may have a turn at all, whatever the nodes hold.
	certain = model.OutsideAnswered | model.EvictionAnswered
)

// happening is what happened since lots were last looked at.
type happening struct {
	events model.Event
	// judged: anything about any node may have changed. Victims: there may be new ones.
	judged, victims bool
	now             time.Time
}

// wakes reports whether it may have helped a lot that is set aside, and if so whether it surely did.
func (h happening) wakes(l *lot) (wakes, surely bool) {
	happened := h.events & l.helps
	if !h.judged && l.indexed() {
		happened &^= byRoom
	}
	switch {
	case happened&certain != 0:
		return true, true
	case happened != 0 && l.lacks() == 0:
		l.checks = len(retryDelays)
		return true, false
	case h.victims && l.starving, model.Reached(l.notBefore, h.now):
		return true, false
	case model.Reached(l.patientUntil, h.now):
		l.patientUntil = time.Time{}
		return true, false
	case l.stage == parked && h.now.Sub(l.explainedAt) >= sweepAfter:
		l.swept = true
		return true, false
	}
	return false, false
}

// lookout is what the lots that are set aside wait for besides counted room. They are looked at when that happens, and not before.
type lookout struct {
	// events are all that are not counted; unindexed: some lots go by more of a node than what is.
	events    model.Event
	unindexed bool
	// next is when the first of them is to be woken by the clock.
	next time.Time
}

// due reports whether the lots are to be looked at.
func (o *lookout) due(h happening) bool {
	return h.events&^byRoom&o.events != 0 || h.events&byRoom != 0 && (h.judged || o.unindexed) || !o.next.After(h.now)
}

// expect notes what a lot waits for if it is set aside.
func (o *lookout) expect(l *lot) {
	if l.stage != parked && l.stage != held {
		return
	}
	o.events |= l.helps &^ byRoom
	o.unindexed = o.unindexed || l.stage == parked && l.helps&byRoom != 0 && !l.indexed()
	at := Earliest(l.notBefore, l.patientUntil)
	if l.stage == parked {
		at = Earliest(at, l.explainedAt.Add(sweepAfter))
	}
	if !at.IsZero() && at.Before(o.next) {
		o.next = at
	}
}

// lotSet is a set of lots.
type lotSet map[*lot]bool
