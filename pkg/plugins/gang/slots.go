// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"context"
	"sync"

	"github.com/caldera-scheduler/caldera/pkg/heap"
)

// slots bounds how many pods are bound at a time. Those that wait are let through in the order of their turns, so that
// a gang is bound as a whole before the next one.
type slots struct {
	// mu guards everything below.
	mu      sync.Mutex
	free    int
	waiting *heap.Heap[*ticket]
	// arrivals breaks ties within a turn.
	arrivals uint64
	// queued is told how many more pods wait, or fewer. It must not call back.
	queued func(more int)
}

// ticket is one pod waiting to be bound.
type ticket struct {
	turn, arrival uint64
	ready         chan struct{}
	at            int
}

// Position implements heap.Element.
func (t *ticket) Position() *int { return &t.at }

func newSlots(n int, queued func(more int)) *slots {
	return &slots{free: n, queued: queued, waiting: heap.New(func(a, b *ticket) bool {
		if a.turn != b.turn {
			return a.turn < b.turn
		}
		return a.arrival < b.arrival
	})}
}

// acquire takes a slot. It fails only when the context ends first.
func (s *slots) acquire(ctx context.Context, turn uint64) error {
	s.mu.Lock()
	if s.free > 0 {
		s.free--
		s.mu.Unlock()
		return nil
	}
	s.arrivals++
	t := &ticket{turn: turn, arrival: s.arrivals, ready: make(chan struct{}), at: -1}
	s.waiting.Put(t)
	s.queued(1)
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
		s.waiting.Remove(t)
		s.queued(-1)
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
	if s.waiting.Len() == 0 {
		s.free++
		return
	}
	close(s.waiting.Pop().ready)
	s.queued(-1)
}
