// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// QueueView is a queue as the scheduler sees it.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type QueueView struct {
	metav1.TypeMeta `json:",inline"`
	// The uid and the time of creation are those of the Queue.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`
	// How the queue is now.
	Status QueueViewStatus `json:"status"`
}

// QueueViewList is a list of queues.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type QueueViewList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitzero"`
	// The queues by name.
	Items []QueueView `json:"items"`
}

// LocalQueueView is a queue for those who may look into one namespace only: a queue that has jobs of the namespace, or has such a queue below it.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type LocalQueueView struct {
	metav1.TypeMeta `json:",inline"`
	// The name is the queue's.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`
	// How the queue is now.
	Status QueueViewStatus `json:"status"`
}

// LocalQueueViewList is a list of queues.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type LocalQueueViewList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitzero"`
	// The queues by name.
	Items []LocalQueueView `json:"items"`
}

// QueueViewStatus is how a queue is. What it holds, is due and may hold is that of all queues below it, too.
type QueueViewStatus struct {
	// When the scheduler looked.
	AsOf metav1.Time `json:"asOf"`
	// The queue above it; empty for the root, and where queues are no tree.
	// +optional
	Parent string `json:"parent,omitempty"`
	// Open, Closed, Closing or Unknown, or Missing for a queue that jobs name and that does not exist.
	State string `json:"state"`
	// Its part of what queues share by weight.
	// +optional
	Weight int32 `json:"weight,omitempty"`
	// What its jobs hold.
	// +optional
	Held corev1.ResourceList `json:"held,omitempty"`
	// What is due to it now; absent where nothing divides the cluster.
	// +optional
	Due corev1.ResourceList `json:"due,omitempty"`
	// What it may hold at most.
	// +optional
	Limit corev1.ResourceList `json:"limit,omitempty"`
	// What it may hold of resources that the limit does not name. Absent: all there is. Nothing, or OnlyDevices: of cards and the like all there is, of
	// cpu, memory and the like nothing.
	// +optional
	LimitOfOthers LimitOfOthers `json:"limitOfOthers,omitempty"`
	// What is set aside for it.
	// +optional
	Guarantee corev1.ResourceList `json:"guarantee,omitempty"`
	// It holds more than its due, of some resource.
	// +optional
	Overused bool `json:"overused,omitempty"`
	// Its own jobs.
	Jobs QueueJobs `json:"jobs"`
	// How many jobs wait, in the queues below it, too.
	Waiting int32 `json:"waiting"`
	// Since when the one of them waits that has waited longest.
	// +optional
	WaitingSince *metav1.Time `json:"waitingSince,omitempty"`
	// Why it is left out of scheduling.
	// +optional
	Fault *Reason `json:"fault,omitempty"`
	// The job that has room reserved.
	// +optional
	ReservedFor *JobReference `json:"reservedFor,omitempty"`
}

// LimitOfOthers is what a queue may hold of resources that its limit does not name.
type LimitOfOthers string

// What a queue may hold of resources that its limit does not name, if that is not all there is.
const (
	// NothingElse: it may hold nothing of them.
	NothingElse LimitOfOthers = "Nothing"
	// OnlyDevices: it may hold nothing of them, but of devices all there is.
	OnlyDevices LimitOfOthers = "OnlyDevices"
)

// QueueJobs counts PodGroups by their phase.
type QueueJobs struct {
	// They were not let in.
	// +optional
	Pending int32 `json:"pending,omitempty"`
	// They were let in, and have not started.
	// +optional
	Inqueue int32 `json:"inqueue,omitempty"`
	// Their minimum has nodes.
	// +optional
	Running int32 `json:"running,omitempty"`
	// Some of their pods run, and fewer than their minimum.
	// +optional
	Unknown int32 `json:"unknown,omitempty"`
	// Their pods have finished.
	// +optional
	Completed int32 `json:"completed,omitempty"`
}

// JobReference names a job.
type JobReference struct {
	// PodGroup, Gang (of a controller that makes a gang of its pods) or Pod.
	Kind string `json:"kind"`
	// Its namespace.
	Namespace string `json:"namespace"`
	// Its name.
	Name string `json:"name"`
	// Its queue.
	// +optional
	Queue string `json:"queue,omitempty"`
}
