// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"slices"
	"time"

	"github.com/caldera-scheduler/caldera/pkg/heap"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/policy"
	"github.com/caldera-scheduler/caldera/pkg/queue/account"
)

// compareJobs is the whole order of the jobs of a queue, negative when a goes first. Gangs that hold nodes for too few members come before
// all others. Then the policies decide.
func compareJobs(policies *policy.Set, a, b *waiting) int { return a.compare(policies, &b.inLine) }

// compare is compareJobs of what the order depends on.
func (a *inLine) compare(policies *policy.Set, b *inLine) int {
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
	// ready are the lots whose jobs may have turns. The jobs of retries may have them only while the allowance lasts.
	ready, retries *heap.Heap[*lot]
	// at is the place among the lines in which a lot is ready, -1 when none is.
	at int
	// touched: the ranking has yet to look at it.
	touched bool
}

func newLine(key lineKey, policies *policy.Set) *line {
	before := func(x, y *lot) bool { return compareJobs(policies, x.best(), y.best()) < 0 }
	return &line{lineKey: key, at: -1, ready: heap.New(before), retries: heap.New(before)}
}

// lineup is the lines of all queues.
type lineup struct {
	// lines has one line for each queue, and one for its guests. A line is active while one of its lots may have a turn; guests counts those of
	// them that are of guests. Others is a copy of the active lines, for sorting.
	lines          map[lineKey]*line
	active, others []*line
	guests         int
	ranking        ranking
}

// activate takes in that a lot of a line may have a turn by now.
func (u *lineup) activate(l *line) {
	l.at = len(u.active)
	u.active = append(u.active, l)
	if l.guest {
		u.guests++
	}
}

// deactivate takes in that none may any more.
func (u *lineup) deactivate(l *line) {
	last := len(u.active) - 1
	u.active[l.at] = u.active[last]
	u.active[l.at].at = l.at
	u.active[last] = nil
	u.active = u.active[:last]
	l.at = -1
	if l.guest {
		u.guests--
	}
}

// queues counts the queues that have a job for a turn. Guests do not count.
func (u *lineup) queues() int { return len(u.active) - u.guests }

// rebook gives each line the account that its queue has now.
func (u *lineup) rebook(book *account.Book) {
	for _, line := range u.active {
		line.account = book.Queue(line.queue)
	}
}

// backlog has all lots. Those that may have turns stand in the lines of their queues, the others are set aside. All methods are called with
// the dispatcher's lock held.
type backlog struct {
	policies *policy.Set
	lots     map[lotKey]*lot
	lineup
	// aside are the lots that have no turns, by what they wait for.
	aside [held + 1]lotSet
	// partial are the jobs that go before others because they are partial.
	partial map[*waiting]bool
	// pass numbers the passes. In each pass a lot that was woken in vain before has at most one turn, and only while the allowance lasts.
	// Retries counts the lots that still have theirs before them. Retrying: the allowance has time left.
	pass     uint64
	retries  int
	retrying bool
}

func newBacklog(policies *policy.Set) backlog {
	b := backlog{partial: map[*waiting]bool{}, pass: 1}
	b.reset(policies)
	return b
}

// reset drops all lots, and orders by other policies from now on.
func (b *backlog) reset(policies *policy.Set) {
	b.policies = policies
	b.lots, b.retries = map[lotKey]*lot{}, 0
	b.lineup = lineup{lines: map[lineKey]*line{}}
	b.aside = [held + 1]lotSet{postponed: {}, parked: {}, held: {}}
}

// put puts a job into a lot and returns the lot. If there is none yet, put makes it.
func (b *backlog) put(w *waiting, key lotKey) *lot {
	l := b.lots[key]
	if l == nil {
		l = &lot{key: key, at: -1, jobs: heap.New(func(x, y *waiting) bool { return compareJobs(b.policies, x, y) < 0 })}
		if w.failures > 0 {
			// What failed may be refused next, by a plugin that is yet to learn of what came of it.
			l.retry, l.checks = true, len(retryDelays)
		}
		b.lots[key] = l
	}
	w.lot = l
	// While a lot is ready its place among others is that of its best job, so it is taken out while that may change.
	b.unready(l)
	l.jobs.Put(w)
	if l.stage == ready {
		b.makeReady(l)
	}
	return l
}

// remove takes a job out of its lot. If that was the last job, the lot is gone, and remove returns it.
func (b *backlog) remove(w *waiting) (gone *lot) {
	l := w.lot
	w.lot = nil
	wasReady := b.unready(l)
	l.jobs.Remove(w)
	switch {
	case l.jobs.Len() == 0:
		delete(b.lots, l.key)
		if l.stage != ready {
			delete(b.aside[l.stage], l)
		}
		return l
	case wasReady:
		b.makeReady(l)
	}
	return nil
}

// rerank calls change, which may move the job in the order.
func (b *backlog) rerank(w *waiting, change func()) {
	l := w.lot
	ready := l != nil && b.unready(l)
	change()
	if l != nil {
		l.jobs.Put(w)
		if ready {
			b.makeReady(l)
		}
	}
}

// move puts a lot into another stage.
func (b *backlog) move(l *lot, s stage) {
	if l.stage != ready {
		delete(b.aside[l.stage], l)
	}
	l.stage = s
	if s == ready {
		b.makeReady(l)
	} else {
		b.aside[s][l] = true
	}
}

// setAside takes a lot's turns away until it is woken.
func (b *backlog) setAside(l *lot, s stage, helps model.Event, now time.Time) {
	b.unready(l)
	b.move(l, s)
	l.helps, l.retry, l.behind, l.notBefore = helps, false, false, time.Time{}
	l.pass, l.explainedAt, l.judged = b.pass, now, l.standing(b.policies)
}

// wake lets a lot that is set aside have turns. Surely: what it lacked is there, as far as that can be told; else, and if that proved
// wrong before, it has them within the allowance, and not in the pass in which it was refused.
func (b *backlog) wake(l *lot, surely bool) {
	l.retry = l.best().failures > 0 || !(surely && l.doubts == 0) && l.reason.FromNodes && l.best().job.Counts.Nominated == 0
	if l.retry && l.pass == b.pass {
		b.move(l, postponed)
		return
	}
	b.move(l, ready)
}

// wakeAll lets all lots of a stage have turns.
func (b *backlog) wakeAll(s stage) {
	for l := range b.aside[s] {
		b.move(l, ready)
	}
}

// beginPass begins the next pass when every lot that was woken has had its turn in this one.
func (b *backlog) beginPass() {
	if b.retries == 0 {
		b.pass++
		b.wakeAll(postponed)
	}
}

// retriesLeft reports whether lots wait for the allowance, or for the next pass.
func (b *backlog) retriesLeft() bool { return b.retries > 0 || len(b.aside[postponed]) > 0 }

// empty reports whether there is no lot to which a turn could be given, or lent.
func (b *backlog) empty() bool { return len(b.active) == 0 && len(b.aside[held]) == 0 }

// firstHeld is the first of the lots whose queue has no room, of those that may; nil when there is none.
func (b *backlog) firstHeld(may func(*lot) bool) *lot {
	var first *lot
	for l := range b.aside[held] {
		if may(l) && (first == nil || b.compareHeld(l, first) < 0) {
			first = l
		}
	}
	return first
}

func (b *backlog) compareHeld(l, o *lot) int {
	x, y := l.best(), o.best()
	if l.key.queue != o.key.queue && !x.partial && !y.partial {
		return b.policies.CompareQueues(b.policies.Book().Queue(x.job.Queue), b.policies.Book().Queue(y.job.Queue))
	}
	return compareJobs(b.policies, x, y)
}

// makeReady lets a lot have turns.
func (b *backlog) makeReady(l *lot) {
	line := b.lines[l.key.lineKey]
	if line == nil {
		line = newLine(l.key.lineKey, b.policies)
		b.lines[l.key.lineKey] = line
	}
	if l.retry {
		line.retries.Put(l)
		b.retries++
	} else {
		line.ready.Put(l)
	}
	if line.at < 0 {
		line.account = b.policies.Book().Queue(line.queue)
		b.activate(line)
	}
	b.ranking.touch(line)
}

// unready takes a lot's turns away, and reports whether it had any.
func (b *backlog) unready(l *lot) bool {
	line := b.lines[l.key.lineKey]
	switch {
	case line == nil:
		return false
	case line.ready.Has(l):
		line.ready.Remove(l)
	case line.retries.Has(l):
		line.retries.Remove(l)
		b.retries--
	default:
		return false
	}
	if line.ready.Len()+line.retries.Len() == 0 {
		b.deactivate(line)
	}
	b.ranking.touch(line)
	return true
}

// first is the lot of a line whose best job is the next to have a turn; nil when none may have one now.
func (b *backlog) first(l *line) *lot {
	switch {
	case l.retries.Len() == 0 || !b.retrying:
		if l.ready.Len() == 0 {
			return nil
		}
	case l.ready.Len() == 0 || compareJobs(b.policies, l.retries.Top().best(), l.ready.Top().best()) < 0:
		return l.retries.Top()
	}
	return l.ready.Top()
}

// compareLines is the order of queues that have a job for a turn, negative when x goes first. Guests come after all others.
func (b *backlog) compareLines(x, y *line) int {
	if x.guest != y.guest {
		if y.guest {
			return -1
		}
		return 1
	}
	if len(b.partial) > 0 {
		if v, w := b.first(x).best(), b.first(y).best(); v.partial || w.partial {
			return compareJobs(b.policies, v, w)
		}
	}
	return b.policies.CompareQueues(x.account, y.account)
}

// linesInOrder yields the queues that have a job for a turn, the first one first. Who goes through them leaves none behind in which a lot may still have
// a turn, and changes nothing about those to come.
func (b *backlog) linesInOrder(yield func(*line) bool) {
	for b.ranks() {
		first := b.ranking.first()
		if first != nil && b.first(first) == nil {
			// It would be yielded again and again. To compare all is slow, and right whatever the ranking says, which is made anew next time.
			b.ranking.seen = 0
			break
		}
		if first == nil || !yield(first) {
			return
		}
	}
	b.linesCompared(yield)
}

// ranks reports whether the ranking tells which line is first: not while partial jobs go before the order of queues, nor where that goes by more than
// what the accounts say has shifted.
func (b *backlog) ranks() bool {
	return len(b.partial) == 0 && b.policies.OrdersByAccounts() && b.ranking.settle(b)
}

// linesCompared is linesInOrder whatever the order goes by. The first line is found by looking at each once, which is all that is needed as a rule; the
// others are sorted only if it gets no turn.
func (b *backlog) linesCompared(yield func(*line) bool) {
	b.others = b.others[:0]
	for _, l := range b.active {
		if b.first(l) != nil {
			b.others = append(b.others, l)
		}
	}
	if len(b.others) == 0 {
		return
	}
	first := slices.MinFunc(b.others, b.compareLines)
	if !yield(first) {
		return
	}
	others := slices.DeleteFunc(b.others, func(l *line) bool { return l == first || b.first(l) == nil })
	slices.SortFunc(others, b.compareLines)
	for _, l := range others {
		if b.first(l) != nil && !yield(l) {
			return
		}
	}
}
