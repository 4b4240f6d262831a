// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package model

// ReasonKind enumerates why a job waits. The values are label values of metrics and, where Volcano has a constant for
// it, condition reasons on the PodGroup.
type ReasonKind string

// Why a job waits, which each comment says of the job. They are the page docs/reference/reasons-and-events.md.
const (
	// NotEnoughResources: no plan has room for the whole gang.
	NotEnoughResources ReasonKind = "NotEnoughResources"
	// NotEnoughTasks: it has fewer pods than minMember.
	NotEnoughTasks ReasonKind = "NotEnoughTasks"
	// NotEnoughPodsOfTask: a role has fewer pods than its minTaskMember, or too few subgroups have all of their pods.
	NotEnoughPodsOfTask ReasonKind = "NotEnoughPodsOfTask"
	// PodGroupNotFound: its pods name a PodGroup that does not exist, or the controller that made a gang of them is gone.
	PodGroupNotFound ReasonKind = "PodGroupNotFound"
	// InvalidPodGroup: a field of its PodGroup, or the minimum on its controller, cannot be meant.
	InvalidPodGroup ReasonKind = "InvalidPodGroup"
	// QueueNotFound: its queue does not exist.
	QueueNotFound ReasonKind = "QueueNotFound"
	// QueueClosed: its queue takes no new jobs.
	QueueClosed ReasonKind = "QueueClosed"
	// QueueMisconfigured: its queue, or one above it, contradicts itself or the others, and is left out.
	QueueMisconfigured ReasonKind = "QueueMisconfigured"
	// QueueNotLeaf: its queue has queues below it and takes no jobs of its own.
	QueueNotLeaf ReasonKind = "QueueNotLeaf"
	// QueueFull: its queue holds what it may hold.
	QueueFull ReasonKind = "QueueFull"
	// NotAdmitted: it was not let into its queue.
	NotAdmitted ReasonKind = "NotAdmitted"
	// BackfillOff: its pods ask for nothing, and no action places such pods.
	BackfillOff ReasonKind = "BackfillOff"
	// SchedulingGated: scheduling gates hold too many of its pods.
	SchedulingGated ReasonKind = "SchedulingGated"
	// WaitingForVictims: pods that make room for it have not left yet.
	WaitingForVictims ReasonKind = "WaitingForVictims"
	// RoomReserved: room is reserved for it, and pods that are there have not ended yet. See docs/waiting.md.
	RoomReserved ReasonKind = "RoomReserved"
	// NotFirst: its queue lets its jobs start one after the other (dequeueStrategy: fifo), and another one comes first.
	NotFirst ReasonKind = "NotFirst"
	// Withheld: a scheduler extender keeps it, or its queue, from turns; or a policy of another module does, by Validator or Readier.
	Withheld ReasonKind = "Withheld"
	// SlowBinds: the API server takes longer than a second to bind pods of its namespace, and many of them wait for that already.
	SlowBinds ReasonKind = "SlowBinds"
	// Unanswered: somebody outside the process has been asked about the job or its queue, and has not answered yet. It is
	// never told: the reason from before holds until the answer.
	Unanswered ReasonKind = "Unanswered"
	// SchedulerError: an attempt failed, and is repeated.
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
