// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/policy"
)

// turn is one job's chance to place tasks. There is one turn at a time.
type turn struct {
	// number counts the turns.
	number uint64
	job    model.JobKey
	// uid and least are the UID of its PodGroup and its minimum as of when it got the turn.
	uid   types.UID
	least int
	// followers are the jobs that may be placed along.
	followers []model.JobKey
	// lead is the pod whose scheduling cycle plans the turn.
	lead *corev1.Pod
	// lot is what the plan was made for; it is known once the lead is planning.
	lot lotKey
	// members are the planned pods by UID; nil until the plan is made.
	members map[types.UID]*member
	// open is how many members have not been reserved yet.
	open int
	// borrowing: the job may take what its queue is not due.
	borrowing bool
	// nodesFirst: the queue has no room, and neither have the nodes, of which the plan is to tell.
	nodesFirst bool
	// limit is what keeps the queue from holding the job; the turn is for having others of the queue evicted.
	limit model.Reason
	// resumes is what was reserved for the job before the scheduler started, and is to be reserved again; nil in an ordinary turn.
	resumes *model.Reservation
	// fragile: no member may bind before all are reserved.
	fragile bool
	// planning is when the lead began to plan, placesThen how many places there were for the turn's job as far as they were counted.
	planning   time.Time
	placesThen int
	// preempting: the plan did not hold, and others are sought who may be evicted.
	preempting bool
	// events are those that happened since the turn began; a plan made before them may have missed them.
	events model.Event
	// disturbed are those of them that others caused.
	disturbed model.Event
	// touched are the nodes that changed since then. They are noted until there is a plan.
	touched map[string]bool
	// progress is when the turn last got on, and nudged whether its pods were activated once more since; began is when it was given.
	progress, began time.Time
	nudged          bool
}

// note takes in what happened while the turn is on.
func (t *turn) note(c model.Change) {
	t.events |= c.Events
	if !c.Own {
		t.disturbed |= c.Events
	}
	if t.members != nil || len(c.Touched) == 0 {
		return
	}
	if t.touched == nil {
		t.touched = map[string]bool{}
	}
	for _, node := range c.Touched {
		t.touched[node] = true
	}
}

// isFor reports whether a job is still what the turn was given for, and may have it.
func (t *turn) isFor(job *model.Job) bool {
	return job.UID == t.uid && job.Min() == t.least && job.Blocked() == (model.Reason{})
}

// member is an open member of the turn; nil for any other pod, and before there is a plan. There may be no turn.
func (t *turn) member(uid types.UID) *member {
	if t == nil {
		return nil
	}
	if m := t.members[uid]; m != nil && !m.done {
		return m
	}
	return nil
}

// offered reports whether the turn has no plan yet. There may be no turn.
func (t *turn) offered() bool { return t != nil && t.members == nil }

// isOf reports whether a task, nil if it is gone, is one of the turn's job: any of them may lead it.
func (t *turn) isOf(task *model.Task) bool { return task != nil && task.Job == t.job }

// lets reports whether a pod may enter the scheduling queue for the turn. There may be no turn.
func (t *turn) lets(uid types.UID) bool {
	return t.member(uid) != nil || t.offered() && t.lead.UID == uid
}

// waitsFor reports whether the turn waits for the cycle of a pod to begin, unless it has begun.
func (t *turn) waitsFor(uid types.UID) bool {
	return t.member(uid) != nil || t.members == nil && t.planning.IsZero()
}

// finish takes a member off the list of those the turn waits for.
func (t *turn) finish(m *member, now time.Time) {
	if !m.done {
		m.done = true
		t.open--
		t.progress, t.nudged = now, false
	}
}

// breaksWithout reports whether the turn is over when a pod has no node, or none any more. One that has been reserved and loses its node
// holds up nobody else, unless they only bind together.
func (t *turn) breaksWithout(uid types.UID) bool {
	if t.members == nil {
		return t.lead.UID == uid
	}
	m := t.members[uid]
	return m != nil && (!m.done || t.fragile)
}

// maybeLedBy reports whether a task, nil if it is gone, may lead the turn.
func (t *turn) maybeLedBy(task *model.Task) bool {
	return t.isOf(task) && task.Placeable()
}

// jobs are all jobs that the turn may place.
func (t *turn) jobs() []model.JobKey { return append(slices.Clone(t.followers), t.job) }

// member is a pod of the turn and the node planned for it.
type member struct {
	pod  *corev1.Pod
	node string
	// done: the member holds its node, or is no longer there to be placed.
	done bool
}

// TurnPhase is how far a turn has come.
type TurnPhase string

// The phases.
const (
	// Idle: no turn is on. Members of earlier ones may bind.
	Idle TurnPhase = "idle"
	// Offered: the lead's scheduling cycle is yet to ask what it is for.
	Offered TurnPhase = "offered"
	// Planning: it looks for nodes.
	Planning TurnPhase = "planning"
	// Preempting: there are too few, and it looks for others who may be evicted.
	Preempting TurnPhase = "preempting"
	// Placing: members go to the nodes that were planned for them.
	Placing TurnPhase = "placing"
)

// phase is how far the turn has come; there may be none.
func (t *turn) phase() TurnPhase {
	switch {
	case t == nil:
		return Idle
	case t.members != nil:
		return Placing
	case t.preempting:
		return Preempting
	case !t.planning.IsZero():
		return Planning
	default:
		return Offered
	}
}

// TurnResult is how a turn ended.
type TurnResult string

// How turns end.
const (
	// TurnPlaced: all members hold their nodes.
	TurnPlaced TurnResult = "placed"
	// TurnRefused: the plan did not hold.
	TurnRefused TurnResult = "refused"
	// TurnPipelined: others are evicted, and their room is kept for the job.
	TurnPipelined TurnResult = "pipelined"
	// TurnReserved: room is reserved for the job until pods have ended.
	TurnReserved TurnResult = "reserved"
	// TurnRepeated: the plan was made without room that there is.
	TurnRepeated TurnResult = "repeated"
	// TurnBroken: a member was lost, or the scheduling queue lost a pod of it.
	TurnBroken TurnResult = "broken"
	// TurnErrored: a plugin or an extender failed.
	TurnErrored TurnResult = "errored"
	// TurnChanged: what it was given for is not there any more, or not in the scheduling queue.
	TurnChanged TurnResult = "changed"
)

// Verdict is what Enter says about a pod that begins its scheduling cycle.
type Verdict uint8

// The verdicts.
const (
	// NotItsTurn: the pod's job has no turn, or the turn does not include the pod.
	NotItsTurn Verdict = iota
	// Lead: the pod's cycle has to plan the turn.
	Lead
	// Member: the turn is planned and the pod goes to its node.
	Member
)

// Entry is the answer of Enter.
type Entry struct {
	Verdict Verdict
	// Job is what a lead plans for, and Budget what its queue may take.
	Job    *model.Job
	Budget *policy.Budget
	// Followers are jobs of one task each that may be placed along, in order, until one finds no room.
	Followers []*model.Job
	// Limit is what the queue's limits say; when it is not zero there is no use in planning without evictions.
	Limit model.Reason
	// Passes are the holders of reserved room that the job may use.
	Passes []Pass
	// NodesFirst: the budget is to be looked at only if the nodes have room.
	NodesFirst bool
	// Node is where a member goes.
	Node string
	// Turn numbers the turn; smaller is older.
	Turn uint64
}
