// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"slices"
	"time"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// Recency is how what queues have held counts for what they are due. The zero value: not at all. Source: KAI-Scheduler's time-based fairshare.
type Recency struct {
	// HalfLife is the time after which a moment counts half; 0: what was held does not count.
	HalfLife time.Duration
	// Pull is how much what was held counts where queues share by weight, 0 or more.
	Pull float64
}

// moved is how often what queues are due follows what they have held.
const moved = time.Minute

// Count says how what queues have held counts. It is to be called before anything is recorded.
func (b *Book) Count(r Recency) { b.recency = r }

// Inherit has queues that this book meets begin with what they have held by another one.
func (b *Book) Inherit(from *Book) {
	for name, q := range from.queues {
		if !q.recent.At.IsZero() {
			b.inherited[name] = q.recent
		}
	}
}

// Recency returns how what queues have held counts.
func (b *Book) Recency() Recency { return b.recency }

// Pass tells the time: what is recorded from now on happens then.
func (b *Book) Pass(now time.Time) {
	if b.recency.HalfLife == 0 {
		return
	}
	b.now = now
	if !b.Moves().After(now) {
		b.uneven = true
	}
}

// Moves is when what queues are due follows next what they have held; zero: never.
func (b *Book) Moves() time.Time {
	if b.recency.HalfLife == 0 {
		return time.Time{}
	}
	return b.movedAt.Add(moved)
}

// remember has a queue's average take in what it held until now, which is about to change.
func (b *Book) remember(q *Queue) {
	if b.recency.HalfLife > 0 && !q.recent.At.IsZero() {
		q.recent = b.keptOn(q, q.recent)
	}
}

// keptOn is an average that had been right once, had the queue held since what it holds now.
func (b *Book) keptOn(q *Queue, average model.Recent) model.Recent {
	return average.After(b.now, q.usage(b.mode).Allocated, b.recency.HalfLife)
}

// look takes down what all queues have held, for what they are due until it is looked at again. Before it is told the time it keeps no count.
func (b *Book) look() {
	if b.recency.HalfLife == 0 || b.now.IsZero() {
		return
	}
	due := !b.Moves().After(b.now)
	for _, q := range b.sorted {
		known := !q.recent.At.IsZero()
		if !known {
			q.recent = b.before(q)
		}
		if due || !known {
			b.remember(q)
			q.lately = q.recent.Average
		}
	}
	if due {
		b.movedAt = b.now
	}
}

// before is what a queue had held that is met for the first time: by the book before, or by what its object tells. What it holds counts as held since.
func (b *Book) before(q *Queue) model.Recent {
	known, inherited := b.inherited[q.Name]
	if !inherited && q.Spec != nil {
		known = q.Spec.Recent
	}
	delete(b.inherited, q.Name)
	if known.At.IsZero() || known.At.After(b.now) {
		// Who wrote it had another clock.
		known.At = b.now
	}
	return known
}

// partLately is what a queue has held lately as a part of what is divided.
func (b *Book) partLately(q *Queue) resource.Portion {
	parts, whole := slices.Clone(q.lately), b.divided()
	for i, a := range parts {
		parts[i].Value = min(1, a.Value/max(1, float64(whole.Get(a.Name))))
	}
	return parts
}

// shareLately is what LatelyShare is to be.
func (b *Book) shareLately(q *Queue) float64 {
	if q.Due() {
		return q.lately.Dominant(q.Deserved)
	}
	return q.lately.Dominant(b.portion)
}

// forgotten is how much of the cluster a scheduler that starts may be wrong by about what a queue has held.
const forgotten = 0.01

// Recent is what a queue has held on average until now, and whether a scheduler that starts now would be wrong about it by what the queue's object
// tells. Both are zero where it does not count.
func (b *Book) Recent(q *Queue, told model.Recent) (kept model.Recent, wrong bool) {
	if b.recency.HalfLife == 0 {
		return model.Recent{}, false
	}
	kept = b.keptOn(q, q.recent)
	remembered := model.Recent{At: b.now}
	if !told.At.IsZero() {
		remembered = b.keptOn(q, told)
	}
	return kept, !remembered.Like(kept, forgotten, b.portion)
}
