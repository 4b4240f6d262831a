// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package account_test

import (
	"math"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/queue/account"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// room is what a queue may still take of a resource: what is left of its limits and, by weight, of its due.
func room(b *account.Book, q *account.Queue, r corev1.ResourceName) float64 {
	left := func(q *account.Queue) float64 {
		held := float64(b.UsageOf(q).Allocated.Get(r))
		if most, limited := q.Real.Of(r); limited {
			return most - held
		}
		return math.Inf(1)
	}
	least := left(q)
	if b.Mode() == account.Proportion {
		return min(least, q.Deserved.Get(r)-float64(q.Own.Allocated.Get(r)))
	}
	if b.Mode() == account.Hierarchy {
		for above := q.Parent; above != nil; above = above.Parent {
			least = min(least, left(above))
		}
	}
	return least
}

// unpromised is what of a queue's limits admission may still promise.
func unpromised(b *account.Book, q *account.Queue, r corev1.ResourceName) float64 {
	least := math.Inf(1)
	for ; q != nil; q = q.Parent {
		if most, limited := q.Real.Of(r); limited {
			usage := b.UsageOf(q)
			least = min(least, most-float64(usage.Committed().Get(r)))
		}
		if b.Mode() != account.Hierarchy {
			break
		}
	}
	return least
}

// TestRoomGrowsOnlyWhenItIsCounted checks that who waits for room misses none: as long as the counts stay, no queue can
// take, or be promised, more than before.
func TestRoomGrowsOnlyWhenItIsCounted(t *testing.T) {
	type state struct{ room, unpromised float64 }
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		if w.mode == account.Undivided {
			// There nothing is limited.
			w.mode = account.Proportion
		}
		b := w.anew()
		for range rapid.IntRange(1, 6).Draw(t, "changes") {
			before := map[string]map[corev1.ResourceName]state{}
			for _, q := range b.Queues() {
				before[q.Name] = map[corev1.ResourceName]state{}
				for _, r := range resources {
					before[q.Name][r] = state{room(b, q, r), unpromised(b, q, r)}
				}
			}
			loosened, freed := b.Loosened(), b.Freed()
			w.change(t, b)
			b.Update()
			for _, q := range b.Queues() {
				for r, was := range before[q.Name] {
					if now := room(b, q, r); b.Loosened() == loosened && now > was.room+1e-9 {
						t.Fatalf("queue %s had room for %g of %s, and has for %g, unheard", q.Name, was.room, r, now)
					}
					if now := unpromised(b, q, r); b.Freed() == freed && now > was.unpromised+1e-9 {
						t.Fatalf("queue %s could be promised %g of %s, and can %g, unheard", q.Name, was.unpromised, r, now)
					}
				}
			}
		}
	})
}

func TestRoomIsCountedWhenItMayHaveGrown(t *testing.T) {
	cpu := func(n int64) resource.Vector { return resource.Vector{{Name: "cpu", Value: n}} }
	job := func(queue string, holds, waits int64, admitted bool) *model.Job {
		j := &model.Job{Key: keyOf(1), Queue: queue, Group: &model.Group{MinMember: 1}, Admitted: admitted}
		j.Usage.Allocated, j.Usage.Requested = cpu(holds), cpu(holds+waits)
		j.Group.MinResources = cpu(holds + waits)
		return j
	}
	for name, tc := range map[string]struct {
		// first and then are the job before and after; nil for none.
		first, then *model.Job
		// other is how many cores queue b asks for: of 10 by weight.
		other           int64
		loosened, freed bool
	}{
		"a job arrives and takes from nobody what it gives to its queue": {then: job("a", 0, 4, false), loosened: true, freed: true},
		"a job arrives in a queue that is due no more":                   {first: job("a", 0, 6, false), then: job("a", 0, 8, false), other: 10},
		"a job asks for less, and the other queue is due more":           {first: job("a", 0, 5, false), then: job("a", 0, 3, false), other: 10, loosened: true, freed: true},
		"a job is placed":                                   {first: job("a", 0, 4, true), then: job("a", 4, 0, true), other: 10},
		"a placed job is gone":                              {first: job("a", 4, 0, true), loosened: true, freed: true, other: 5},
		"a waiting job that was not admitted is gone":       {first: job("a", 0, 4, false), other: 5, freed: true},
		"an admitted job is gone":                           {first: job("a", 0, 4, true), other: 5, freed: true},
		"a job gives its admission back":                    {first: job("a", 0, 4, true), then: job("a", 0, 4, false), other: 10, freed: true},
		"a job is admitted":                                 {first: job("a", 0, 4, false), then: job("a", 0, 4, true), other: 10},
		"nothing changes":                                   {first: job("a", 2, 4, true), then: job("a", 2, 4, true), other: 10},
		"a placed job moves to the other queue":             {first: job("a", 4, 0, true), then: job("b", 4, 0, true), other: 10, loosened: true, freed: true},
		"a waiting job moves to a queue that is due more":   {first: job("a", 0, 5, false), then: job("b", 0, 5, false), other: 1, loosened: true, freed: true},
		"a job appears in a queue that does not exist":      {then: job("nowhere", 0, 4, false), other: 5, loosened: true, freed: true},
		"a task more is placed than the minimum asks for":   {first: job("a", 4, 1, true), then: job("a", 5, 0, true), other: 10},
		"a job that holds shrinks and waits for as much":    {first: job("a", 4, 0, true), then: job("a", 2, 2, true), other: 10, loosened: true},
		"a queue that asks for nothing is asked for no job": {other: 10},
	} {
		t.Run(name, func(t *testing.T) {
			b := account.NewBook(account.Proportion)
			b.SetCluster(cpu(10))
			b.SetQueue("a", &model.Queue{Name: "a", Weight: 1})
			b.SetQueue("b", &model.Queue{Name: "b", Weight: 1})
			if tc.other > 0 {
				other := job("b", 0, tc.other, false)
				b.SetJob(keyOf(2), other)
			}
			if tc.first != nil {
				b.SetJob(keyOf(1), tc.first)
			}
			b.Update()
			loosened, freed := b.Loosened(), b.Freed()
			b.SetJob(keyOf(1), tc.then)
			b.Update()
			if got := b.Loosened() != loosened; got != tc.loosened {
				t.Errorf("room has grown: %t, want %t", got, tc.loosened)
			}
			if got := b.Freed() != freed; got != tc.freed {
				t.Errorf("another job may be let in: %t, want %t", got, tc.freed)
			}
		})
	}
}

func TestAnUpdateSaysWhetherQueuesChanged(t *testing.T) {
	b := account.NewBook(account.Hierarchy)
	for _, step := range []struct {
		name string
		do   func()
		want bool
	}{
		{"a new book", func() {}, true},
		{"nothing happened", func() {}, false},
		{"a queue", func() { b.SetQueue("a", &model.Queue{Name: "a"}) }, true},
		{"the cluster", func() { b.SetCluster(resource.Vector{{Name: "cpu", Value: 8}}) }, false},
		{"a job of a known queue", func() { b.SetJob(keyOf(1), &model.Job{Key: keyOf(1), Queue: "a"}) }, false},
		{"a job of an unknown queue", func() { b.SetJob(keyOf(2), &model.Job{Key: keyOf(2), Queue: "b"}) }, true},
		{"the last job of an unknown queue", func() { b.SetJob(keyOf(2), nil) }, true},
		{"a queue that is gone", func() { b.SetQueue("a", nil) }, true},
	} {
		step.do()
		if got := b.Update(); got != step.want {
			t.Errorf("%s: queues changed: %t, want %t", step.name, got, step.want)
		}
	}
}

func TestBranchesAreWherePathsPart(t *testing.T) {
	b := account.NewBook(account.Hierarchy)
	for name, parent := range map[string]string{
		"eng": "", "dev": "eng", "prod": "eng", "web": "prod", "sci": "", "lost": "nowhere", "below": "lost", "ring": "ring",
	} {
		b.SetQueue(name, &model.Queue{Name: name, Parent: parent})
	}
	b.Update()
	for name, want := range map[string][4]string{
		"siblings":                      {"dev", "prod", "dev", "prod"},
		"cousins":                       {"dev", "sci", "eng", "sci"},
		"at different depths":           {"web", "dev", "prod", "dev"},
		"a branch beside one that ends": {"web", "sci", "eng", "sci"},
		"one above the other":           {"eng", "web", "eng", "eng"},
		"one below the other":           {"web", "eng", "eng", "eng"},
		"the root and a leaf":           {"root", "dev", "root", "root"},
		"a queue and itself":            {"dev", "dev", "dev", "dev"},
		"different trees":               {"web", "below", "root", "lost"},
		"a tree of one":                 {"ring", "dev", "ring", "root"},
	} {
		t.Run(name, func(t *testing.T) {
			x, y := account.Branches(b.Queue(want[0]), b.Queue(want[1]))
			if x.Name != want[2] || y.Name != want[3] {
				t.Errorf("%s and %s part at %s and %s, want %s and %s", want[0], want[1], x.Name, y.Name, want[2], want[3])
			}
		})
	}
}
