// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"slices"

	"github.com/caldera-scheduler/caldera/pkg/heap"
	"github.com/caldera-scheduler/caldera/pkg/policy"
	"github.com/caldera-scheduler/caldera/pkg/queue/account"
)

// compareJobs is the whole order of the jobs of a queue, negative when a goes first. A gang of which some, but too few,
// members hold nodes is completed before any new job starts; then the policies decide.
func compareJobs(policies *policy.Set, a, b *waiting) int {
	if a.partial != b.partial {
		if a.partial {
			return -1
		}
		return 1
	}
	return policies.CompareJobs(a.job, b.job)
}

// lineKey tells lines apart.
type lineKey struct {
	queue string
	guest bool
}

// line is the jobs of one queue that may have a turn, or its guests.
type line struct {
	lineKey
	// account is the queue's, as of when the line was last active.
	account *account.Queue
	// ready are the lots of which a job may have a turn, retries those of which one may have it within the allowance.
	ready, retries *heap.Heap[*lot]
	// at is the place among the lines in which a lot is ready, -1 when none is.
	at int
}

// lineOf returns a line.
func (d *Dispatcher) lineOf(key lineKey) *line {
	l := d.lines[key]
	if l == nil {
		before := func(a, b *lot) bool { return compareJobs(d.cfg.Policies, a.best(), b.best()) < 0 }
		l = &line{lineKey: key, at: -1, ready: heap.New(before), retries: heap.New(before)}
		d.lines[key] = l
	}
	return l
}

// makeReady lets a lot have turns.
func (d *Dispatcher) makeReady(l *lot) {
	line := d.lineOf(l.key.lineKey)
	if l.retry {
		line.retries.Put(l)
		d.retries++
	} else {
		line.ready.Put(l)
	}
	if line.at < 0 {
		line.account = d.cfg.Policies.Book().Queue(line.queue)
		line.at = len(d.active)
		d.active = append(d.active, line)
	}
}

// unready takes a lot's turns away, and reports whether it had any.
func (d *Dispatcher) unready(l *lot) bool {
	line := d.lines[l.key.lineKey]
	switch {
	case line == nil:
		return false
	case line.ready.Has(l):
		line.ready.Remove(l)
	case line.retries.Has(l):
		line.retries.Remove(l)
		d.retries--
	default:
		return false
	}
	if line.ready.Len()+line.retries.Len() == 0 {
		last := d.active[len(d.active)-1]
		d.active[line.at] = last
		last.at = line.at
		d.active[len(d.active)-1] = nil
		d.active = d.active[:len(d.active)-1]
		line.at = -1
	}
	return true
}

// first is the lot of a line whose best job is the next to have a turn; nil when none may have one now.
func (d *Dispatcher) first(l *line) *lot {
	switch {
	case l.retries.Len() == 0 || !d.retrying:
		if l.ready.Len() == 0 {
			return nil
		}
	case l.ready.Len() == 0 || compareJobs(d.cfg.Policies, l.retries.Top().best(), l.ready.Top().best()) < 0:
		return l.retries.Top()
	}
	return l.ready.Top()
}

// compareLines is the order of queues that have a job for a turn, negative when a goes first. Guests come after all others.
func (d *Dispatcher) compareLines(a, b *line) int {
	if a.guest != b.guest {
		if b.guest {
			return -1
		}
		return 1
	}
	if len(d.partial) > 0 {
		if x, y := d.first(a).best(), d.first(b).best(); x.partial || y.partial {
			return compareJobs(d.cfg.Policies, x, y)
		}
	}
	return d.cfg.Policies.CompareQueues(a.account, b.account)
}

// linesInOrder yields the queues that have a job for a turn, the first one first. It is found by looking at each once,
// which is all that is needed as a rule; the others are sorted only if it gets no turn.
func (d *Dispatcher) linesInOrder(yield func(*line) bool) {
	d.others = d.others[:0]
	for _, l := range d.active {
		if d.first(l) != nil {
			d.others = append(d.others, l)
		}
	}
	if len(d.others) == 0 {
		return
	}
	first := slices.MinFunc(d.others, d.compareLines)
	if !yield(first) {
		return
	}
	others := slices.DeleteFunc(d.others, func(l *line) bool { return l == first || d.first(l) == nil })
	slices.SortFunc(others, d.compareLines)
	for _, l := range others {
		if d.first(l) != nil && !yield(l) {
			return
		}
	}
}
