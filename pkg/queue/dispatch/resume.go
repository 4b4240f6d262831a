// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// A scheduler that starts finds in the annotations of queues for whom the one before it had reserved room. It reserves the same again before anybody has
// a turn: else others would take what they may not have, and nobody would start by the time that was told.

// former is what a scheduler before this one had reserved for a job.
type former struct {
	*model.Reservation
	key model.JobKey
}

// compare has those first that start first by a bound: there is room for each by then, but maybe no earlier. After them come those that wait for what
// nobody knows the end of.
func (f *former) compare(o *former) int {
	older := cmp.Or(f.Since.Compare(o.Since), cmp.Compare(f.UID, o.UID))
	switch {
	case f.Bound && o.Bound:
		return cmp.Or(f.Start.Compare(o.Start), older)
	case f.Bound:
		return -1
	case o.Bound:
		return 1
	}
	return older
}

// allThere reports whether a job is that for which room was reserved, and has its pods.
func (f *former) allThere(job *model.Job) bool {
	return job.UID == f.UID && job.Counts.Placeable() >= job.Requirement().Tasks
}

// recall finds out what a scheduler before this one had reserved.
func (s *holders) recall() {
	r := s.cfg.Policies.Reservation()
	if s.former, s.notes = nil, r != nil; r == nil {
		return
	}
	noted, snapshot := map[types.UID]*model.Reservation{}, s.cfg.State.Snapshot()
	for q := range snapshot.Queues {
		if q.Reservation != nil {
			noted[q.Reservation.UID] = q.Reservation
		}
	}
	if len(noted) == 0 {
		return
	}
	for job := range snapshot.Jobs {
		if n := noted[job.UID]; n != nil {
			s.former = append(s.former, &former{n, job.Key})
		}
	}
	slices.SortFunc(s.former, (*former).compare)
	s.former = s.former[:min(len(s.former), r.Holders)]
}

// readmit lets in those of them that had been when room was reserved for them, if their PodGroups do not say so.
func (s *holders) readmit() {
	for _, f := range s.former {
		if w := s.jobs[f.key]; w != nil && w.applied != nil && f.allThere(w.job.Job) && s.mayHold(w) {
			s.letIn = f.key
			s.admissions.letIn(w)
			s.cfg.Policies.Entered(w.job.Job)
		}
	}
}

// resume begins a turn for a job for which a scheduler before this one had reserved room; nil when there is none left.
func (s *selection) resume() *turn {
	h := s.waits.holders
	for len(h.former) > 0 {
		f := h.former[0]
		if w := s.waits.jobs[f.key]; w != nil && w.lot != nil && w.applied == nil && f.allThere(w.job.Job) && h.mayHold(w) {
			if t := s.begin(f.key); t != nil {
				t.resumes = f.Reservation
				t.limit = model.Reason{Kind: model.RoomReserved, Message: "room is reserved again that was before the scheduler started"}
				return t
			}
		}
		h.former = h.former[1:]
	}
	return nil
}

// resumed takes in that a turn for that is over.
func (s *holders) resumed(t *turn) {
	s.former = slices.DeleteFunc(s.former, func(f *former) bool { return f.Reservation == t.resumes })
}

// NotResumed ends the turn that the pod leads because the room cannot be reserved any more that was for its job. The job stays where it is in the order.
func (d *Dispatcher) NotResumed(lead types.UID) {
	d.mu.Lock()
	if t := d.turn; t != nil && t.lead.UID == lead {
		d.end(TurnChanged)
	}
	d.mu.Unlock()
	d.proceed()
}

// note is what a scheduler after this one has to know of a holder.
func (s *holders) note(job *model.Job, h *holder, room Room) *model.Reservation {
	pods := map[string][]types.UID{}
	if full := s.job(job.Key); full != nil {
		for _, t := range full.Tasks {
			if t.Reserved {
				pods[t.Nominated] = append(pods[t.Nominated], t.UID)
			}
		}
	}
	return model.Reservation{
		Job: job.Key.String(), UID: job.UID, Since: h.since.UTC(), Start: h.Start.UTC(), Bound: h.Bound, Guessed: room.Guessed, IfDue: room.IfDue, First: h.first.UTC(),
		Pods: pods, InTheWay: slices.Clone(h.original),
	}.Concise()
}

// Reservations returns what room is reserved, by the queues of the jobs for which it is. It is not known before the dispatcher runs, nor where the
// rules never said that any is.
func (v View) Reservations() (reserved map[string]*model.Reservation, known bool) {
	v.d.mu.Lock()
	defer v.d.mu.Unlock()
	h := v.d.waits.holders
	reserved = map[string]*model.Reservation{}
	for _, f := range h.former {
		if job := v.d.waits.summary(f.key); job != nil {
			reserved[job.Queue] = f.Reservation
		}
	}
	for _, holds := range h.of {
		reserved[holds.Holder.Queue] = holds.noted
	}
	return reserved, v.d.running && h.notes
}
