// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package remedy

import (
	"fmt"
	"strings"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/queue/dispatch"
	"github.com/caldera-scheduler/caldera/pkg/resource"
	"github.com/caldera-scheduler/caldera/pkg/simulate/change"
)

// chain is a queue and all above it, the queue itself first. Queues that are above each other are not gone through twice.
func chain(all []dispatch.QueueFigures, name string) []dispatch.QueueFigures {
	byName := make(map[string]dispatch.QueueFigures, len(all))
	for _, q := range all {
		byName[q.Name] = q
	}
	var up []dispatch.QueueFigures
	for range all {
		q, ok := byName[name]
		if !ok || q.Spec == nil {
			break
		}
		up = append(up, q)
		name = q.Parent
	}
	return up
}

// inQueues looks for queues of the job that could be opened, or that could hold more.
func (s *search) inQueues() error {
	if s.limits {
		return nil
	}
	if open := s.opening(); len(open.changes) > 0 {
		if _, err := s.try(once(open)); err != nil {
			return err
		}
	}
	if !s.limited() {
		return nil
	}
	_, err := s.try(measure{kind: OfQueue, most: s.widest(), guess: s.least(), of: s.larger})
	return err
}

// limited reports whether some limit is too low for the job.
func (w *waiter) limited() bool {
	if len(w.job.Tasks) == 0 {
		return false
	}
	_, changes := w.larger(w.least())
	return len(changes) > 0
}

// widest is for how many pods more than now a limit is made large enough at most: other jobs may come before.
func (w *waiter) widest() int { return 4*max(len(w.job.Tasks), w.job.Min()) + 16 }

// opening opens the queues of the job that are closed.
func (w *waiter) opening() step {
	open := step{kind: OfQueue}
	var closed []string
	for _, q := range w.chain {
		if q.Spec.State != model.QueueOpen && q.Spec.State != "" {
			closed = append(closed, q.Name)
			open.changes = append(open.changes, change.Set{Text: "queue." + q.Name + ".state=" + string(model.QueueOpen)})
		}
	}
	if len(closed) > 0 {
		open.text = "open queue " + strings.Join(closed, " and queue ")
	}
	return open
}

// larger has the queues hold so many more pods like the job's. Limits that allow that already stay.
func (w *waiter) larger(pods int) (text string, changes []change.Change) {
	var more resource.Vector
	waiting := w.pending()
	for _, t := range waiting[:min(pods, len(waiting))] {
		more.Add(t.Charge)
	}
	for range pods - len(waiting) {
		more.Add(w.job.Tasks[0].Charge)
	}
	var parts []string
	for _, q := range w.chain {
		for _, name := range q.Capability.Refuses(more, q.Total.Allocated) {
			needed := resource.Amount{Name: name, Value: q.Total.Allocated.Get(name) + more.Get(name)}.Format()
			part := fmt.Sprintf("queue %s may hold %s %s", q.Name, needed, name)
			if now, limited := q.Capability.Of(name); limited {
				part += fmt.Sprintf(" instead of %s", resource.Amount{Name: name, Value: int64(now)}.Format())
			}
			parts = append(parts, part)
			changes = append(changes, change.Set{Text: fmt.Sprintf("queue.%s.capability.%s=%s", q.Name, name, needed)})
		}
	}
	return strings.Join(parts, ", and "), changes
}
