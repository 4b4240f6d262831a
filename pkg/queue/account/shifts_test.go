// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package account_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/queue/account"
)

// standing is all of an account that queues are put in order by.
type standing struct {
	share, lately float64
	due, leaf     bool
	spec          *model.Queue
	parent        *account.Queue
	first, end    int
}

func standingOf(q *account.Queue) standing {
	s := standing{share: q.Share, lately: q.LatelyShare, due: q.Due(), leaf: q.Leaf(), spec: q.Spec, parent: q.Parent}
	s.first, s.end = q.Span()
	return s
}

// TestWhoFollowsTheShiftsOfABookMissesNone replays random changes: what queues are put in order by changes only of those that the book names.
func TestWhoFollowsTheShiftsOfABookMissesNone(t *testing.T) {
	named := 0
	rapid.Check(t, func(t *rapid.T) {
		w := &world{
			mode:   rapid.SampledFrom([]account.Mode{account.Undivided, account.Proportion, account.Capacity, account.Hierarchy}).Draw(t, "mode"),
			queues: map[string]*model.Queue{}, jobs: map[model.JobKey]*model.Job{},
		}
		b := account.NewBook(w.mode)
		b.Count(account.Recency{HalfLife: time.Minute})
		now := time.Unix(0, 0)
		var seen uint64
		followed := map[*account.Queue]standing{}
		for range rapid.IntRange(1, 40).Draw(t, "changes") {
			now = now.Add(time.Duration(rapid.IntRange(0, 40).Draw(t, "seconds")) * time.Second)
			b.Pass(now)
			w.change(t, b)
			if rapid.Bool().Draw(t, "update") {
				b.Update()
			}
			shifted, count, all := b.Shifted(seen)
			for q, before := range followed {
				if now := standingOf(q); now != before && !all && !slices.Contains(shifted, q) {
					t.Fatalf("queue %s stands at %+v, and stood at %+v: the book does not say so", q.Name, now, before)
				}
			}
			if !all {
				named += len(shifted)
			}
			if rapid.Bool().Draw(t, "followed") {
				seen = count
				clear(followed)
				for _, q := range b.Queues() {
					followed[q] = standingOf(q)
				}
			}
		}
		b.Update()
		checkSpans(t, b)
	})
	if named == 0 {
		t.Error("the book never named single queues")
	}
}

// checkSpans checks that each queue has a place of its own, and those below it the places behind that.
func checkSpans(t *rapid.T, b *account.Book) {
	places := map[int]string{}
	for _, q := range b.Queues() {
		first, end := q.Span()
		if other, taken := places[first]; taken || first < 0 || end > len(b.Queues()) {
			t.Fatalf("queue %s has the places from %d to %d of %d; the first is also that of %q", q.Name, first, end, len(b.Queues()), other)
		}
		places[first] = q.Name
		below := 0
		for _, other := range b.Queues() {
			if at, _ := other.Span(); q.Above(other) {
				if below++; at < first || at >= end {
					t.Fatalf("queue %s is at %d, and %s above it from %d to %d", other.Name, at, q.Name, first, end)
				}
			}
		}
		if below != end-first {
			t.Fatalf("queue %s has the places from %d to %d for %d queues", q.Name, first, end, below)
		}
	}
}
