// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/queue/account"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// Budget is what a queue may take, as of when it was made.
type Budget struct {
	bounds []Bound
	// above names the queues above each, where the tree is looked at.
	above map[string][]string
}

// Budget returns what a queue may take on top of what it holds, besides what does not count of a job's own.
func (s *Set) Budget(q *account.Queue, own resource.Vector, borrowing bool) *Budget {
	b := &Budget{above: s.book.Above()}
	for _, p := range s.limiters {
		limits(p, q, own, borrowing, func(bound Bound) bool {
			bound.Held = bound.Held.Clone()
			b.bounds = append(b.bounds, bound)
			return true
		})
	}
	return b
}

// Clone returns a budget of its own with what was taken so far.
func (b *Budget) Clone() *Budget {
	c := &Budget{bounds: slices.Clone(b.bounds), above: b.above}
	for i := range c.bounds {
		c.bounds[i].Held = c.bounds[i].Held.Clone()
	}
	return c
}

// Refuses says which limit keeps the queue from taking so much more; the zero Reason when none does.
func (b *Budget) Refuses(ask resource.Vector) model.Reason {
	for i := range b.bounds {
		if reason := b.bounds[i].refuses(ask); reason != (model.Reason{}) {
			return reason
		}
	}
	return model.Reason{}
}

// Excuse raises each limit to what is held now, where that is more. A queue may come to hold more than it may, when what it
// is due shrinks; one of its jobs may then still take the place of others, as long as the queue grows no further. Volcano
// lets nobody in until the queue is below its limit.
func (b *Budget) Excuse() {
	for i := range b.bounds {
		bound := &b.bounds[i]
		bound.Limit = bound.Limit.Clone()
		bound.Limit.Admit(bound.Held)
	}
}

// Take counts so much more as held.
func (b *Budget) Take(ask resource.Vector) {
	for i := range b.bounds {
		b.bounds[i].Held.Add(ask)
	}
}

// Release counts as given back what a victim of a queue holds: by the limits on that queue and on those above it.
func (b *Budget) Release(queue string, amounts resource.Vector) {
	b.change(queue, func(held *resource.Vector) { held.Sub(amounts) })
}

// Waive counts nothing as taken that is kept for tasks which were let through the gates of queues.
func (b *Budget) Waive(book *account.Book) {
	for i := range b.bounds {
		b.bounds[i].Held.Sub(book.UsageOf(b.bounds[i].Queue).Claimed)
	}
}

// Retain takes a Release back.
func (b *Budget) Retain(queue string, amounts resource.Vector) {
	b.change(queue, func(held *resource.Vector) { held.Add(amounts) })
}

func (b *Budget) change(queue string, by func(held *resource.Vector)) {
	above := b.above[queue]
	for i := range b.bounds {
		if of := b.bounds[i].Queue.Name; of == queue || slices.Contains(above, of) {
			by(&b.bounds[i].Held)
		}
	}
}

func (b *Bound) refuses(ask resource.Vector) model.Reason {
	over := b.Limit.Refuses(ask, b.Held)
	if len(over) == 0 {
		return model.Reason{}
	}
	ask, held := b.Held.More(ask), b.Held.Counted()
	details := make([]string, len(over))
	for i, name := range over {
		bound, _ := b.Limit.Of(name)
		details[i] = fmt.Sprintf("%s: %s held, %s asked for, limit %s", name,
			format(name, held.Get(name)), format(name, ask.Get(name)), format(name, int64(bound)))
	}
	return model.Reason{
		Kind: model.QueueFull, Subject: b.Queue.Name,
		Message: fmt.Sprintf("queue %q has no room: %s", b.Queue.Name, strings.Join(details, "; ")),
	}
}
