// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package model

// ReasonKind enumerates why a job waits. The values are label values of metrics and, where Volcano has a constant for
// it, condition reasons on the PodGroup.
type ReasonKind string

// Why a job waits.
const (
	// NotEnoughResources: the plan found no room for the whole gang.
	NotEnoughResources ReasonKind = "NotEnoughResources"
	// NotEnoughTasks: fewer valid pods than minMember.
	NotEnoughTasks ReasonKind = "NotEnoughTasks"
	// NotEnoughPodsOfTask: a role has fewer valid pods than its minTaskMember.
	NotEnoughPodsOfTask ReasonKind = "NotEnoughPodsOfTask"
	// PodGroupNotFound: the pods name a PodGroup that does not exist.
	PodGroupNotFound ReasonKind = "PodGroupNotFound"
	// InvalidPodGroup: a field of the PodGroup cannot be meant.
	InvalidPodGroup ReasonKind = "InvalidPodGroup"
	// QueueNotFound: the job names a queue that does not exist.
	QueueNotFound ReasonKind = "QueueNotFound"
	// QueueClosed: the queue takes no new jobs.
	QueueClosed ReasonKind = "QueueClosed"
	// QueueMisconfigured: the queue, or one above it, contradicts itself or the others, and is left out.
	QueueMisconfigured ReasonKind = "QueueMisconfigured"
	// QueueNotLeaf: the queue has queues below it and takes no jobs of its own.
	QueueNotLeaf ReasonKind = "QueueNotLeaf"
	// QueueFull: the queue holds what it may hold.
	QueueFull ReasonKind = "QueueFull"
	// NotAdmitted: the job has not been let into its queue.
	NotAdmitted ReasonKind = "NotAdmitted"
	// BackfillOff: the job's pods ask for nothing, and no action places such pods.
	BackfillOff ReasonKind = "BackfillOff"
	// SchedulingGated: too few members are free of scheduling gates.
	SchedulingGated ReasonKind = "SchedulingGated"
	// WaitingForVictims: pods that must make room for the job have not left yet.
	WaitingForVictims ReasonKind = "WaitingForVictims"
	// RoomReserved: room is kept for the job on nodes where pods have not ended yet.
	RoomReserved ReasonKind = "RoomReserved"
	// NotFirst: the job's queue lets its jobs start one after the other, and another one comes first.
	NotFirst ReasonKind = "NotFirst"
	// Withheld: an extender, or a policy of another module, keeps the job or its queue from turns.
	Withheld ReasonKind = "Withheld"
	// Unanswered: somebody outside the process has been asked about the job or its queue, and has not answered yet. It is
	// never told: the reason from before holds until the answer.
	Unanswered ReasonKind = "Unanswered"
	// SchedulerError: an attempt ended in an error and is repeated after a back-off.
	SchedulerError ReasonKind = "SchedulerError"
)

// Reason says why a job waits. The zero value means that it does not.
type Reason struct {
	Kind ReasonKind
	// Message is one line for people: what is missing, how much, what to change.
	Message string
	// Detail is what the nodes said, where that is the reason; empty otherwise.
	Detail string
	// Subject narrows the kind down (the resource that is short, say). Two reasons with equal Kind and Subject are the
	// same reason, whatever numbers their messages carry, and are not reported twice.
	Subject string
	// FromNodes: the job waits for room on nodes, so that its pods are what an autoscaler should act on.
	FromNodes bool
}

// Text is the message with its detail.
func (r Reason) Text() string {
	if r.Detail == "" {
		return r.Message
	}
	return r.Message + "; " + r.Detail
}

// Same reports whether two reasons differ in numbers at most.
func (r Reason) Same(o Reason) bool { return r.Kind == o.Kind && r.Subject == o.Subject }
