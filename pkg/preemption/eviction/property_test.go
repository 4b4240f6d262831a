// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package eviction_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/caldera-scheduler/caldera/internal/testing/golden"
	"github.com/caldera-scheduler/caldera/pkg/preemption/eviction"
)

// Whatever happens in whatever order: no victim is lost, what is final stays, and the sums are those of the parts.
func TestTheLedgerHoldsTogether(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{ledger: eviction.NewLedger(1000, time.Minute), now: golden.Begin, known: map[uint64]eviction.Decision{}}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			w.step(t)
			w.check(t)
		}
	})
}

type world struct {
	ledger *eviction.Ledger
	now    time.Time
	// known are the decisions as they were after the last step.
	known map[uint64]eviction.Decision
}

func (w *world) step(t *rapid.T) {
	pod := func() string {
		return fmt.Sprintf("%s-%d", rapid.SampledFrom([]string{"a", "b"}).Draw(t, "job"), rapid.IntRange(0, 4).Draw(t, "pod"))
	}
	jobs := rapid.SampledFrom([]string{"x", "y", "a"})
	w.now = w.now.Add(time.Duration(rapid.IntRange(0, 90).Draw(t, "pause")) * time.Second)
	switch rapid.SampledFrom([]string{"begin", "sent", "sent", "sent", "leaving", "leaving", "gone", "refused", "started", "cancel", "outstanding"}).Draw(t, "what") {
	case "begin":
		var of []string
		for range rapid.IntRange(1, 4).Draw(t, "victims") {
			if name := pod(); !slices.Contains(of, name) {
				of = append(of, name)
			}
		}
		w.ledger.Begin(w.now, eviction.Decision{
			Action: eviction.Reclaim, Beneficiary: job(jobs.Draw(t, "for")), Queue: "b", Victims: victims(strings.Join(of, ","), "a"),
		})
	case "sent":
		w.ledger.Sent(uint64(rapid.IntRange(1, len(w.known)+1).Draw(t, "decision")), types.UID(pod()))
	case "leaving":
		w.ledger.Leaving(types.UID(pod()), w.now.Add(time.Minute))
	case "gone":
		w.ledger.Gone(types.UID(pod()))
	case "refused":
		w.ledger.Refused(types.UID(pod()), "no", w.now.Add(eviction.Protection))
	case "started":
		w.ledger.Started(job(jobs.Draw(t, "job")), w.now)
	case "cancel":
		key := job(jobs.Draw(t, "job"))
		for _, v := range w.ledger.Cancel(key, w.now) {
			if v.State != eviction.Spared {
				t.Fatalf("%s is %s, and was spared", v.UID, v.State)
			}
		}
		if _, open := w.ledger.Open(key); open {
			t.Fatal("a decision is open after it was cancelled")
		}
	case "outstanding":
		w.outstanding(t, jobs.Draw(t, "job"))
	}
}

// outstanding compares the answer of the ledger with what can be counted in its decisions.
func (w *world) outstanding(t *rapid.T, name string) {
	left, next := w.ledger.Outstanding(job(name), w.now)
	want, first := 0, time.Time{}
	for _, d := range w.ledger.Decisions() {
		if d.Beneficiary != job(name) || d.Outcome != eviction.Pending {
			continue
		}
		for _, v := range d.Victims {
			switch v.State {
			case eviction.Leaving:
				if first.IsZero() || v.Deadline.Before(first) {
					first = v.Deadline
				}
				fallthrough
			case eviction.Planned, eviction.Sent:
				want++
			}
		}
	}
	if left != want || !next.Equal(first) || !next.IsZero() && !next.After(w.now) {
		t.Fatalf("outstanding are %d until %s, want %d until %s; it is %s", left, next, want, first, w.now)
	}
}

// check compares the decisions with what they were before.
func (w *world) check(t *rapid.T) {
	list := w.ledger.Decisions()
	if len(list) < len(w.known) {
		t.Fatalf("%d decisions are remembered, and before it were %d", len(list), len(w.known))
	}
	var evicted, wasted uint64
	for _, d := range list {
		before, known := w.known[d.ID]
		if known {
			final(t, before, d)
		}
		n := uint64(0)
		for _, v := range d.Victims {
			if v.Evicted {
				n++
			}
		}
		evicted += n
		switch {
		case d.Outcome == eviction.Cancelled && n > 0, d.Outcome == eviction.Wasted && n == 0:
			t.Fatalf("decision %d is %s with %d evicted pods", d.ID, d.Outcome, n)
		case d.Outcome == eviction.Wasted:
			wasted += n
		case (d.Outcome == eviction.Pending) != d.Ended.IsZero():
			t.Fatalf("decision %d is %s, and ended at %s", d.ID, d.Outcome, d.Ended)
		}
		w.known[d.ID] = d
	}
	f := w.ledger.Figures()
	sum := uint64(0)
	for n := range maps.Values(f.Evictions) {
		sum += n
	}
	if sum != evicted || f.Wasted != wasted || f.Decisions[eviction.Reclaim] != uint64(len(list)) || f.Evicted.Get("cpu") != int64(1000*evicted) {
		t.Fatalf("the figures are %+v, want %d evictions, of which %d were wasted, by %d decisions", f, evicted, wasted, len(list))
	}
}

// final fails when something changed that was final, or a victim is not there any more.
func final(t *rapid.T, before, after eviction.Decision) {
	if before.Outcome != eviction.Pending && (before.Outcome != after.Outcome || !before.Ended.Equal(after.Ended)) {
		t.Fatalf("decision %d was %s and is %s", after.ID, before.Outcome, after.Outcome)
	}
	if len(before.Victims) != len(after.Victims) {
		t.Fatalf("decision %d had %d victims and has %d", after.ID, len(before.Victims), len(after.Victims))
	}
	for i, v := range before.Victims {
		a := after.Victims[i]
		over := slices.Contains([]eviction.VictimState{eviction.Gone, eviction.Refused, eviction.Spared}, v.State)
		if a.UID != v.UID || a.Pod.Name != v.Pod.Name || v.Evicted && !a.Evicted || over && a.State != v.State {
			t.Fatalf("victim %s was %s (evicted: %t) and is %s %s (evicted: %t)", v.UID, v.State, v.Evicted, a.UID, a.State, a.Evicted)
		}
	}
}
