// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// Event is a set of things that happened to the cluster and may help a job that waits.
type Event uint16

// The events.
const (
	// RoomMade: a pod left its node, or shrank.
	RoomMade Event = 1 << iota
	// NodeChanged: a node appeared, grew, or changed labels, taints or readiness.
	NodeChanged
	// NodeLost: a node disappeared, or has less than before.
	NodeLost
	// PodPlaced: a pod was placed, or changed in its labels or began to terminate on its node, which can satisfy the
	// affinity and spread terms of others.
	PodPlaced
	// StorageChanged: a volume, claim, storage class or storage driver changed.
	StorageChanged
	// DevicesChanged: a resource claim, slice or device class changed, or a pod has been told of a claim of its own.
	DevicesChanged
	// QueueChanged: a queue appeared, disappeared or changed.
	QueueChanged
	// QuotaChanged: a resource quota appeared, disappeared or changed.
	QuotaChanged
	// ProtectionChanged: a disruption budget, a priority class, or what a group with members on nodes, or one of these, keeps from being evicted
	// or is worth, changed, so that others may be evicted than before.
	ProtectionChanged
	// PodStarted: a pod that was bound runs now.
	PodStarted
	// EvictionAnswered: the API server has made a pod leave that this process decided to evict, or the pod stays.
	EvictionAnswered
	// OutsideAnswered: somebody outside the process who votes on jobs and queues has answered, or is to be asked again.
	OutsideAnswered
	// JudgedAnew: somebody outside the process may judge nodes otherwise than before, or a queue has its pods on other nodes.
	JudgedAnew
	// KeptRoomFreed: room that was kept on a node for a pod is for others now.
	KeptRoomFreed
)

// Change is what one update did to the model.
type Change struct {
	// Jobs are the jobs whose tasks or group changed.
	Jobs []JobKey
	// Tasks are the tasks that changed or went away.
	Tasks []types.UID
	// Malformed are tasks that came with a problem of their own, or got one.
	Malformed []*Task
	// Complaints are groups and queues that did.
	Complaints []Complaint
	// Queues are the queues that appeared, disappeared or changed.
	Queues []string
	// Left are the pods that left their nodes.
	Left []Departure
	// Resized are the pods on nodes that ask for something else than before.
	Resized []Resize
	// Nodes are the nodes that appeared, grew, or changed what pods they take.
	Nodes []*corev1.Node
	// Touched are the names of all nodes of which anything changed that bears on their room: what they have, what is taken or kept of
	// it, their labels and taints, or that they are there.
	Touched []string
	// Started are the jobs that have been bound with their minimum for the first time, while this process decides.
	Started []Started
	// Events are what else happened.
	Events Event
	// Own: this process did it, by a reservation.
	Own bool
}

// Departure is a pod that holds nothing of its node any more.
type Departure struct {
	Pod  types.UID
	Node string
}

// Resize is a pod on a node that asks for something else since a version of it.
type Resize struct {
	Pod           types.UID
	Node, Version string
}

// Started is a job that has been bound with its minimum: a gang, or a pod of its own.
type Started struct {
	Job   JobKey
	Queue string
	// Created is when its group was created; for a pod of its own, the pod.
	Created time.Time
}

// Complaint is what is wrong with the annotations of an object, and what to change.
type Complaint struct {
	Object  runtime.Object
	Problem string
}

// Empty reports whether nothing happened.
func (c Change) Empty() bool {
	return len(c.Jobs) == 0 && c.Events == 0 && len(c.Complaints) == 0 && len(c.Touched) == 0
}
