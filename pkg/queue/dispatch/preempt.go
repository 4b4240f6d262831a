// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/policy"
)

// A turn that is refused may have others evicted so that its tasks fit. The search for victims runs in the same
// scheduling cycle, outside the dispatcher.

// searchPause is the least time between two searches for victims for the same lot within what its queue is due, between two
// beyond it, and between two looks at all lots for which there may be new victims: a busy cluster places pods all the time.
const searchPause = time.Second

// newVictims is whether there may be new victims for those who wait for some. Somebody runs who did not, is protected less, or is on a node that may
// be used again. Or a queue is due more than before, or another less, which decides who may be evicted for whom. All methods are called with the
// dispatcher's lock held.
type newVictims struct {
	// there: there may be some, and next is the first time at which that is looked at.
	there bool
	next  time.Time
	// loosened is the accounts' count of room in queues as of when that was last noted.
	loosened uint64
}

// note takes in what happened, where somebody may be evicted at all, or be moved into room that others left.
func (n *newVictims) note(events model.Event, loosened uint64, evicts, moves bool) {
	helpful := model.PodPlaced | model.PodStarted | model.ProtectionChanged | model.NodeChanged
	if moves {
		helpful |= model.RoomMade
	}
	n.there = n.there || evicts && (events&helpful != 0 || n.loosened != loosened)
	n.loosened = loosened
}

// tooSoon reports whether the last search for victims was just now, and has it looked at again when the next may be.
func (n *newVictims) tooSoon(last, now time.Time) bool {
	again := last.Add(searchPause)
	if !again.After(now) {
		return false
	}
	n.lookAt(again)
	return true
}

// lookAt has it looked at, not before a time.
func (n *newVictims) lookAt(at time.Time) {
	if n.there = true; n.next.Before(at) {
		n.next = at
	}
}

// due reports whether it is to be looked at now.
func (n *newVictims) due(now time.Time) bool {
	if !n.there || n.next.After(now) {
		return false
	}
	n.there, n.next = false, now.Add(searchPause)
	return true
}

// firstStarving is the first lot of a line that is set aside and for which evictions might help; nil when there is none.
func (s *lots) firstStarving(line lineKey) (first *lot) {
	for _, aside := range []lotSet{s.backlog.aside[parked], s.backlog.aside[held]} {
		for l := range aside {
			if l.starving && l.key.lineKey == line && !l.resting() && (first == nil || compareJobs(s.cfg.Policies, l.best(), first.best()) < 0) {
				first = l
			}
		}
	}
	return first
}

// Attempt is what a turn that is about to be refused may do.
type Attempt struct {
	// Job is whose turn it is; nil when the turn is over.
	Job *model.Job
	// Actions are those by which others may be evicted for it, in order; none when the job has to wait.
	Actions []config.Action
	// Holds: room is reserved for the job. Reserves: room may be reserved for it, anew if it holds. Declared: what is said of how long pods run is
	// believed.
	Holds, Reserves, Declared bool
	// Within is how long jobs run at most that may use the room though it is only expected when it is free. IfDue: its queue may hold less by then
	// because others ask for more.
	Within time.Duration
	IfDue  bool
	// Resumes is what was reserved for the job before the scheduler started. The turn is for that alone. Nil: it is an ordinary turn.
	Resumes *model.Reservation
	// None says why other actions have nobody to offer; empty when there are none, or the job does not starve.
	None string
}

// reserveBy takes in what the policies say of room that is reserved for the job.
func (a *Attempt) reserveBy(policies *policy.Set) {
	if r := policies.Reservation(); r != nil {
		a.Declared, a.Within, a.IfDue = r.Declared(), r.BackfillWithin, policies.DueMayShrink(a.Job.Queue)
	}
}

// MayPreempt returns what the turn that the pod leads may do instead of being refused.
func (d *Dispatcher) MayPreempt(lead types.UID) Attempt {
	d.mu.Lock()
	defer d.mu.Unlock()
	job := d.jobLedBy(lead)
	if job == nil {
		return Attempt{}
	}
	d.turn.preempting = true
	a := Attempt{Job: job}
	if d.turn.resumes != nil {
		a.reserveBy(d.cfg.Policies)
		a.Resumes = d.turn.resumes
		return a
	}
	l := d.lots.of(d.turn)
	if d.attemptAhead(&a); l == nil || l.key.guest {
		a.Reserves = a.Holds
		return a
	}
	if job = a.Job; !d.cfg.Evicts {
		return a
	}
	if l.patientUntil = d.selection.patientUntil(job); !l.patientUntil.IsZero() && d.cfg.Policies.Starving(job) {
		a.None = fmt.Sprintf("others are evicted for it from %s on (%s)", l.patientUntil.UTC().Format(time.RFC3339), model.PreemptionDelayAnnotation)
	}
	if l.starving = d.selection.starving(job); !l.starving {
		return a
	}
	if d.selection.starves(job) {
		a.None = d.cfg.Policies.WhyNone(job)
	}
	if last, now := l.lastSearch(d.turn.borrowing), d.cfg.Clock.Now(); !d.lots.newVictims.tooSoon(*last, now) && !d.selection.overtakes(l) {
		*last = now
		a.Actions = d.selection.mayEvict(job)
	}
	return a
}

// Trial begins a trial for the job whose turn the pod leads; nil when the turn is over.
func (d *Dispatcher) Trial(lead types.UID, action config.Action, world policy.EvictionWorld) *policy.Trial {
	d.mu.Lock()
	defer d.mu.Unlock()
	job := d.jobLedBy(lead)
	if job == nil {
		return nil
	}
	if d.waits.holders.of[job.Key] != nil {
		job = job.WithoutReserved()
	}
	world.Lapses = d.waits.broken.lapses()
	return d.cfg.Policies.Trial(action, job, world)
}

// Ordinary tells whom pods of other profiles may preempt.
func (d *Dispatcher) Ordinary() *policy.Ordinary {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.cfg.Policies.Ordinary(d.cfg.Clock.Now(), d.waits.broken.lapses())
}

// Protection tells whom the policies protect from being evicted for nobody's sake.
func (d *Dispatcher) Protection(world policy.EvictionWorld) *policy.Protection {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.cfg.Policies.Protection(world)
}

func (d *Dispatcher) jobLedBy(lead types.UID) *model.Job {
	if d.turn == nil || d.turn.lead.UID != lead || d.turn.members != nil {
		return nil
	}
	// Even who may place its members as they fit has others evicted for all of them or for none.
	return d.cfg.loosen(d.cfg.State.Job(d.turn.job))
}

// Pipelined ends the turn because others are evicted for it. The model must have been told before.
func (d *Dispatcher) Pipelined(lead types.UID) {
	d.mu.Lock()
	if t := d.turn; t != nil && t.lead.UID == lead {
		d.end(TurnPipelined)
		if d.waits.holders.of[t.job] != nil {
			d.waits.holders.drop(t.job, ReservationEnded)
		}
		if l := d.lots.of(t); l != nil {
			// There may be victims for the next of its like, too.
			l.searched, l.searchedBeyond = time.Time{}, time.Time{}
		}
	}
	d.mu.Unlock()
	d.proceed()
}

// Earliest returns the earlier of two times; zero means never.
func Earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
