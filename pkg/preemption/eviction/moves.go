// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package eviction

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// longestCooldown is for how long at most a controller's pods are left alone after one was moved.
const longestCooldown = 720 * time.Hour

// Moves are when pods were moved to other nodes: decided upon, whatever became of it. Of what a process before this moved,
// only what Restore was told is known. The zero value is ready to use, by several goroutines.
type Moves struct {
	mu   sync.Mutex
	of   map[types.UID]time.Time
	last []time.Time
}

// begun takes note of a decision.
func (m *Moves) begun(d *Decision) {
	if d.Action != Consolidate {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.of == nil {
		m.of = map[types.UID]time.Time{}
	}
	maps.DeleteFunc(m.of, func(_ types.UID, at time.Time) bool { return d.Time.Sub(at) > longestCooldown })
	m.last = slices.DeleteFunc(m.last, func(at time.Time) bool { return d.Time.Sub(at) > time.Hour })
	for _, v := range d.Victims {
		if owner := (&model.Task{Pod: v.Pod}).Controller(); owner != nil {
			m.of[owner.UID] = d.Time
		}
		m.last = append(m.last, d.Time)
	}
}

// Of returns when a pod of a controller was moved last; zero for never.
func (m *Moves) Of(controller types.UID) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.of[controller]
}

// Since returns when pods were moved after a time, oldest first; an hour back at most.
func (m *Moves) Since(at time.Time) []time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := slices.IndexFunc(m.last, func(t time.Time) bool { return t.After(at) })
	if i < 0 {
		return nil
	}
	return slices.Clone(m.last[i:])
}
