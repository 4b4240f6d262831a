// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package model holds what Caldera knows of the cluster: queues, jobs, tasks and node totals. It is fed by informers
// and by Reserve and Unreserve, and by nothing else; everything that decides works on immutable values taken from it.
//
// The vocabulary is Volcano's: a job is a PodGroup and its pods, a task is one pod, a role is the value of
// "volcano.sh/task-spec". A pod without a group is a job of one.
package model

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// Status is the state of a task as the scheduler sees it (Volcano pkg/scheduler/api/types.go, TaskStatus).
type Status uint8

// The states of a task. Allocated is known to this process only: the task has a reservation that the API server has
// not confirmed. Pending, Allocated and Releasing tasks without a node hold nothing yet.
const (
	Pending Status = iota
	Allocated
	Bound
	Running
	Releasing
	Succeeded
	Failed
	Unknown
	numStatuses
)

var statusNames = [numStatuses]string{"Pending", "Allocated", "Bound", "Running", "Releasing", "Succeeded", "Failed", "Unknown"}

// String returns Volcano's name of the status.
func (s Status) String() string { return statusNames[s] }

// HoldsNode reports whether a task in this status occupies its node (Volcano's "allocated" statuses and Releasing).
func (s Status) HoldsNode() bool {
	return s == Allocated || s == Bound || s == Running || s == Releasing
}

// Traits are properties of a pod that decide how it is planned and what can help it when it does not fit.
type Traits uint8

// The traits of a pod.
const (
	// HasVolumes: placing the pod also chooses or checks persistent volumes.
	HasVolumes Traits = 1 << iota
	// HasClaims: placing the pod also allocates devices through resource claims.
	HasClaims
	// HasPodTerms: where the pod fits depends on other pods (pod affinity or anti-affinity, topology spread).
	HasPodTerms
)

// Task is one pod of a job. Tasks are immutable: a change replaces the value.
type Task struct {
	UID types.UID
	// Pod is the last version seen; never to be changed.
	Pod *corev1.Pod
	Job JobKey
	// Role is the pod's "volcano.sh/task-spec", empty when it has none.
	Role string
	// Class is equal for pods that any node treats alike; see classOf. It is zero once the pod has a node.
	Class Class
	// Shape is the class without labels and namespace.
	Shape Class
	// Ask is the shape with as much of labels and namespace as the pod's own terms, volumes and claims go by.
	Ask Class
	// Request is what the pod asks of its node.
	Request resource.Vector
	// Charge is what the pod counts for its queue: the request, and the devices of its claims.
	Charge resource.Vector
	// Priority is "volcano.sh/task-priority" when it is a number, else the pod's priority, else 1.
	Priority int32
	Status   Status
	// Node is where the task is or will be; empty while it is Pending.
	Node string
	// Nominated is the node on which room is kept for a Pending task until victims have left it; empty for none.
	Nominated string
	// Reserved: the room is kept until pods have ended that nobody evicts. It is kept from other jobs only, and nobody else is told of it.
	Reserved bool
	// Evicting: the task is Releasing because this process decided so, and the API server has not confirmed it.
	Evicting bool
	Traits   Traits
	// Gated: the pod carries scheduling gates and must not be placed.
	Gated bool
	// QueueGated: the only gate is Volcano's queue gate, which opens when the queue has room for the pod, and it has not been let through.
	QueueGated bool
	// Claims: the queue has let the pod through its gate, and keeps what it asks for until it has a node. The gate may not be gone yet.
	Claims bool
	// HeldBy is the plugin that keeps the pod out of the scheduling queue, as a scheduling gate would; empty for none.
	HeldBy string
	// BestEffort: the pod asks for nothing but a pod slot, and has no devices.
	BestEffort bool
	// Problem says what is wrong with the pod's annotations and what to change; empty when nothing is.
	Problem string
	// Created is the pod's creation time.
	Created time.Time
	// index is what Index returns.
	index int
}

// Placeable reports whether the task waits for a node and may get one.
func (t *Task) Placeable() bool { return t.Status == Pending && !t.Gated }

// Completed reports whether the task has finished, well or badly.
func (t *Task) Completed() bool { return t.Status == Succeeded || t.Status == Failed }

// with returns a copy of the task in another status, on another node, with no room kept for it elsewhere.
func (t *Task) with(status Status, node string) *Task {
	c := *t
	c.Status, c.Node, c.Nominated, c.Reserved, c.Evicting = status, node, "", false, false
	return &c
}

// nominated returns a copy of a Pending task with room kept for it on a node.
func (t *Task) nominated(node string) *Task {
	c := *t
	c.Nominated, c.Reserved = node, false
	return &c
}

// reserved returns a copy of a Pending task with room kept for it on a node until pods that are there have ended.
func (t *Task) reserved(node string) *Task {
	c := t.nominated(node)
	c.Reserved = true
	return c
}

// held returns a copy of a Pending task that a plugin keeps out of the scheduling queue; of one that none does, if that is empty.
func (t *Task) held(by string) *Task {
	c := *t
	c.HeldBy, c.Gated = by, by != "" || len(t.Pod.Spec.SchedulingGates) > 0
	return &c
}

// evicting returns a copy of the task that is to leave its node.
func (t *Task) evicting() *Task {
	c := t.with(Releasing, t.Node)
	c.Evicting = true
	return c
}
