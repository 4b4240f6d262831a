// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"time"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// Ordinary tells which tasks may be preempted by pods that no policy knows of, those of other profiles: upstream's preemption goes by pods
// and their priorities, node by node. It is the guard of the plugin gang for these, as of when it was made. It is safe for concurrent use.
type Ordinary struct {
	orders orders
	lapses Lapses
	now    time.Time
	// gangs: jobs start whole or not at all.
	gangs bool
}

// Ordinary returns whom other profiles may preempt.
func (s *Set) Ordinary(now time.Time, lapses Lapses) *Ordinary {
	return &Ordinary{orders: s.orders, lapses: lapses, now: now, gangs: s.Gangs}
}

// Broken reports whether a job is a gang of which too few members are left to be of use, so that nothing is lost with any of them.
func (o *Ordinary) Broken(job *model.Job) bool {
	return o.gangs && model.Reached(o.lapses.of(job), o.now)
}

// Spare returns those of some tasks of a job that may go, all of them together: of a gang those that it has beyond its minimums, the one
// that goes last first. Who is about to leave anyway may be counted on. Of a gang whose PodGroup does not exist nobody knows the minimum.
func (o *Ordinary) Spare(job *model.Job, tasks []*model.Task) []*model.Task {
	switch {
	case !o.gangs, job.Key.Source == model.FromPod, o.Broken(job):
		return tasks
	case job.Group == nil:
		return nil
	}
	left := job.Left()
	var spare []*model.Task
	for _, t := range slices.SortedFunc(slices.Values(tasks), o.orders.compareLeaving) {
		switch t.Status {
		case model.Bound, model.Running:
			if left.Without(t, 1) != model.LacksNothing {
				continue
			}
			left.Count(t, -1)
		case model.Releasing:
		default:
			// Whether it stays on its node is not known yet.
			continue
		}
		spare = append(spare, t)
	}
	return spare
}
