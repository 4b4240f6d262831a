// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package eviction

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// Protection is how long a victim whose eviction was refused is not chosen again.
const Protection = 30 * time.Second

// Ledger remembers decisions to evict and what becomes of them. It decides nothing and asks nobody. All its methods may
// be called at any time from anywhere; what they return is the caller's own.
//
// A decision stays Pending until its beneficiary starts or is given up (Started, Cancel). A refusal, a stuck victim or
// Close closes it before: what was not sent is spared, and Open does not return it any more, but whether the evictions
// were in vain is known only when the job starts or is given up, which it is after an hour too. A closed decision by
// which nobody was evicted is Cancelled at once. A job that grows task by task may have several open decisions.
type Ledger struct {
	// Moves are when pods were moved.
	Moves Moves

	size int

	// mu guards everything below; it is never held while calling out.
	mu       sync.Mutex
	cooldown time.Duration
	last     uint64
	// decisions are in the order of their IDs. Those that are not settled yet are kept beyond the size.
	decisions []*entry
	// pending are the decisions on each job whose outcome is not final, oldest first.
	pending map[model.JobKey][]*entry
	// victims are the victims of all remembered decisions.
	victims map[types.UID][]victim
	// protected says until when a pod is not chosen again.
	protected map[types.UID]time.Time
	counts    counts
}

// entry is a decision and what only the Ledger knows of it.
type entry struct {
	Decision
	// closed: nothing more is sent.
	closed bool
	// givenUp: the beneficiary does not start by this decision.
	givenUp bool
	// since is when it was closed, or given up after that.
	since time.Time
}

// victim is a victim and its decision. Asked: it is this decision for which the API server is asked.
type victim struct {
	*Victim
	of    *entry
	asked bool
}

// NewLedger returns an empty ledger that remembers so many decisions; after one queue took from another, the reverse is
// barred for the cooldown.
func NewLedger(size int, cooldown time.Duration) *Ledger {
	return &Ledger{
		size: size, cooldown: cooldown,
		pending: map[model.JobKey][]*entry{}, victims: map[types.UID][]victim{}, protected: map[types.UID]time.Time{},
		counts: newCounts(),
	}
}

// SetCooldown changes for how long the reverse is barred, also after what was taken before.
func (l *Ledger) SetCooldown(cooldown time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cooldown = cooldown
}

// Begin enters a decision whose victims are all Planned, and returns it with its ID.
func (l *Ledger) Begin(now time.Time, d Decision) *Decision {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget(now)
	l.last++
	e := &entry{Decision: *d.clone()}
	e.ID, e.Time, e.Outcome, e.Ended, e.Problem = l.last, now, Pending, time.Time{}, ""
	for _, v := range e.Victims {
		v.State, v.Deadline, v.Problem, v.Evicted = Planned, time.Time{}, "", false
		l.victims[v.UID] = append(l.victims[v.UID], victim{Victim: v, of: e})
	}
	l.decisions = append(l.decisions, e)
	l.pending[e.Beneficiary] = append(l.pending[e.Beneficiary], e)
	l.counts.begun(&e.Decision)
	l.Moves.begun(&e.Decision)
	l.dropOldest()
	return e.clone()
}

// Sent says that the API server is about to be asked to evict a victim of a decision, and reports whether it may be: not
// if the decision does not plan it any more. Other decisions that plan to evict the same pod need not ask again.
func (l *Ledger) Sent(id uint64, uid types.UID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	victims := l.victims[uid]
	i := slices.IndexFunc(victims, func(v victim) bool { return v.of.ID == id && v.State == Planned })
	if i < 0 {
		return false
	}
	victims[i].asked = true
	for _, v := range victims {
		if v.State == Planned {
			v.State = Sent
		}
	}
	return true
}

// Again reports whether a victim may be asked for again after a request without an answer. It may not if nobody needs it any more: it is spared
// then. If the API server had agreed all the same, the pod ends nevertheless.
func (l *Ledger) Again(uid types.UID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	var sent []victim
	for _, v := range l.victims[uid] {
		if v.State != Sent {
			continue
		}
		if !v.of.closed {
			return true
		}
		sent = append(sent, v)
	}
	for _, v := range sent {
		v.State = Spared
		l.settle(v.of)
	}
	return len(sent) == 0
}

// Leaving says that a victim ends, and is waited for until the deadline: the API server has agreed to evict it, or
// somebody else has deleted it.
func (l *Ledger) Leaving(uid types.UID, deadline time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, v := range slices.Clone(l.victims[uid]) {
		switch v.State {
		case Planned, Sent:
			v.State, v.Deadline = Leaving, deadline
			l.left(v, v.asked)
		case Gone:
			v.Deadline = deadline
		}
	}
}

// Gone says that a pod has left its node or does not exist any more. Pods that are no victims may be named too. A
// victim that goes while the API server is being asked went because of it.
func (l *Ledger) Gone(uid types.UID) { l.gone(uid, true) }

// absent says that a victim was gone already when the API server was asked to evict it.
func (l *Ledger) absent(uid types.UID) { l.gone(uid, false) }

func (l *Ledger) gone(uid types.UID, evicted bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, v := range slices.Clone(l.victims[uid]) {
		switch v.State {
		case Planned, Leaving, Stuck:
			v.State = Gone
			l.left(v, false)
		case Sent:
			v.State = Gone
			l.left(v, evicted && v.asked)
		}
	}
}

// left takes note that a victim leaves or has left, because its decision had it evicted or without that.
func (l *Ledger) left(v victim, evicted bool) {
	if evicted {
		v.Evicted = true
		l.counts.evicted(&v.of.Decision, v.Victim)
	}
	l.settle(v.of)
}

// Refused says that the API server does not evict a victim, and until when it is not to be chosen again. Open decisions
// that plan to evict it are closed; the victims that are spared by that are returned.
func (l *Ledger) Refused(uid types.UID, why string, until time.Time) []*Victim {
	spared, _ := l.refuse(uid, why, until)
	return spared
}

// refuse is Refused; it also returns the decisions that it closed, as they are then.
func (l *Ledger) refuse(uid types.UID, why string, until time.Time) (spared []*Victim, closed []*Decision) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.protected[uid] = until
	for _, v := range slices.Clone(l.victims[uid]) {
		if v.State != Planned && v.State != Sent {
			continue
		}
		v.State, v.Problem = Refused, why
		open := !v.of.closed
		v.of.Problem = fmt.Sprintf("evicting pod %s was refused: %s", name(v.Victim), why)
		if v.of.forNobody() { // The others are not needed together.
			l.settle(v.of)
			continue
		}
		spared = append(spared, l.closeEntry(v.of, until.Add(-Protection))...)
		if open {
			closed = append(closed, v.of.clone())
		}
	}
	return spared, closed
}

// Refusal returns until when a pod is protected because its eviction was refused; the zero time when it is not.
func (l *Ledger) Refusal(uid types.UID) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.protected[uid]
}

// Started says that the members of a job got their nodes. Victims that were not needed any more are returned.
func (l *Ledger) Started(job model.JobKey, now time.Time) []*Victim { return l.end(job, now, false) }

// Close ends the wait for the victims of a job's decisions, whose room did not help it. Whether they went in vain is known
// when the job starts, or is given up. The victims that are spared by that are returned.
func (l *Ledger) Close(job model.JobKey, now time.Time) []*Victim {
	l.mu.Lock()
	defer l.mu.Unlock()
	var spared []*Victim
	for _, e := range slices.Clone(l.pending[job]) {
		spared = append(spared, l.closeEntry(e, now)...)
	}
	return spared
}

// Cancel gives a job up: it was deleted, or starts in another way. The victims that are spared by that, because nobody
// has been asked to evict them yet, are returned.
func (l *Ledger) Cancel(job model.JobKey, now time.Time) []*Victim { return l.end(job, now, true) }

func (l *Ledger) end(job model.JobKey, now time.Time, givenUp bool) []*Victim {
	l.mu.Lock()
	defer l.mu.Unlock()
	var spared []*Victim
	for _, e := range slices.Clone(l.pending[job]) {
		if givenUp {
			e.givenUp, e.since = true, now
		}
		spared = append(spared, l.closeEntry(e, now)...)
		if !givenUp && e.Outcome == Pending {
			l.resolve(e, Started, now)
		}
	}
	return spared
}

// Open returns the decision on a job of which all victims are being evicted; false when there is none.
func (l *Ledger) Open(job model.JobKey) (Decision, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.pending[job] {
		if !e.closed {
			return *e.clone(), true
		}
	}
	return Decision{}, false
}

// Outstanding returns how many victims that make room for a job have not gone yet, and the next time at which one of
// them is given up; the zero time when none has a deadline. Those whose deadline has passed are Stuck from now on.
func (l *Ledger) Outstanding(job model.JobKey, now time.Time) (left int, next time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range slices.Clone(l.pending[job]) {
		l.expire(e, now)
		if e.Outcome != Pending {
			continue
		}
		left += e.in(Planned, Sent, Leaving)
		for _, v := range e.Victims {
			if v.State == Leaving && (next.IsZero() || v.Deadline.Before(next)) {
				next = v.Deadline
			}
		}
	}
	return left, next
}

// expire gives up the victims whose deadline has passed.
func (l *Ledger) expire(e *entry, now time.Time) {
	for _, v := range e.Victims {
		if v.State == Leaving && !now.Before(v.Deadline) {
			v.State = Stuck
			e.Problem = fmt.Sprintf("pod %s has not gone by its deadline", name(v))
			l.closeEntry(e, now)
		}
	}
}

// Cooldown returns until when a queue may not take from another, because that one took from it; the zero time when it
// may. Inside a queue nothing is barred.
func (l *Ledger) Cooldown(victimQueue, beneficiaryQueue string, now time.Time) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	taken := l.counts.taken[queues{from: beneficiaryQueue, to: victimQueue}]
	for _, list := range l.pending {
		for _, e := range list {
			// A decision counts before the first eviction.
			if !e.closed && e.Action != Consolidate && e.Queue == victimQueue && e.Time.After(taken) && e.from(beneficiaryQueue) {
				taken = e.Time
			}
		}
	}
	until := taken.Add(l.cooldown)
	if victimQueue == beneficiaryQueue || taken.IsZero() || !until.After(now) {
		return time.Time{}
	}
	return until
}

// Decisions returns what is remembered, the newest first.
func (l *Ledger) Decisions() []Decision { return l.Latest(math.MaxInt) }

// Latest returns the last n decisions of what is remembered, the newest first.
func (l *Ledger) Latest(n int) []Decision {
	l.mu.Lock()
	defer l.mu.Unlock()
	n = min(n, len(l.decisions))
	list := make([]Decision, 0, n)
	for _, e := range slices.Backward(l.decisions[len(l.decisions)-n:]) {
		list = append(list, *e.clone())
	}
	return list
}
