// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package core

import (
	"context"
	"sync"
	"time"

	"github.com/caldera-scheduler/caldera/pkg/preemption/shuffle"
)

// Background is what runs for the rules in force while the scheduler leads: the voter, and the action shuffle.
type Background struct {
	mu sync.Mutex
	// parts are those of the action shuffle; nil before the scheduler leads.
	parts *shuffle.Parts
	// rules are those for which something runs, stop ends that.
	rules *Rules
	stop  context.CancelFunc
}

// begin runs what is to run for the rules in force, now that the scheduler leads.
func (b *Background) begin(ctx context.Context, f *InForce, parts shuffle.Parts) {
	b.mu.Lock()
	b.parts = &parts
	b.mu.Unlock()
	b.follow(ctx, f)
}

// follow runs what is to run for the rules in force, and ends what ran for those before them. Before the scheduler leads it does nothing. The rules
// are read with the lock held: of two callers the later one sees the later rules.
func (b *Background) follow(ctx context.Context, f *InForce) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := f.current()
	if b.parts == nil || b.rules == r {
		return
	}
	if b.stop != nil {
		b.stop()
	}
	ctx, b.stop = context.WithCancel(ctx)
	b.rules = r
	if r.shuffler != nil {
		go r.shuffler.Run(ctx, *b.parts)
	}
	if r.voter != nil {
		go r.voter.Run(ctx)
	}
}

// Shuffling reports whether pods are being chosen by the action shuffle at a time, or are about to be.
func (b *Background) Shuffling(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.rules != nil && b.rules.shuffler != nil && !b.rules.shuffler.Due().After(now)
}
