// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package core

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/preemption/shuffle"
)

// runs is a voter that notes how often it runs, and how often that has ended.
type runs struct {
	Voter
	began, ended int
}

// Run implements Voter.
func (r *runs) Run(ctx context.Context) {
	r.began++
	<-ctx.Done()
	r.ended++
}

// TestOnlyTheRulesInForceHaveSomethingRun: nothing runs before the scheduler leads, and what ran for rules ends with them, once each.
func TestOnlyTheRulesInForceHaveSomethingRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		one, other := &runs{}, &runs{}
		first, second := &Rules{voter: one}, &Rules{voter: other}
		want := func(when string, began, ended, otherBegan, otherEnded int) {
			t.Helper()
			synctest.Wait()
			if one.began != began || one.ended != ended || other.began != otherBegan || other.ended != otherEnded {
				t.Errorf("%s: one began %d times and ended %d times, the other %d and %d, want %d, %d, %d and %d", when,
					one.began, one.ended, other.began, other.ended, began, ended, otherBegan, otherEnded)
			}
		}
		var b Background
		f := newInForce(model.NewState())
		f.rules.Store(first)
		b.follow(ctx, f)
		want("before it leads", 0, 0, 0, 0)
		b.begin(ctx, f, shuffle.Parts{})
		want("when it leads", 1, 0, 0, 0)
		b.follow(ctx, f)
		want("when the same come into force", 1, 0, 0, 0)
		f.rules.Store(second)
		b.follow(ctx, f)
		want("when others come into force", 1, 1, 1, 0)
		stop()
		want("in the end", 1, 1, 1, 1)
		if b.Shuffling(time.Now()) {
			t.Error("pods are shuffled, and no rules say so")
		}
	})
}
