// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// GangArgs are the arguments of the plugin Gang.
type GangArgs struct {
	metav1.TypeMeta `json:",inline"`

	// BindConcurrency is how many pods are bound at a time, over all gangs of the profile; at least 1.
	// +optional
	BindConcurrency *int32 `json:"bindConcurrency,omitempty"`
	// ReservationTimeout is how long members of a gang with volumes or resource claims wait for the rest of it to be reserved; more than
	// 0, at most 15m.
	// +optional
	ReservationTimeout *metav1.Duration `json:"reservationTimeout,omitempty"`
	// ScheduledEvents is what gets an event when pods of a gang were bound: PerPod, each pod; PerGang, a PodGroup of Volcano's when it has its minimum,
	// and pods that are bound after that. An event costs the API server as much as a bind.
	// +optional
	ScheduledEvents string `json:"scheduledEvents,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// GangPreemptionArgs are the arguments of the plugin GangPreemption: those of upstream's DefaultPreemption. The greater of the two numbers
// counts; one of them is more than 0.
type GangPreemptionArgs struct {
	metav1.TypeMeta `json:",inline"`

	// MinCandidateNodesPercentage is on how many of the nodes victims are looked for at least, in percent; 0 to 100.
	// +optional
	MinCandidateNodesPercentage *int32 `json:"minCandidateNodesPercentage,omitempty"`
	// MinCandidateNodesAbsolute is on how many nodes victims are looked for at least; at least 0. The greater of the two numbers counts.
	// +optional
	MinCandidateNodesAbsolute *int32 `json:"minCandidateNodesAbsolute,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ReclaimArgs are the arguments of the plugin Reclaim.
type ReclaimArgs struct {
	metav1.TypeMeta `json:",inline"`

	// EvictionConcurrency is how many evictions are in flight at a time; 1 to 1000.
	// +optional
	EvictionConcurrency *int32 `json:"evictionConcurrency,omitempty"`
	// QueueCooldown is how long a queue may not take from another one that took from it; 0s turns the rule off. It is longer with usageHalfLife:
	// docs/queues.md#what-was-held-lately.
	// +optional
	QueueCooldown *metav1.Duration `json:"queueCooldown,omitempty"`
	// VictimTimeout is how long beyond its grace period a victim may stay before it is given up; more than 0.
	// +optional
	VictimTimeout *metav1.Duration `json:"victimTimeout,omitempty"`
	// LedgerSize is how many decisions to evict are remembered, and shown by "kubectl caldera evictions"; 1 to 100000.
	// +optional
	LedgerSize *int32 `json:"ledgerSize,omitempty"`
}
