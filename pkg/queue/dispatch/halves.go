// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"time"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// A gang that was never whole, and of which some members hold nodes, runs nothing: a bind was refused, the scheduler was killed between
// two binds, or another one placed some. It is completed before all else. If that does not succeed for long it is released, so that others
// can have the nodes, and it starts whole or not at all.

// firstRest and lastRest bound how long a gang rests that was released more than once; it doubles.
const (
	firstRest = time.Minute
	lastRest  = 30 * time.Minute
)

// half is what is kept of a gang that is half placed until it is whole.
type half struct {
	// since is when it became so, or was last released; zero while no member holds a node.
	since time.Time
	// released is how often it was released.
	released int
}

// release is a gang whose members are to be evicted, which was half placed for so long.
type release struct {
	job    model.JobKey
	lasted time.Duration
}

// watchHalf keeps since when a job, nil if it is gone, is half placed, and releases it when that is too long.
func (d *Dispatcher) watchHalf(key model.JobKey, job *model.Job) {
	h, known := d.halves[key]
	switch {
	case job == nil, job.Start.Tasks > 0:
		delete(d.halves, key)
		return
	case job.Placed() == 0:
		if h.since = (time.Time{}); known {
			d.halves[key] = h
		}
		return
	case !job.Half() || d.cfg.HalfTimeout == 0:
		// The binds that would complete it may be refused.
		return
	}
	now := d.cfg.Clock.Now()
	if h.since.IsZero() {
		h.since = now
	}
	if lasted := now.Sub(h.since); lasted >= d.cfg.HalfTimeout {
		h.since = now
		h.released++
		d.cfg.Recorder.Released()
		d.releases = append(d.releases, release{key, lasted})
		d.pause(key, h.released)
	}
	d.halves[key] = h
	d.expire(h.since.Add(d.cfg.HalfTimeout), key)
}

// pause lets a job rest that was released more than once.
func (d *Dispatcher) pause(key model.JobKey, released int) {
	if released < 2 {
		return
	}
	s := d.setbacks[key]
	s.notBefore = d.cfg.Clock.Now().Add(min(lastRest, firstRest<<min(released-2, 10)))
	d.setbacks[key] = s
	if w := d.jobs[key]; w != nil {
		w.setback = s
	}
}
