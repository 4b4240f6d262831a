// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"
	"time"
)

const (
	// pause is the simulated time between two rounds. It is longer than anything the scheduler waits for before it
	// says why a job waits.
	pause = 5 * time.Second
	// horizon is the simulated time in which a round waits for what the scheduler does by the clock.
	horizon = time.Minute
	// mostCycles and cyclesAPod bound the scheduling cycles of one round.
	mostCycles = 1000
	cyclesAPod = 100
	// mostFlushes bounds how often status is written before a round is over.
	mostFlushes = 1000
)

// round lets the scheduler do all it can. What it did since the last round ended is of this round: ordinary pods are
// scheduled as soon as kubelets make room.
func (c *cluster) round(number int) (Round, error) {
	c.box.Allow(mostCycles + cyclesAPod*int64(len(c.pods())))
	if err := c.act(c.box.Clock.Now().Add(horizon)); err != nil {
		return Round{}, err
	}
	bound := c.box.API.Bound(len(c.boundIn))
	for _, uid := range bound {
		c.boundIn[uid] = number
	}
	disrupted := c.box.API.Disruptions(c.disrupted)
	c.disrupted += len(disrupted)
	c.box.API.Trim()
	return Round{Number: number, Bound: len(bound), Disrupted: len(disrupted)}, nil
}

// act lets the scheduler do all it can, by events and by the clock until the end.
func (c *cluster) act(end time.Time) error {
	for range mostFlushes {
		if err := c.box.Settle(); err != nil {
			return err
		}
		wrote := false
		if !c.silent {
			var err error
			if wrote, err = c.box.Flush(); err != nil {
				return err
			}
		}
		if !wrote && !c.sleep(end) {
			return nil
		}
	}
	return fmt.Errorf("the scheduler does not come to rest: it has written status %d times in this round", mostFlushes)
}

// sleep lets time pass until the scheduler means to do something by the clock. It returns false when there is nothing
// of that kind before the end, which comes soon once somebody is evicted: who was is gone in the next round.
func (c *cluster) sleep(end time.Time) bool {
	least := end.Add(pause - horizon)
	if len(c.box.API.Disruptions(c.disrupted)) > 0 {
		end = least
	}
	if next := c.box.Next(); !next.IsZero() && !next.After(end) {
		c.box.Clock.SetTime(next)
		return true
	}
	if c.box.Clock.Now().Before(end) && c.box.KeptBack() {
		c.box.Clock.Step(c.box.Backoff())
		c.box.Retry()
		return true
	}
	if c.box.Clock.Now().Before(least) {
		c.box.Clock.Step(pause)
		return true
	}
	return false
}
