// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// Placement is one task and the node planned for it.
type Placement struct {
	Task *model.Task
	Node string
}

// Plan is the outcome of planning a turn.
type Plan struct {
	// Placements is what to do; nil when the requirement cannot be met.
	Placements []Placement
	// Fragile: a later reservation can fail, so that no member may bind before all are reserved.
	Fragile bool
	// Reason says why nothing is placed; zero when Placements is not empty.
	Reason model.Reason

	// Doubts are what a refusal went by besides room that can be counted.
	Doubts

	// fit is how many tasks there was room for though not for all.
	fit int
}

// Doubts tell for whom else, and how long, a refusal holds.
type Doubts struct {
	// Labels: some filter went by the labels of the pods, beyond those that their own terms select; pods that differ in them may be told
	// otherwise.
	Labels bool
	// NoRoomNeeded: the filters take nodes that have no room for the request.
	NoRoomNeeded bool
	// Unmet: what a pod names, such as a volume claim, is missing or not as it needs it, wherever there is room.
	Unmet bool
	// Vetoed are the nodes on which filters refused a shape though there was room; only for pods that go by nothing but their node.
	Vetoed map[model.Class][]string
}

// Budget is what the job's queue may take.
type Budget interface {
	// Refuses says why so much more may not be taken; the zero Reason when it may.
	Refuses(resource.Vector) model.Reason
	// Take takes it.
	Take(resource.Vector)
	// Excuse counts what is held beyond a limit as within it.
	Excuse()
	// Release has a job of a queue, which may be another, give something back.
	Release(queue string, v resource.Vector)
}

// Request is what a turn asks the planner for.
type Request struct {
	Job *model.Job
	// Budget returns the budget of the queue, as of the turn's begin; each call a new one.
	Budget func() Budget
	// NodesFirst: the budget is looked at only if the nodes have room, so that the reason is theirs if they have not.
	NodesFirst bool
	// Nominated are the tasks, of any job, for which room is kept on a node. That room is nobody else's.
	Nominated []*model.Task
	// Departures are what the holders among them wait for.
	Departures map[model.JobKey]Departure
	// Followers are other jobs of the queue, of one task each, that are placed along once the job is: in order, until one finds no room.
	Followers []*model.Job

	// before is the outcome for the job's parts so far; nil where the job is planned as one.
	before *decided
	// ended are the pods, by node, that have ended by the time for which is planned; nil where that is now.
	ended map[string][]*leaver
}
