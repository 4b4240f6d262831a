// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package protocol holds the questions that an extender of Volcano is asked, and its answers. Jobs, tasks, queues and
// nodes are written under the names of Volcano's Go fields (pkg/scheduler/api), which an extender was built against; what
// Caldera has no such thing for is left out.
package protocol

// The questions.
type (
	// Session is the question of onSessionOpen. The last three are always empty, the last one null, as in Volcano.
	Session struct {
		Jobs           map[string]*Job
		Nodes          map[string]*Node
		Queues         map[string]*Queue
		NamespaceInfo  struct{}
		RevocableNodes struct{}
		NodeList       []*Node
	}
	// End is the question of onSessionClose.
	End struct{}
	// Fits is the question of predicate.
	Fits struct {
		Task *Task `json:"task"`
		Node *Node `json:"node"`
	}
	// Rank is the question of prioritize.
	Rank struct {
		Task  *Task   `json:"task"`
		Nodes []*Node `json:"nodes"`
	}
	// Choose is the question of preemptable and reclaimable.
	Choose struct {
		Evictor  *Task   `json:"evictor"`
		Evictees []*Task `json:"evictees"`
	}
	// OfJob is the question of jobEnqueueable, jobEnqueued and jobReady.
	OfJob struct {
		Job *Job `json:"job"`
	}
	// OfQueue is the question of queueOverused.
	OfQueue struct {
		Queue *Queue `json:"queue"`
	}
	// OfTask is the question of allocateFunc and deallocateFunc.
	OfTask struct {
		Task *Task `json:"task"`
	}
)

// Verdict is the answer of predicate. A node takes the task if there is no message, whatever the code.
type Verdict struct {
	Message string `json:"status"`
	Code    int    `json:"code"`
}

// The codes of a Verdict that tell whether evictions may help.
const (
	Unschedulable = 2
)

// Ranking is the answer of prioritize: a score of any size by the name of the node.
type Ranking struct {
	Scores  map[string]float64 `json:"nodeScore"`
	Message string             `json:"errorMessage"`
}

// Ballot is the answer of jobEnqueueable, and of preemptable and reclaimable with the victims: above 0 permits, 0 has no
// opinion, below 0 rejects.
type Ballot struct {
	Vote    int     `json:"status"`
	Victims []Named `json:"victims"`
}

// Named is a task of which only the name matters.
type Named struct {
	UID string
}

// Overuse is the answer of queueOverused.
type Overuse struct {
	Overused bool `json:"overused"`
}

// Readiness is the answer of jobReady.
type Readiness struct {
	Ready bool `json:"status"`
}

// Receipt is the answer of allocateFunc and deallocateFunc; a message refuses.
type Receipt struct {
	Message string `json:"errorMessage"`
}
