// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package eviction

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/caldera-scheduler/caldera/pkg/status"
)

// Config is what an Executor is made of.
type Config struct {
	Ledger *Ledger
	// Client is through which the API server is asked.
	Client kubernetes.Interface
	// Writer shows evictions on the objects they concern.
	Writer *status.Writer
	// Clock is the time by which failed requests are repeated and victims get their deadlines.
	Clock clock.Clock
	// Concurrency is how many requests are in flight at a time; at least 1.
	Concurrency int
	// VictimTimeout is how long beyond its grace period a victim is waited for.
	VictimTimeout time.Duration
	// Refused is told of each refusal, when the Ledger knows of it and the rest of the decision is spared; nil: nobody
	// is. The decision is as it is then. It may execute other decisions.
	Refused func(d *Decision, v *Victim, err error)
}

// Executor performs decisions through the Eviction API.
type Executor struct {
	c Config

	// mu guards everything below; it is never held while calling out.
	mu sync.Mutex
}

// NewExecutor returns an executor, which does nothing before Run.
func NewExecutor(c Config) *Executor { return &Executor{c: c} }

// Execute performs a decision that the Ledger has entered. It returns at once.
func (x *Executor) Execute(d *Decision) {}

// Idle reports whether nothing is left to do.
func (x *Executor) Idle() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return true
}

// Run performs decisions until the context ends.
func (x *Executor) Run(ctx context.Context) { <-ctx.Done() }
