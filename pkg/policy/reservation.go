// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"time"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/queue/account"
	"github.com/caldera-scheduler/caldera/pkg/resource"
	"github.com/caldera-scheduler/caldera/pkg/volcano/arguments"
)

// Reservation says for whom room is reserved, and who may use it until it is needed.
type Reservation struct {
	arguments.Reservation
	// Overdue: it is for jobs whose waiting time of sla is over. Others: it is for those that have waited for After.
	Overdue, Others bool
}

// Reservation returns the rules of reserved room; nil when none is reserved.
func (s *Set) Reservation() *Reservation { return s.reservation }

// ReserveNothing has no room reserved whatever the tiers say.
func (s *Set) ReserveNothing() { s.reservation = nil }

// pipelining is the first tiers in which plugins vote on whether a job may keep room before all of its minimum has some: sla, which lets overdue jobs, and
// gang or tdm, which let none. A tier is 0 when there is none.
type pipelining struct{ lets, refuses int }

// vote enters the vote of a plugin of a tier.
func (v *pipelining) vote(p *config.TierPlugin, tier int) {
	var first *int
	switch p.Name {
	case config.PluginSLA:
		first = &v.lets
	case config.PluginGang, config.PluginTDM:
		first = &v.refuses
	default:
		return
	}
	if *first == 0 && p.Enabled(config.EnableJobPipelined) {
		*first = tier
	}
}

// reserving is for whom room is reserved; nil: for nobody. In Volcano an overdue job keeps the room that it has found so far if sla votes before gang does
// (plugins/sla/sla.go, framework/session_plugins.go). Here all of its minimum is reserved.
func reserving(explicit *arguments.Reservation, v pipelining) *Reservation {
	switch {
	case explicit != nil:
		return &Reservation{Reservation: *explicit, Overdue: v.lets > 0, Others: true}
	case v.lets > 0 && v.lets < v.refuses:
		standard, _ := arguments.DecodeReservation(&config.TierPlugin{Name: config.PluginReservation}, nil)
		return &Reservation{Reservation: standard, Overdue: true}
	}
	return nil
}

// From is from when on room may be reserved for a job that has waited for room since a time; false: never.
func (r *Reservation) From(j *Ranked, since time.Time) (time.Time, bool) {
	at := since.Add(r.After)
	if r.Overdue && !j.Deadline.IsZero() {
		if overdue := model.Later(since, j.Deadline); !r.Others || overdue.Before(at) {
			return overdue, true
		}
	}
	return at, r.Others
}

// Reserved is room that is kept for a job, its holder, until pods that are there have ended.
type Reserved struct {
	Holder *model.Job
	// Queue is the priority of the holder's queue.
	Queue int32
	// Start is when these pods are expected to have ended. Bound: they are stopped by then.
	Start time.Time
	Bound bool
	// Borrows: the holder takes more than its queue is due.
	Borrows bool
}

// Passage says by what right a job may use room that is reserved for another one.
type Passage uint8

// The rights.
const (
	// NoPassage: it may not.
	NoPassage Passage = iota
	// InTime: its pods are stopped, or said to end, before the room is needed.
	InTime
	// Shortly: they run so short that the holder hardly waits for them. It may as long as a pod is there that was when the room was reserved: those
	// that follow each other for ever would keep the holder waiting.
	Shortly
	// Precedence: it comes before the holder.
	Precedence
)

// Declared reports whether what is said of how long pods run is believed.
func (r *Reservation) Declared() bool { return r.Trust == arguments.Declared }

// Candidate is a job that may hold next.
type Candidate struct {
	*Ranked
	// Queue is the priority of its queue.
	Queue int32
	// Lost: it has lost members. Due: its queue would be due what it needs, were nobody else in it.
	Lost, Due bool
	// Since is since when it has waited.
	Since time.Time
}

// Compare is negative when c holds before o. First are jobs that lost members, then those within their queue's due. Then the priorities of queues and of jobs
// decide, the deadlines of sla, and who has waited for longer. No two are equal.
func (c Candidate) Compare(o Candidate) int {
	return cmp.Or(
		compareFlags(c.Lost, o.Lost), compareFlags(c.Due, o.Due), cmp.Compare(o.Queue, c.Queue), cmp.Compare(o.Priority, c.Priority),
		sla{}.CompareJobs(c.Ranked, o.Ranked), c.Since.Compare(o.Since), cmp.Compare(c.UID, o.UID),
	)
}

// compareFlags has what is so first.
func compareFlags(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// Passer is a job that may use reserved room.
type Passer struct {
	*model.Job
	// Queue is the priority of its queue.
	Queue int32
	// Lost: it has lost members. Due: its queue is due what it needs.
	Lost, Due bool
	Runs      model.Runtime
}

// Passage says by what right a job may use reserved room now.
func (r *Reservation) Passage(room Reserved, job Passer, now time.Time) Passage {
	runs := job.Runs
	switch {
	case job.Lost, job.Queue > room.Queue, job.Queue == room.Queue && job.Priority > room.Holder.Priority, job.Due && room.Borrows:
		return Precedence
	case runs.Lasts == 0:
		return NoPassage
	case room.Bound && !now.Add(runs.Lasts+runs.Grace).After(room.Start):
		return InTime
	case !room.Bound && runs.Lasts <= r.BackfillWithin:
		return Shortly
	}
	return NoPassage
}

// AdmitHolder reports whether a job may be let in so that room is reserved for it, whatever others hold and were promised: it fits what its queue, and those above
// it, may hold at most, and nobody but those that count what is held rejects it.
func (s *Set) AdmitHolder(w World, j *Ranked) bool {
	for q := s.book.Queue(j.Queue); q != nil; q = q.Parent {
		if len(q.Real.Refuses(j.Claim(), nil)) > 0 {
			return false
		}
	}
	w.Queue, w.Cluster = s.book.Queue(j.Queue), s.book.Cluster()
	if w.Queue == nil {
		return false
	}
	w.set, w.job = s, j.Job
	_, why := tierVote(s.admitters, func(p Admitter) (Vote, model.Reason) {
		switch p.(type) {
		case *overcommit, proportion, capacity:
			return Abstain, model.Reason{}
		}
		return p.Admit(w, j)
	})
	return why == (model.Reason{})
}

// DueMayShrink reports whether a queue may hold less at a time to come than it may now because others ask for more.
func (s *Set) DueMayShrink(queue string) bool {
	q := s.book.Queue(queue)
	return q == nil || len(s.limiters) > 0 && s.book.DueMayShrink(q)
}

// DueFor says whether a queue is due so much beside what it holds, less what it is about to give back. Where nothing divides the cluster, and where no
// queue gets more than its due, it always is.
func (s *Set) DueFor(queue string, ask, back resource.Vector) bool {
	q := s.book.Queue(queue)
	if q == nil || s.book.Mode() != account.Capacity && s.book.Mode() != account.Hierarchy {
		return q != nil
	}
	held := s.book.UsageOf(q).Allocated.Clone()
	held.Sub(back)
	due := resource.Limit{Amounts: q.Deserved, Unnamed: resource.Nothing}
	return len(due.Refuses(ask, held)) == 0
}
