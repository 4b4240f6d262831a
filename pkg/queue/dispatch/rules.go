// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"context"
	"fmt"
	"time"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/policy"
)

// Rules are what a dispatcher decides by. They can be replaced while it runs.
type Rules struct {
	// Policies decide who goes first and how much a queue may hold. The dispatcher tells them of jobs and queues; nobody
	// else may use them.
	Policies *policy.Set
	// AdmissionTimeout is how long an admitted job may be without pods; zero for ever.
	AdmissionTimeout time.Duration
	// StalledAfter is how long nodes must have refused an admitted job, or it must have had no turns, for others to be its guests; zero: for ever.
	StalledAfter time.Duration
	// PromiseGrace is how long a job that was let in has a claim to room for its minimum before its pods exist; zero: not at all.
	PromiseGrace time.Duration
	// HalfTimeout is how long a gang that was never whole may hold nodes for too few of its members before it is released; zero: for ever.
	HalfTimeout time.Duration
	// BrokenTimeout is how long a gang that lost members may hold nodes for too few before its minimum protects it no more; zero: for ever.
	// ReleaseLost: it is released then.
	BrokenTimeout time.Duration
	ReleaseLost   bool
	// Evicts: some action evicts.
	Evicts bool
}

// loosen returns a job as the rules take it: without the gang policy its tasks start each on their own. The job may be nil.
func (r *Rules) loosen(job *model.Job) *model.Job {
	if job == nil || r.Policies.Gangs {
		return job
	}
	return job.Ungrouped()
}

// adoption is a change of rules that waits for the turn to end.
type adoption struct {
	rules Rules
	then  func()
	done  chan struct{}
}

// Adopt has the dispatcher decide by other rules, which must not have been told of anything yet, and calls then at the moment
// at which they come into force: no turn is on, and none begins before it returns. It must not call back. Jobs that wait go on to,
// those that were let in stay so. It returns when that is done, or the context has ended before.
func (d *Dispatcher) Adopt(ctx context.Context, rules Rules, then func()) error {
	a := &adoption{rules: rules, then: then, done: make(chan struct{})}
	d.mu.Lock()
	d.adopting = a
	if d.turn == nil {
		d.adopt()
	}
	d.mu.Unlock()
	d.wake()
	select {
	case <-a.done:
		return nil
	case <-ctx.Done():
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.adopting == a {
		d.adopting = nil
		return fmt.Errorf("waiting for the turn to end: %w", context.Cause(ctx))
	}
	return nil
}

// adopt brings rules that wait into force. Everything that was found out by the old ones is forgotten, and all jobs are looked at
// again; what was told about them is not told again unless it changes.
func (d *Dispatcher) adopt() {
	a := d.adopting
	if a == nil {
		return
	}
	d.adopting = nil
	a.rules.Policies.Succeed(d.cfg.Policies)
	d.cfg.Rules = a.rules
	d.waits.startOver()
	a.then()
	close(a.done)
}
