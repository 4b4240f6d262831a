// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package requests

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/caldera-scheduler/caldera/pkg/heap"
)

// lateAfter is how long a request may take before its seat is lent to others.
const lateAfter = time.Second

// Limiter bounds how many requests to the API server are under way at a time. It also keeps a namespace whose requests are not answered from holding up
// others: a webhook may select one namespace, and answer late or never.
//
//   - A request is late once it has taken a second. It moves to a second set of as many seats, and its first seat is free for others.
//   - A namespace is slow from its first late request until one is answered within a second and none is late.
//   - Requests of slow namespaces begin in the second set. Those of one namespace begin in half of it at most.
//   - A slow namespace with no request under way may try one in the first set, if nobody waits there. All of them have half of it at most.
//
// When a namespace becomes slow, others wait for a second. They wait longer only while late requests fill both sets.
type Limiter struct {
	clock clock.WithDelayedExecution
	// most is half of the seats of a set.
	most int
	// running are the requests given to Go and Enqueue.
	running sync.WaitGroup

	// mu guards everything below.
	mu sync.Mutex
	// free and spare are how many seats of the first and of the second set nobody has. Slow namespaces try requests in so many of the first.
	free, spare, tried int
	line               line
	// overdue are late requests that are in the first set still, because the second was full; oldest first.
	overdue []*Seat
	// namespaces are those with a request that waits or is under way.
	namespaces map[string]*namespace
}

// Told are who is told how many requests wait. They must not call back.
type Told struct {
	// InLine is told how many more wait with those of others, or fewer.
	InLine func(more int)
	// Aside is told how many more of a namespace wait because it is slow, or fewer.
	Aside func(namespace string, more int)
}

// line are requests that wait.
type line struct {
	told    Told
	waiting *heap.Heap[*Seat]
	// aside is how many wait because their namespaces are slow.
	aside int
	// arrivals counts all that have come.
	arrivals uint64
}

// namespace has the requests of one namespace that wait or are under way.
type namespace struct {
	name string
	// slow: its requests wait for each other, and for those of other slow namespaces.
	slow bool
	// waiting are its requests since it is slow.
	waiting *heap.Heap[*Seat]
	// inLine are its requests that wait with those of others, underway and late those that are so.
	inLine, underway, late int
}

// Seat is a place among the requests that are under way. API servers count their concurrency in seats, too. A request waits for its seat, has it, or has ended.
type Seat struct {
	limiter   *Limiter
	namespace *namespace
	// order is what it goes by, and its number among all.
	order [2]uint64
	// begin is called with the lock held when the request may begin, aside when it waits because its namespace is slow; aside may be nil.
	begin, aside func()
	// timer tells that the request is late; nil while it waits.
	timer clock.Timer
	kind  kind
	// late is whether it is late; ended whether it needs no seat any more.
	late, ended bool
	at          int
}

// kind is what a seat is for.
type kind int

const (
	// ordinary and tried seats are of the first set, lent ones of the second. In a tried one is a request of a slow namespace.
	ordinary kind = iota
	tried
	lent
)

// Position implements heap.Element.
func (p *Seat) Position() *int { return &p.at }

// before reports whether a seat goes before another.
func (p *Seat) before(q *Seat) bool { return slices.Compare(p.order[:], q.order[:]) < 0 }

// NewLimiter returns a limiter with two sets of n seats, at least 1. The functions of told may be nil.
func NewLimiter(n int, clock clock.WithDelayedExecution, told Told) *Limiter {
	if told.InLine == nil {
		told.InLine = func(int) {}
	}
	if told.Aside == nil {
		told.Aside = func(string, int) {}
	}
	return &Limiter{
		clock: clock, most: max(1, n/2), free: n, spare: n, line: line{told: told, waiting: heap.New((*Seat).before)},
		namespaces: map[string]*namespace{},
	}
}

// Acquire waits for a seat for a request about an object of a namespace. Those of a lower order go first, of the same order those that came
// first. It fails only if the context ends before, with the cause of that.
func (l *Limiter) Acquire(ctx context.Context, namespace string, order uint64) (*Seat, error) {
	begun := make(chan struct{})
	p := &Seat{limiter: l, order: [2]uint64{order}, begin: func() { close(begun) }}
	l.enter(p, namespace)
	select {
	case <-begun:
		return p, nil
	case <-ctx.Done():
		p.end(false)
		return nil, context.Cause(ctx)
	}
}

// Go has a function make a request in a goroutine of its own, in the order of calls. It returns when that begins, or waits only because its
// namespace is slow.
func (l *Limiter) Go(namespace string, request func()) {
	var once sync.Once
	settled := make(chan struct{})
	l.enqueue(namespace, request, func() { once.Do(func() { close(settled) }) })
	<-settled
}

// Enqueue is as Go, and returns at once. However many requests wait is up to the caller.
func (l *Limiter) Enqueue(namespace string, request func()) { l.enqueue(namespace, request, func() {}) }

// enqueue has a request made, and calls a function when it begins, and when it waits because its namespace is slow.
func (l *Limiter) enqueue(namespace string, request, settled func()) {
	p := &Seat{limiter: l, aside: settled}
	l.running.Add(1)
	p.begin = func() {
		settled()
		go func() {
			defer l.running.Done()
			defer p.Release()
			request()
		}()
	}
	l.enter(p, namespace)
}

// Wait returns when all that was given to Go and Enqueue is done.
func (l *Limiter) Wait() { l.running.Wait() }

// Release gives the seat back: the request was answered.
func (p *Seat) Release() { p.end(true) }

// enter has a request begin or wait.
func (l *Limiter) enter(p *Seat, name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.namespaces[name]
	if n == nil {
		n = &namespace{name: name, waiting: heap.New((*Seat).before)}
		l.namespaces[name] = n
	}
	l.line.arrivals++
	p.namespace, p.order[1], p.at = n, l.line.arrivals, -1
	if l.free > 0 && !n.slow {
		l.start(p, ordinary)
		return
	}
	l.wait(p)
	l.settle()
}

// wait puts a request where it waits.
func (l *Limiter) wait(p *Seat) {
	n := p.namespace
	if !n.slow {
		n.inLine++
		l.line.waiting.Put(p)
		l.line.told.InLine(1)
		return
	}
	l.line.aside++
	n.waiting.Put(p)
	l.line.told.Aside(n.name, 1)
	if p.aside != nil {
		p.aside()
	}
}

// leave takes a request from where it waits.
func (l *Limiter) leave(p *Seat) {
	n := p.namespace
	if !l.line.waiting.Has(p) {
		l.line.aside--
		n.waiting.Remove(p)
		l.line.told.Aside(n.name, -1)
		return
	}
	n.inLine--
	l.line.waiting.Remove(p)
	l.line.told.InLine(-1)
}

// settle has requests begin as long as there are seats for them.
func (l *Limiter) settle() {
	for l.spare > 0 && len(l.overdue) > 0 {
		p := l.overdue[0]
		l.overdue = slices.Delete(l.overdue, 0, 1)
		l.vacate(p)
		l.occupy(p, lent)
	}
	for l.free > 0 && l.line.waiting.Len() > 0 {
		p := l.line.waiting.Top()
		l.leave(p)
		if p.namespace.slow {
			l.wait(p)
			continue
		}
		l.start(p, ordinary)
	}
	for l.line.aside > 0 {
		switch lentTo, triedBy := l.firstAside(l.most), l.firstAside(1); {
		case l.spare > 0 && lentTo != nil:
			l.leave(lentTo)
			l.start(lentTo, lent)
		case l.free > 0 && l.tried < l.most && triedBy != nil:
			l.leave(triedBy)
			l.start(triedBy, tried)
		default:
			return
		}
	}
}

// firstAside is the first request of the slow namespaces that have fewer under way; nil: there is none.
func (l *Limiter) firstAside(fewer int) *Seat {
	var first *Seat
	for _, n := range l.namespaces {
		if n.waiting.Len() > 0 && n.underway < fewer && (first == nil || n.waiting.Top().before(first)) {
			first = n.waiting.Top()
		}
	}
	return first
}

// start has a request begin in a seat that is free.
func (l *Limiter) start(p *Seat, kind kind) {
	l.occupy(p, kind)
	p.namespace.underway++
	// In a goroutine, for clocks of tests call with their lock held.
	p.timer = l.clock.AfterFunc(lateAfter, func() { go l.late(p) })
	p.begin()
}

// occupy takes a seat that is free.
func (l *Limiter) occupy(p *Seat, kind kind) {
	p.kind = kind
	switch kind {
	case lent:
		l.spare--
	case tried:
		l.tried++
		l.free--
	default:
		l.free--
	}
}

// vacate gives back what occupy took.
func (l *Limiter) vacate(p *Seat) {
	switch p.kind {
	case lent:
		l.spare++
	case tried:
		l.tried--
		l.free++
	default:
		l.free++
	}
}

// late notes that a request was not answered in time.
func (l *Limiter) late(p *Seat) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.ended {
		return
	}
	p.late = true
	p.namespace.slow = true
	p.namespace.late++
	if p.kind != lent {
		l.overdue = append(l.overdue, p)
	}
	l.settle()
}

// end gives a seat back, or gives up waiting for one. Answered: the API server has answered the request.
func (p *Seat) end(answered bool) {
	l, n := p.limiter, p.namespace
	l.mu.Lock()
	defer l.mu.Unlock()
	p.ended = true
	if p.timer != nil {
		l.finish(p)
	} else {
		l.leave(p)
	}
	if answered && !p.late && n.late == 0 {
		n.slow = false
	}
	for n.waiting.Len() > 0 && !n.slow {
		next := n.waiting.Top()
		l.leave(next)
		l.wait(next)
	}
	if n.inLine+n.waiting.Len()+n.underway == 0 {
		delete(l.namespaces, n.name)
	}
	l.settle()
}

// finish takes note that a request is not under way any more.
func (l *Limiter) finish(p *Seat) {
	p.timer.Stop()
	p.namespace.underway--
	if p.late {
		p.namespace.late--
		l.overdue = slices.DeleteFunc(l.overdue, func(q *Seat) bool { return q == p })
	}
	l.vacate(p)
}
