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

// line is the jobs of one queue that may have a turn.
type line struct {
	queue string
	// account is the queue's, as of when the line was last active.
	account *account.Queue
	// ready are the lots of which a job may have a turn.
	ready *heap.Heap[*lot]
	// at is the place among the lines in which a lot is ready, -1 when none is.
	at int
}

// lineOf returns the line of a queue.
func (d *Dispatcher) lineOf(queue string) *line {
	l := d.lines[queue]
	if l == nil {
		l = &line{queue: queue, at: -1, ready: heap.New(func(a, b *lot) bool {
			return compareJobs(d.cfg.Policies, a.best(), b.best()) < 0
		})}
		d.lines[queue] = l
	}
	return l
}

// makeReady lets a lot have turns.
func (d *Dispatcher) makeReady(l *lot) {
	line := d.lineOf(l.key.queue)
	line.ready.Put(l)
	if line.at < 0 {
		line.account = d.cfg.Policies.Book().Queue(line.queue)
		line.at = len(d.active)
		d.active = append(d.active, line)
	}
}

// unready takes a lot's turns away, and reports whether it had any.
func (d *Dispatcher) unready(l *lot) bool {
	line := d.lines[l.key.queue]
	if line == nil || !line.ready.Has(l) {
		return false
	}
	line.ready.Remove(l)
	if line.ready.Len() == 0 {
		last := d.active[len(d.active)-1]
		d.active[line.at] = last
		last.at = line.at
		d.active[len(d.active)-1] = nil
		d.active = d.active[:len(d.active)-1]
		line.at = -1
	}
	return true
}

// compareLines is the order of queues that have a job for a turn, negative when a goes first.
func (d *Dispatcher) compareLines(a, b *line) int {
	if d.partial > 0 {
		if x, y := a.ready.Top().best().partial, b.ready.Top().best().partial; x != y {
			if x {
				return -1
			}
			return 1
		}
	}
	return d.cfg.Policies.CompareQueues(a.account, b.account)
}

// linesInOrder yields the queues that have a job for a turn, the first one first. It is found by looking at each once,
// which is all that is needed as a rule; the others are sorted only if it gets no turn.
func (d *Dispatcher) linesInOrder(yield func(*line) bool) {
	if len(d.active) == 0 {
		return
	}
	first := slices.MinFunc(d.active, d.compareLines)
	d.others = append(d.others[:0], d.active...)
	if !yield(first) {
		return
	}
	others := slices.DeleteFunc(d.others, func(l *line) bool { return l == first || l.at < 0 })
	slices.SortFunc(others, d.compareLines)
	for _, l := range others {
		if l.at >= 0 && !yield(l) {
			return
		}
	}
}
