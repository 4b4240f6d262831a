// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package release has broken gangs evicted whose time is over, and tells their PodGroups what becomes of them.
package release

import (
	"context"
	"fmt"
	"time"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/preemption/eviction"
	"github.com/caldera-scheduler/caldera/pkg/preemption/reserve"
	"github.com/caldera-scheduler/caldera/pkg/queue/dispatch"
	"github.com/caldera-scheduler/caldera/pkg/status"
)

// Releaser releases broken gangs. All fields are required.
type Releaser struct {
	State  *model.State
	Writer *status.Writer
	Keeper *reserve.Keeper
	// Evicts reports whether some action evicts, so that what protects a gang matters to others.
	Evicts func() bool
}

// Release has the members of a broken gang evicted. Members that may not be bound yet are left: the gang is released again if they are.
func (r *Releaser) Release(ctx context.Context, t dispatch.Trouble) {
	job := r.State.Job(t.Job)
	if job == nil || !job.Partial() {
		return
	}
	why := brokenFor(job, t.Lasted)
	var members []reserve.Departure
	for _, task := range job.Tasks {
		if task.Status == model.Bound || task.Status == model.Running {
			members = append(members, reserve.Departure{Victim: model.Victim{Task: task, Job: job}, Why: why})
		}
	}
	if len(members) == 0 {
		return
	}
	r.Writer.Released(t.Job, len(members), why)
	r.Keeper.Evict(ctx, eviction.Release, members)
}

// brokenFor says that a gang is broken, how, and for how long.
func brokenFor(job *model.Job, lasted time.Duration) string {
	if job.Start.Tasks > 0 {
		return fmt.Sprintf("its gang has been without members that it started with for %s: %d of %d have nodes",
			lasted.Round(time.Second), job.Counts.Ready(), min(job.Start.Tasks, job.Min()))
	}
	return fmt.Sprintf("its gang has been placed in part for %s and was never whole: %d of %d members have nodes",
		lasted.Round(time.Second), job.Counts.Ready(), job.Min())
}

// Tell tells the PodGroup of a broken gang what becomes of it, and when, or that it is broken no more.
func (r *Releaser) Tell(t dispatch.Trouble) {
	if t.Stage == dispatch.WholeAgain {
		r.Writer.Whole(t.Job, t.Lasted)
		return
	}
	job := r.State.Job(t.Job)
	if job == nil || !job.Partial() {
		return
	}
	fate := "they are evicted"
	switch {
	case t.Stage == dispatch.Endless:
		r.Writer.Broken(t.Job, fmt.Sprintf("%s; its PodGroup wants it released, and brokenTimeout of the scheduler is 0s, which is for ever: "+
			"say with annotation %s after how long", brokenFor(job, t.Lasted), model.BrokenTimeoutAnnotation))
		return
	case t.Release:
	case !r.Evicts():
		// They keep their nodes, and nobody needs to know.
		return
	default:
		fate = "its minimum protects them no more from those who need the room"
	}
	r.Writer.Broken(t.Job, fmt.Sprintf("%s; %s in %s unless it is completed", brokenFor(job, t.Lasted), fate, (t.After-t.Lasted).Round(time.Second)))
}
