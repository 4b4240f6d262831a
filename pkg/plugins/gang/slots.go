// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"container/heap"
	"context"
	"sync"
)

// slots bounds how many pods are bound at a time. Those that wait are let through in the order of their turns, so that
// a gang is bound as a whole before the next one.
type slots struct {
	// mu guards everything below.
	mu      sync.Mutex
	free    int
	waiting queue
	// arrivals breaks ties within a turn.
	arrivals uint64
}

// ticket is one pod waiting to be bound.
type ticket struct {
	turn, arrival uint64
	ready         chan struct{}
	at            int
}

func newSlots(n int) *slots { return &slots{free: n} }

// acquire takes a slot. It fails only when the context ends first.
func (s *slots) acquire(ctx context.Context, turn uint64) error {
	s.mu.Lock()
	if s.free > 0 {
		s.free--
		s.mu.Unlock()
		return nil
	}
	s.arrivals++
	t := &ticket{turn: turn, arrival: s.arrivals, ready: make(chan struct{})}
	heap.Push(&s.waiting, t)
	s.mu.Unlock()
	select {
	case <-t.ready:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-t.ready:
		// The slot came at the same moment; it goes to the next.
		s.pass()
	default:
		heap.Remove(&s.waiting, t.at)
	}
	return context.Cause(ctx)
}

// release gives a slot back.
func (s *slots) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pass()
}

// pass hands a slot to the first that waits.
func (s *slots) pass() {
	if len(s.waiting) == 0 {
		s.free++
		return
	}
	close(heap.Pop(&s.waiting).(*ticket).ready)
}

// queue is a heap of tickets, oldest turn first.
type queue []*ticket

func (q queue) Len() int { return len(q) }

func (q queue) Less(i, j int) bool {
	if q[i].turn != q[j].turn {
		return q[i].turn < q[j].turn
	}
	return q[i].arrival < q[j].arrival
}

func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].at, q[j].at = i, j
}

// Push implements heap.Interface.
func (q *queue) Push(x any) {
	t := x.(*ticket)
	t.at = len(*q)
	*q = append(*q, t)
}

// Pop implements heap.Interface.
func (q *queue) Pop() any {
	old := *q
	t := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	return t
}
