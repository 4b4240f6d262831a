// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"maps"
	"slices"
	"time"

	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// Flow is the way that room went: by which action, from which queue, for which.
type Flow struct{ Action, From, For string }

// Figures are sums since the monitor was made.
type Figures struct {
	// Bound, Lost and EvictedPods are numbers of pods; Unexplained evictions have no known beneficiary.
	Bound, Lost, EvictedPods, Unexplained int
	EvictedResources                      resource.Vector
	// Evicted are the pods evicted, by where their room went.
	Evicted map[Flow]int
	// StartedBatches are beneficiaries that started once their victims were gone, with the pods and the resources they
	// got, and how many pods had been evicted for that.
	StartedBatches, StartedPods, StartedVictims int
	StartedResources, StartedVictimResources    resource.Vector
	// WastedBatches are those that did not start, and EndedBatches those that the program ended before.
	WastedBatches, WastedVictims int
	EndedBatches, EndedVictims   int
	// Wasted describes each of the WastedBatches.
	Wasted []string
	// OverMoments is how often a queue was above its capability for a moment, while others were being evicted, and
	// OverLongest how long at most.
	OverMoments int
	OverLongest time.Duration
	// Waits are the times from the arrival of a PodGroup to its start, by queue.
	Waits map[string][]time.Duration
	// Unstarted are the PodGroups that wait to start, by queue.
	Unstarted map[string]int
	// Queues are what queues hold, wait for and are due now, by name.
	Queues map[string]Account
}

// Account is a queue at one time.
type Account struct {
	Held, Waits resource.Vector
	Due         resource.Portion
}

// Figures returns the sums so far.
func (m *Monitor) Figures() Figures {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.figures
	f.Evicted, f.Waits, f.Wasted = maps.Clone(f.Evicted), maps.Clone(f.Waits), slices.Clone(f.Wasted)
	f.EvictedResources, f.StartedResources = f.EvictedResources.Clone(), f.StartedResources.Clone()
	f.StartedVictimResources = f.StartedVictimResources.Clone()
	f.Unstarted, f.Queues = map[string]int{}, map[string]Account{}
	for _, g := range m.groups {
		if g.started.IsZero() && g.exists && !g.ended {
			f.Unstarted[g.queue.name]++
		}
	}
	due := m.due()
	for name, q := range m.queues {
		if name != "" {
			f.Queues[name] = Account{Held: q.held.Clone(), Waits: q.waits.Clone(), Due: due[name]}
		}
	}
	return f
}
