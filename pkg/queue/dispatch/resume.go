// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// A scheduler that starts finds in the annotations of queues for whom room was reserved before. It reserves the same room again before anybody has a turn.
// Else others would take what they may not have, and nobody would start by the time that was told.

// resumption is what was reserved before the scheduler started, and is yet to be reserved again. All methods are called with the dispatcher's lock held.
type resumption struct {
	*holders
	left []*former
	// notes: what is reserved is written down, since the rules say, or said, that some is.
	notes bool
}

// former is what was reserved for a job before the scheduler started.
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

// begin finds out what was reserved.
func (s *resumption) begin() {
	r := s.cfg.Policies.Reservation()
	if s.left, s.notes = nil, r != nil; r == nil {
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
			s.left = append(s.left, &former{n, job.Key})
		}
	}
	slices.SortFunc(s.left, (*former).compare)
	s.left = s.left[:min(len(s.left), r.Holders)]
}

// adopt goes by the rules as they are now.
func (s *resumption) adopt() {
	if s.cfg.Policies.Reservation() == nil {
		s.left = nil
		return
	}
	s.notes = true
}

// readmit lets in those of them that had been when room was reserved for them, if their PodGroups do not say so.
func (s *resumption) readmit() {
	for _, f := range s.left {
		if w := s.jobs[f.key]; w != nil && w.applied != nil && f.allThere(w.job.Job) && s.mayHold(w) {
			s.letIn = f.key
			s.admissions.letIn(w)
			s.cfg.Policies.Entered(w.job.Job)
		}
	}
}

// next is the first of them that may have a turn; nil when there is none. Those before it have none any more.
func (s *resumption) next() *former {
	for ; len(s.left) > 0; s.left = s.left[1:] {
		f := s.left[0]
		if w := s.jobs[f.key]; w != nil && w.lot != nil && w.applied == nil && f.allThere(w.job.Job) && s.mayHold(w) {
			return f
		}
	}
	return nil
}

// drop takes one off: it has had its turn.
func (s *resumption) drop(r *model.Reservation) {
	s.left = slices.DeleteFunc(s.left, func(f *former) bool { return f.Reservation == r })
}

// resume begins a turn in which room is reserved again; nil when there is none to reserve.
func (s *selection) resume() *turn {
	for f := s.waits.resumption.next(); f != nil; f = s.waits.resumption.next() {
		if t := s.begin(f.key); t != nil {
			t.resumes = f.Reservation
			t.limit = model.Reason{Kind: model.RoomReserved, Message: "room is reserved again that was before the scheduler started"}
			return t
		}
		s.waits.resumption.drop(f.Reservation)
	}
	return nil
}

// note is what has to be known of a holder once the scheduler has started anew.
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
	r := &v.d.waits.resumption
	reserved = map[string]*model.Reservation{}
	for _, f := range r.left {
		if job := v.d.waits.summary(f.key); job != nil {
			reserved[job.Queue] = f.Reservation
		}
	}
	for _, h := range r.of {
		reserved[h.Holder.Queue] = h.noted
	}
	return reserved, v.d.running && r.notes
}
