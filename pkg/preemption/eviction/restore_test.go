// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package eviction_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caldera-scheduler/caldera/internal/testing/golden"
	"github.com/caldera-scheduler/caldera/pkg/preemption/eviction"
)

// before is the ledger of a scheduler that led before: one decision is over, one was in the middle.
func before() *eviction.Ledger {
	l := eviction.NewLedger(10, time.Hour)
	over := l.Begin(golden.Begin, eviction.Decision{Action: eviction.Reclaim, Beneficiary: job("x"), Queue: "b", Victims: victims("a-0", "a")})
	l.Sent(over.ID, "a-0")
	l.Leaving("a-0", golden.Begin.Add(time.Minute))
	l.Gone("a-0")
	l.Started(job("x"), golden.Begin.Add(time.Second))
	middle := l.Begin(golden.Begin.Add(time.Minute), eviction.Decision{
		Action: eviction.Reclaim, Beneficiary: job("y"), Queue: "b", Victims: victims("c-0,c-1,c-2", "a"),
	})
	l.Sent(middle.ID, "c-0")
	l.Sent(middle.ID, "c-1")
	l.Leaving("c-0", golden.Begin.Add(2*time.Minute))
	return l
}

func TestALedgerGoesOnWhereTheOneBeforeEnded(t *testing.T) {
	now := golden.Begin.Add(2 * time.Minute)
	l := eviction.NewLedger(10, time.Hour)
	kept := before().Decisions()
	l.Restore(kept, now)
	got := l.Decisions()
	if len(got) != 2 || got[0].ID != 2 || got[0].Outcome != eviction.Interrupted || !got[0].Ended.Equal(now) || got[1].Outcome != eviction.Started {
		t.Fatalf("what is remembered is %+v", got)
	}
	var states []eviction.VictimState
	for _, v := range got[0].Victims {
		states = append(states, v.State)
	}
	if want := []eviction.VictimState{eviction.Leaving, eviction.Lost, eviction.Lost}; !cmp.Equal(want, states) {
		t.Errorf("the victims in the middle are %v, want %v", states, want)
	}
	if diff := cmp.Diff(kept[1].Named().Victims[0].Pod, got[1].Victims[0].Pod); diff != "" {
		t.Errorf("the pod that was evicted (-before,+after)\n%s", diff)
	}
	// Queue b took from a: a may not take from b yet.
	if until := l.Cooldown("b", "a", now); !until.Equal(golden.Begin.Add(time.Minute + time.Hour)) {
		t.Errorf("queue a may not take from b until %v", until)
	}
	// It goes on counting, and learns what becomes of pods that are still there.
	l.Gone("c-0")
	if d := l.Begin(now, eviction.Decision{Action: eviction.Preempt, Beneficiary: job("z"), Queue: "a", Victims: victims("x-0", "b")}); d.ID != 3 {
		t.Errorf("the next decision is number %d, want 3", d.ID)
	}
	if state := l.Decisions()[1].Victims[0].State; state != eviction.Gone {
		t.Errorf("a pod that has gone since is %s", state)
	}
	if f := l.Figures(); f.Decisions[eviction.Reclaim] != 0 || f.Decisions[eviction.Preempt] != 1 {
		t.Errorf("the figures are %+v, want those of this scheduler only", f)
	}
}

func TestALedgerThatHasDecidedTakesNothingIn(t *testing.T) {
	l := eviction.NewLedger(10, time.Hour)
	l.Begin(golden.Begin, eviction.Decision{Action: eviction.Preempt, Beneficiary: job("z"), Queue: "a", Victims: victims("x-0", "b")})
	l.Restore(before().Decisions(), golden.Begin)
	if got := l.Decisions(); len(got) != 1 {
		t.Errorf("it remembers %+v", got)
	}
}

// More than a ledger remembers may have been kept, and in any order.
func TestOnlyTheLatestAreRemembered(t *testing.T) {
	l := eviction.NewLedger(1, time.Hour)
	kept := before().Decisions()
	l.Restore(append(kept, kept...), golden.Begin.Add(time.Hour))
	if got := l.Decisions(); len(got) != 1 || got[0].ID != 2 {
		t.Errorf("it remembers %+v, want the last decision once", got)
	}
}
