// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// EvictionDecision is one decision to evict pods, and what became of it.
//
// It is in the namespace of the job for which pods were evicted; if there is none, in that of the first pod. Who asks for the decisions of one
// namespace is told of each decision that concerns it, with the names of its own pods only.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type EvictionDecision struct {
	metav1.TypeMeta `json:",inline"`
	// The name is unique among all that are remembered. The time of creation is when it was decided.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`
	// What was decided, and what became of it.
	Status EvictionDecisionStatus `json:"status"`
}

// EvictionDecisionList is a list of decisions.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type EvictionDecisionList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitzero"`
	// The decisions, the newest first.
	Items []EvictionDecision `json:"items"`
}

// EvictionDecisionStatus is what was decided, and what became of it.
type EvictionDecisionStatus struct {
	// The action that decided: preempt, reclaim, gangpreempt, gangreclaim, consolidate, complete, shuffle or release.
	Action string `json:"action"`
	// The job that is to start; absent if nobody is to have the room.
	// +optional
	Job *JobReference `json:"job,omitempty"`
	// How many of its pods are to start.
	// +optional
	Pods int32 `json:"pods,omitempty"`
	// Those pods.
	// +optional
	// +listType=atomic
	Members []EvictionMember `json:"members,omitempty"`
	// The pods that are evicted.
	// +listType=atomic
	Victims []EvictionVictim `json:"victims"`
	// How many pods of other namespaces are evicted that are not named here.
	// +optional
	OtherVictims int32 `json:"otherVictims,omitempty"`
	// Why other pods are not evicted.
	// +optional
	// +listType=atomic
	Kept []KeptPods `json:"kept,omitempty"`
	// Pending, Started, Wasted, Cancelled or Done.
	Outcome string `json:"outcome"`
	// When the outcome was known.
	// +optional
	Ended *metav1.Time `json:"ended,omitempty"`
	// What stood in the way.
	// +optional
	Problem string `json:"problem,omitempty"`
}

// EvictionMember is a pod that is to start.
type EvictionMember struct {
	// Its namespace.
	Namespace string `json:"namespace"`
	// Its name.
	Name string `json:"name"`
	// Its uid.
	UID types.UID `json:"uid"`
	// The node that it is to get.
	Node string `json:"node"`
	// What it asks for.
	// +optional
	Request corev1.ResourceList `json:"request,omitempty"`
}

// EvictionVictim is a pod that is evicted.
type EvictionVictim struct {
	// Its namespace.
	Namespace string `json:"namespace"`
	// Its name.
	Name string `json:"name"`
	// Its uid.
	UID types.UID `json:"uid"`
	// The node that it leaves.
	Node string `json:"node"`
	// What it asks for.
	// +optional
	Request corev1.ResourceList `json:"request,omitempty"`
	// Its job.
	Job JobReference `json:"job"`
	// The rule by which it was chosen.
	Rule string `json:"rule"`
	// The node that was found for it.
	// +optional
	MovesTo string `json:"movesTo,omitempty"`
	// A disruption budget covers it.
	// +optional
	Budgeted bool `json:"budgeted,omitempty"`
	// Planned, Sent, Leaving, Gone, Refused, Spared or Stuck.
	State string `json:"state"`
	// The API server has agreed to evict it.
	// +optional
	Evicted bool `json:"evicted,omitempty"`
	// Until when it is waited for while it terminates.
	// +optional
	Deadline *metav1.Time `json:"deadline,omitempty"`
	// Why it was refused.
	// +optional
	Problem string `json:"problem,omitempty"`
}

// KeptPods is why so many pods that came into question are not evicted.
type KeptPods struct {
	// The rule that keeps them.
	Reason string `json:"reason"`
	// How many they are.
	Pods int32 `json:"pods"`
}
