// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"time"

	"github.com/caldera-scheduler/caldera/pkg/heap"
	"github.com/caldera-scheduler/caldera/pkg/model"
)

// alarms are when jobs have to be looked at though nothing happens to them: of each the first time that was asked for. Thousands of jobs
// may have one.
type alarms struct {
	order *heap.Heap[*alarm]
	byJob map[model.JobKey]*alarm
}

type alarm struct {
	job   model.JobKey
	at    time.Time
	place int
}

// Position implements heap.Element.
func (a *alarm) Position() *int { return &a.place }

func newAlarms() alarms {
	return alarms{order: heap.New(func(a, b *alarm) bool { return a.at.Before(b.at) }), byJob: map[model.JobKey]*alarm{}}
}

// set asks for a time, unless an earlier one was asked for.
func (s alarms) set(job model.JobKey, at time.Time) {
	a := s.byJob[job]
	switch {
	case a == nil:
		a = &alarm{job: job, place: -1}
		s.byJob[job] = a
	case !at.Before(a.at):
		return
	}
	a.at = at
	s.order.Put(a)
}

// drop forgets what was asked for.
func (s alarms) drop(job model.JobKey) {
	if a := s.byJob[job]; a != nil {
		s.order.Remove(a)
		delete(s.byJob, job)
	}
}

// next is the first time; zero when there is none.
func (s alarms) next() time.Time {
	if s.order.Len() == 0 {
		return time.Time{}
	}
	return s.order.Top().at
}

// ring yields the jobs whose time has come, and forgets their times.
func (s alarms) ring(now time.Time, yield func(model.JobKey)) {
	for s.order.Len() > 0 && !s.order.Top().at.After(now) {
		job := s.order.Pop().job
		delete(s.byJob, job)
		yield(job)
	}
}
