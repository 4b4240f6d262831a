// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package account

// shifts records the queues that may have another place in the order of queues, because their share changed. Who keeps such an order looks only at these.
// The record is dropped when all queues may have changed, and when it is as long as there are queues.
type shifts struct {
	// earlier counts the changes before those that are in the record.
	earlier uint64
	queues  []*Queue
}

// note records that a queue changed; most is the length at which the record is dropped.
func (s *shifts) note(q *Queue, most int) {
	if len(s.queues) >= most {
		s.drop()
		return
	}
	s.queues = append(s.queues, q)
}

// drop takes in that all queues may have changed.
func (s *shifts) drop() {
	s.earlier += uint64(len(s.queues)) + 1
	clear(s.queues)
	s.queues = s.queues[:0]
}

// Shifted returns the queues whose share changed since a count of such changes, and the count now. All: any queue may have changed, and the places of
// queues (Queue.Span), too. So it is since a count of 0. What is returned belongs to the book, and holds until the book changes.
func (b *Book) Shifted(since uint64) (queues []*Queue, now uint64, all bool) {
	now = b.shifts.earlier + uint64(len(b.shifts.queues))
	if since < b.shifts.earlier {
		return nil, now, true
	}
	return b.shifts.queues[since-b.shifts.earlier:], now, false
}

// Span is where the queue and those below it stand in an order of all queues in which they are together: from first on, up to end, which is not of
// them. Both are 0 of a queue that is new, or gone, since the last Update.
func (q *Queue) Span() (first, end int) { return q.first, q.end }

// setSpans gives all queues their places.
func (b *Book) setSpans() {
	next := 0
	var visit func(*Queue)
	visit = func(q *Queue) {
		q.first = next
		next++
		for _, child := range q.Children {
			visit(child)
		}
		q.end = next
	}
	for _, q := range b.sorted {
		if q.Parent == nil {
			visit(q)
		}
	}
}
