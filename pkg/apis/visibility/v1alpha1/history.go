// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// QueueHistory is what a queue has held and was due lately. The scheduler that leads remembers it since it began to lead, for two hours at most.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type QueueHistory struct {
	metav1.TypeMeta `json:",inline"`
	// The name is the queue's.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`
	// How the queue was.
	Status QueueHistoryStatus `json:"status"`
}

// QueueHistoryList is a list of histories.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type QueueHistoryList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitzero"`
	// The histories by the names of the queues.
	Items []QueueHistory `json:"items"`
}

// QueueHistoryStatus is how a queue was.
type QueueHistoryStatus struct {
	// When the scheduler looked last.
	AsOf metav1.Time `json:"asOf"`
	// The queue that was above it last; empty for the root, and where queues are no tree.
	// +optional
	Parent string `json:"parent,omitempty"`
	// What it held and was due, the oldest first. There is none of the time in which the queue did not exist.
	// +listType=atomic
	Samples []QueueSample `json:"samples"`
}

// QueueSample is what a queue held and was due at one time, with all queues below it.
type QueueSample struct {
	// When that was.
	Time metav1.Time `json:"time"`
	// What its jobs held.
	// +optional
	Held corev1.ResourceList `json:"held,omitempty"`
	// What was due to it; absent where nothing divided the cluster.
	// +optional
	Due corev1.ResourceList `json:"due,omitempty"`
}
