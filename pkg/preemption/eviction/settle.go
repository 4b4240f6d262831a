// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package eviction

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// from reports whether a victim of the decision is in a queue.
func (e *entry) from(queue string) bool {
	return slices.ContainsFunc(e.Victims, func(v *Victim) bool { return v.Queue == queue })
}

// closeEntry has nothing more sent for a decision and returns the victims that are spared by that.
func (l *Ledger) closeEntry(e *entry, now time.Time) []*Victim {
	if !e.closed {
		e.closed, e.since = true, now
	}
	var spared []*Victim
	for _, v := range e.Victims {
		if v.State == Planned {
			v.State = Spared
			copied := *v
			spared = append(spared, &copied)
		}
	}
	l.settle(e)
	return spared
}

// settle makes the outcome of a closed decision final if it is known, and that of one for nobody's sake when all have been asked.
func (l *Ledger) settle(e *entry) {
	switch {
	case e.Outcome == Pending && e.forNobody() && e.in(Planned, Sent) == 0:
		outcome := Done
		if e.evicted() == 0 {
			outcome = Cancelled
		}
		l.resolve(e, outcome, time.Time{})
	case e.Outcome != Pending || !e.closed || e.in(Sent) > 0:
	case e.evicted() == 0:
		l.resolve(e, Cancelled, e.since)
	case e.givenUp:
		l.resolve(e, Wasted, e.since)
	}
}

// resolve makes the outcome of a decision final.
func (l *Ledger) resolve(e *entry, outcome Outcome, now time.Time) {
	e.Outcome, e.Ended = outcome, now
	for _, v := range e.Victims {
		if v.Pod != nil { // Of what is over only the names are remembered.
			v.Pod = nameOnly(v.Pod)
		}
	}
	rest := slices.DeleteFunc(l.pending[e.Beneficiary], func(o *entry) bool { return o == e })
	if len(rest) == 0 {
		delete(l.pending, e.Beneficiary)
	} else {
		l.pending[e.Beneficiary] = rest
	}
	if outcome == Wasted {
		l.counts.wasted += uint64(e.evicted())
	}
	l.dropOldest()
}

// dropOldest drops the oldest decisions beyond the ledger's size of which nothing more is to be heard.
func (l *Ledger) dropOldest() {
	for len(l.decisions) > l.size {
		i := slices.IndexFunc(l.decisions, func(e *entry) bool { return e.Outcome != Pending && e.in(Sent) == 0 })
		if i < 0 {
			return
		}
		l.drop(l.decisions[i])
		l.decisions = slices.Delete(l.decisions, i, i+1)
	}
}

// drop takes the victims of a decision out of the index.
func (l *Ledger) drop(e *entry) {
	for _, v := range e.Victims {
		rest := slices.DeleteFunc(l.victims[v.UID], func(o victim) bool { return o.of == e })
		if len(rest) == 0 {
			delete(l.victims, v.UID)
		} else {
			l.victims[v.UID] = rest
		}
	}
}

// forget drops what lies too far back to matter, and gives up what nobody has asked about for long.
func (l *Ledger) forget(now time.Time) {
	maps.DeleteFunc(l.protected, func(_ types.UID, until time.Time) bool { return !until.After(now) })
	l.counts.forget(now, l.cooldown)
	for _, e := range slices.Clone(l.decisions) {
		if e.Outcome == Pending && e.closed && now.Sub(e.since) > memory {
			e.givenUp = true
			l.settle(e)
		}
	}
}

// name is how messages call a victim.
func name(v *Victim) string {
	if v.Pod == nil {
		return string(v.UID)
	}
	return v.Pod.Namespace + "/" + v.Pod.Name
}
