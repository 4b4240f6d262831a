// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package replay plays a trace of jobs through the real scheduler in virtual time. Jobs come when the trace says so, hold their nodes as long as
// they did, and are gone; the clock jumps from one event to the next. Equal input gives equal output.
//
// Time moves in ticks. At a tick jobs that are done leave, then those that are due come, then the scheduler does all it can. A job starts when all
// of its pods have nodes. If one of them is evicted, the others go as well, and the job comes back as the youngest.
package replay

import (
	"context"
	"errors"
	"fmt"
	"time"

	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"github.com/caldera-scheduler/caldera/pkg/plugins"
	"github.com/caldera-scheduler/caldera/pkg/replay/history"
	"github.com/caldera-scheduler/caldera/pkg/replay/trace"
	"github.com/caldera-scheduler/caldera/pkg/replay/yardstick"
)

// Options say how a trace is played.
type Options struct {
	// Config is the scheduler's configuration with defaults.
	Config *schedulerconfig.KubeSchedulerConfiguration
	// Rule decides in the place of the scheduler; nil: the scheduler decides.
	Rule *yardstick.Rule
	// Extensions are the plugins and policies that the scheduler has besides its own.
	Extensions plugins.Extensions
	// Tick is how finely time is divided; 0: DefaultTick. Where jobs come once it does not count: they come one at a time.
	Tick time.Duration
	// Checkpoint: an evicted job keeps the work it had done by the last multiple of this; 0: none.
	Checkpoint time.Duration
	// Partitioned: no queue may have more than it is due.
	Partitioned bool
	// Ends is what the scheduler is told of when pods end; empty: nothing.
	Ends trace.Ends
	// Now is when the replay begins.
	Now time.Time
	// Progress, if not nil, is told at each tick how far the replay is.
	Progress func(Progress)
}

// DefaultTick is the default of Options.Tick.
const DefaultTick = 10 * time.Second

// Progress is how far a replay is.
type Progress struct {
	// Now is the time in the replay, Last when the last job comes.
	Now, Last time.Duration
	// Jobs are those of the trace, Came, Waiting and Done how many of them have come, wait and are done.
	Jobs, Came, Waiting, Done int
}

// Result is what a replay came to.
type Result struct {
	*history.History
	// Cost is how much there was to play.
	Cost Cost
}

// Cost is how much there was to play.
type Cost struct {
	// Ticks at which something happened, and pods that were bound.
	Ticks, Bound int
}

// Run plays a trace. It ends when all jobs are done, or when nothing runs and nobody comes any more: the jobs that wait then never start.
func Run(ctx context.Context, t *trace.Trace, o Options) (*Result, error) {
	if o.Tick == 0 {
		o.Tick = DefaultTick
	}
	if t.Once {
		// One job at a time.
		o.Tick = trace.Every
	}
	if len(t.Nodes) == 0 {
		return nil, errors.New("playing a trace: it has no nodes")
	}
	if o.Tick < 0 || o.Checkpoint < 0 {
		return nil, errors.New("playing a trace: tick and checkpoint are times of 0s or more")
	}
	p, err := newPlayer(ctx, t, o)
	if err != nil {
		return nil, fmt.Errorf("playing a trace: %w", err)
	}
	defer p.world.stop()
	if err := p.play(); err != nil {
		return nil, fmt.Errorf("playing a trace, at %s: %w", p.now, err)
	}
	return &Result{History: p.recorder.Done(), Cost: Cost{Ticks: p.ticks, Bound: p.world.bound()}}, nil
}
