// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package simulate runs the real scheduler on objects in memory: the same plugins, dispatcher and status writer as in a
// cluster, on clients behind which there is no server. It answers what would be placed where, and what would wait and
// why, without a cluster.
//
// A simulation proceeds in rounds. In a round the scheduler does all it can; between two rounds kubelets start the pods
// that were bound and remove those that were evicted. Time is simulated, and a job's turn begins when all pods of those
// before are bound and all evictions carried out: nothing depends on how fast the machine is, or on what comes first.
package simulate

import (
	"context"
	"fmt"
	"time"

	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"github.com/caldera-scheduler/caldera/pkg/plugins"
	"github.com/caldera-scheduler/caldera/pkg/simulate/change"
	"github.com/caldera-scheduler/caldera/pkg/simulate/scenario"
)

// Options say how a simulation is run.
type Options struct {
	// Config is the scheduler's configuration with defaults; see ReadConfig.
	Config *schedulerconfig.KubeSchedulerConfiguration
	// Extensions are the plugins and policies that the scheduler has besides its own.
	Extensions plugins.Extensions
	// Rounds ends the simulation after so many; 0: when a round changes nothing. A round lasts five seconds at least.
	Rounds int
	// For is how much time has to pass at least; 0: none. Rounds that change nothing do not end the simulation before.
	For time.Duration
	// Recreate has a pod of the same name and spec come back for each that was evicted, as the youngest.
	Recreate bool
	// Changes are made when nothing more happens, one after the other, and each once nothing more happens after the one before.
	Changes []change.Change
	// Now is when the simulation begins.
	Now time.Time
	// Patience is how long (of real time) nothing at all may happen while something is still moving; 0: a minute. It
	// only bounds how long a fault of the scheduler is waited for.
	Patience time.Duration
	// Progress, if not nil, is told of each round that ends.
	Progress func(Round)
}

// Round is what happened in one round.
type Round struct {
	// Number counts from 1.
	Number int
	// Bound and Disrupted count the pods that were bound, and those evicted or deleted, in this round.
	Bound, Disrupted int
}

// mostRounds bounds a simulation without a number of rounds, after each change.
const mostRounds = 1000

// Run simulates. The objects are those of scenario.Complete and are not changed.
func Run(ctx context.Context, objects []scenario.Object, o Options) (*Result, error) {
	c, err := newCluster(ctx, objects, o)
	if err != nil {
		return nil, err
	}
	defer c.box.Stop()
	if err := c.start(); err != nil {
		return nil, err
	}
	result := &Result{Initial: c.initial}
	left, changed := o.Changes, 0
	passed := func() time.Duration { return c.box.Clock.Now().Sub(o.Now) }
	for (!result.Settled || len(left) > 0 || passed() < o.For) && (o.Rounds == 0 || result.Rounds < o.Rounds) {
		if result.Settled && len(left) > 0 {
			if left, err = c.change(left); err != nil {
				return nil, err
			}
			changed = result.Rounds
		}
		if result.Rounds-changed >= mostRounds && passed() >= o.For {
			return nil, fmt.Errorf("pods are still being bound or evicted after %d rounds: set a number of rounds to see the state by then", result.Rounds)
		}
		result.Rounds++
		if result.Settled, err = c.play(result.Rounds); err != nil {
			return nil, fmt.Errorf("round %d: %w", result.Rounds, err)
		}
	}
	// More happens once the changes are made that are left.
	result.Settled = result.Settled && len(left) == 0
	return result, c.collect(result)
}

// play plays one round, with what lies between it and the one before. It reports whether the round changed nothing and
// left nothing to do.
func (c *cluster) play(number int) (settled bool, err error) {
	if number > 1 {
		if err := c.betweenRounds(); err != nil {
			return false, err
		}
	}
	round, err := c.round(number)
	if err != nil {
		return false, err
	}
	if c.options.Progress != nil {
		c.options.Progress(round)
	}
	return c.idle() && round.Bound == 0 && round.Disrupted == 0, nil
}
