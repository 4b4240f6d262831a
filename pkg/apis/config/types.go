// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// GangArgs are the arguments of the plugin Gang.
type GangArgs struct {
	metav1.TypeMeta

	// BindConcurrency is how many pods are bound at a time, over all gangs of the profile; at least 1.
	BindConcurrency int32
	// ReservationTimeout is how long members of a gang with volumes or resource claims wait for the rest of it to be
	// reserved; more than 0, at most 15 minutes, which is the scheduler framework's own limit.
	ReservationTimeout metav1.Duration
	// ScheduledEvents is what gets an event when pods of a gang were bound: PerPod or PerGang.
	ScheduledEvents ScheduledEvents
}

// ScheduledEvents says what gets an event when pods of a gang were bound.
type ScheduledEvents string

const (
	// PerPod is each pod, as upstream has it. Such an event costs the API server as much as the bind.
	PerPod ScheduledEvents = "PerPod"
	// PerGang is the PodGroup when it has its minimum, and pods that are bound after that.
	PerGang ScheduledEvents = "PerGang"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// GangPreemptionArgs are the arguments of the plugin GangPreemption: those of upstream's DefaultPreemption. The greater of the two numbers
// counts; one of them is more than 0.
type GangPreemptionArgs struct {
	metav1.TypeMeta

	// MinCandidateNodesPercentage is on how many of the nodes victims are looked for at least, in percent; 0 to 100.
	MinCandidateNodesPercentage int32
	// MinCandidateNodesAbsolute is on how many nodes victims are looked for at least; at least 0.
	MinCandidateNodesAbsolute int32
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ReclaimArgs are the arguments of the plugin Reclaim.
type ReclaimArgs struct {
	metav1.TypeMeta

	// EvictionConcurrency is how many evictions are in flight at a time; 1 to 1000.
	EvictionConcurrency int32
	// QueueCooldown is how long a queue may not take from another one that took from it; 0 turns the rule off.
	QueueCooldown metav1.Duration
	// VictimTimeout is how long beyond its grace period a victim may stay before it is given up; more than 0.
	VictimTimeout metav1.Duration
	// LedgerSize is how many decisions to evict are remembered; 1 to 100000.
	LedgerSize int32
}
