// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/queue/account"
	"github.com/caldera-scheduler/caldera/pkg/volcano/arguments"
)

// The action consolidate moves pods: it has them evicted where the scheduler has found each of them another node. What queues hold stays as it
// is, so no queue is asked for its due, and nobody takes anything back.

// Why a pod is not moved.
const (
	whyDearer     = "its job's priority is higher, so it is not moved"
	whyElsewhere  = "another scheduler profile would place it"
	whyManyMoves  = "a decision moves no more pods (maxPods)"
	whyHourly     = "no more pods are moved within an hour (maxMovesPerHour)"
	whyMovedAgain = "a pod of its controller was moved a short while ago"
	whySubGroup   = "it is in a subgroup, whose tasks are placed together"
)

// moving is how the action consolidate chooses.
type moving struct{ arguments.Moves }

// selectMovable is the selector of consolidate: pods alone in their job, or surplus to it.
func (m *moving) selectMovable(t *Trial, v model.Victim, h *jobUsage) string {
	owner := controllerOf(v)
	switch {
	case t.moved >= m.MaxPods:
		return whyManyMoves
	case t.moved >= t.movable:
		return whyHourly
	case t.movedOf[owner] > 0 && m.Cooldown > 0:
		return whyMovedAgain
	case h.job.Counts.Total() == 1:
		return ""
	}
	return t.keepsMinimum(h, v.Task, 1)
}

// stays says why a pod can never be moved in a trial, in a short phrase; empty when it may be.
func (m *moving) stays(t *Trial, v model.Victim, h *jobUsage) string {
	_, inSubGroup := v.Job.SubGroupOf(v.Task)
	switch why := v.Task.Unmovable(t.world.Now, m.MaxAge); {
	case why != "":
		return why
	case h.job.Priority > t.own.job.Priority:
		return whyDearer
	case t.profile != "" && v.Task.Pod.Spec.SchedulerName != t.profile:
		return whyElsewhere
	case inSubGroup:
		return whySubGroup
	case m.Cooldown > 0 && t.world.Moves != nil:
		if until := t.world.Moves.Of(controllerOf(v)).Add(m.Cooldown); until.After(t.world.Now) {
			t.refusedUntil(until)
			return whyMovedAgain
		}
	}
	return ""
}

// whyNotMoved says why nobody of a job is moved; empty when somebody may be. A queue that is not reclaimable has its pods left alone by other queues.
func (t *Trial) whyNotMoved(h *jobUsage, sameQueue bool) string {
	switch q := h.queue; {
	case h.job.Key == t.own.job.Key:
		return whySelf
	case sameQueue:
		return ""
	case q.Spec == nil:
		return whyQueueUnknown
	case q.Fault != (model.Reason{}):
		return whyQueueFault
	case !q.Spec.Reclaimable:
		return "queue " + q.Name + " is not reclaimable"
	}
	return ""
}

// begin counts how many pods may be moved yet, and finds which profile would place them.
func (m *moving) begin(t *Trial, job *model.Job) {
	t.movedOf, t.movable = map[types.UID]int{}, m.MaxPerHour
	if t.world.Moves != nil {
		recent := t.world.Moves.Since(t.world.Now.Add(-time.Hour))
		if t.movable -= len(recent); t.movable <= 0 && m.MaxPerHour > 0 {
			t.refusedUntil(recent[len(recent)-m.MaxPerHour].Add(time.Hour))
		}
	}
	if len(job.Tasks) > 0 {
		t.profile = job.Tasks[0].Pod.Spec.SchedulerName
	}
}

// countMove counts n pods like this one as not moved after all.
func (t *Trial) countMove(v model.Victim, n int) {
	if t.movedOf != nil {
		t.moved -= n
		t.movedOf[controllerOf(v)] -= n
	}
}

// controllerOf is who creates a pod again; empty when nobody does.
func controllerOf(v model.Victim) types.UID {
	if owner := v.Task.Controller(); owner != nil {
		return owner.UID
	}
	return ""
}

// compareMoves is the order in which pods are moved, negative when a goes first: those of jobs of the lowest priority, of these those that have run
// for the shortest time.
func (t *Trial) compareMoves(a, b model.Victim) int {
	return cmp.Or(cmp.Compare(a.Job.Priority, b.Job.Priority), -startOf(a).Compare(startOf(b)), t.compareLeaving(a.Task, b.Task))
}

func startOf(v model.Victim) time.Time {
	if start := v.Task.Pod.Status.StartTime; start != nil {
		return start.Time
	}
	return v.Task.Created
}

// Moves reports whether who is chosen is moved: evicted only if there is another node for it.
func (t *Trial) Moves() bool { return t.ruleSet.moves != nil }

// findsMoves reports whether the job's queue may take what the job needs next, and some pod might be moved.
func (s *Set) findsMoves(job *model.Job) bool {
	return s.entitledToNext(s.book.Queue(job.Queue), job) &&
		slices.ContainsFunc(s.book.Queues(), func(q *account.Queue) bool { return (q.Name == job.Queue || mayLose(q)) && !q.Own.Allocated.IsZero() })
}

// Moved are the moves of pods so far, as an EvictionWorld knows them.
type Moved interface {
	// Of returns when a pod of a controller was moved last; zero for never.
	Of(controller types.UID) time.Time
	// Since returns when pods were moved after a time, oldest first.
	Since(at time.Time) []time.Time
}

// Moves reports whether pods are moved.
func (s *Set) Moves() bool { return slices.Contains(s.actions, config.Consolidate) }
