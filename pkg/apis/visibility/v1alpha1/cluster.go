// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterName is the name of the only ClusterView.
const ClusterName = "cluster"

// ClusterView is the cluster as the scheduler sees it, and the scheduler itself.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ClusterView struct {
	metav1.TypeMeta `json:",inline"`
	// The name is "cluster".
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`
	// How the cluster is now.
	Status ClusterViewStatus `json:"status"`
}

// ClusterViewList is a list of the only ClusterView.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ClusterViewList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitzero"`
	// The only one.
	Items []ClusterView `json:"items"`
}

// ClusterViewStatus is how the cluster is.
type ClusterViewStatus struct {
	// When the scheduler looked.
	AsOf metav1.Time `json:"asOf"`
	// The scheduler that leads.
	Leader Leader `json:"leader"`
	// How many nodes there are.
	Nodes int32 `json:"nodes"`
	// What pods can ask of them, in all.
	// +optional
	Allocatable corev1.ResourceList `json:"allocatable,omitempty"`
	// What pods hold of them, whoever placed these.
	// +optional
	Held corev1.ResourceList `json:"held,omitempty"`
	// How many jobs wait.
	Waiting int32 `json:"waiting"`
	// Why they wait, the most frequent first.
	// +optional
	// +listType=atomic
	Reasons []ReasonCount `json:"reasons,omitempty"`
	// The queues that are left out of scheduling.
	// +optional
	// +listType=atomic
	LeftOut []LeftOutQueue `json:"leftOut,omitempty"`
	// The evictions since the scheduler started to lead.
	Evictions EvictionTotals `json:"evictions"`
}

// Leader is the scheduler that leads.
type Leader struct {
	// How it calls itself where it holds the lease.
	Identity string `json:"identity"`
	// Its version.
	Version string `json:"version"`
	// The version of Kubernetes that it schedules by.
	KubernetesVersion string `json:"kubernetesVersion"`
	// Since when it leads.
	Since metav1.Time `json:"since"`
	// The names by which pods ask for it.
	// +listType=atomic
	Profiles []string `json:"profiles"`
	// What it schedules by now, a KubeSchedulerConfiguration in YAML. It has what a volcano-scheduler.conf comes to.
	// +optional
	Configuration string `json:"configuration,omitempty"`
}

// ReasonCount is how many jobs wait for one reason.
type ReasonCount struct {
	// The reason.
	Type string `json:"type"`
	// How many jobs wait for it.
	Jobs int32 `json:"jobs"`
}

// LeftOutQueue is a queue that is left out of scheduling.
type LeftOutQueue struct {
	// Its name.
	Name string `json:"name"`
	// Why it is left out.
	Reason Reason `json:"reason"`
}

// EvictionTotals are sums since the scheduler started to lead.
type EvictionTotals struct {
	// How many decisions were made.
	Decisions int64 `json:"decisions"`
	// How many pods were evicted.
	Evicted int64 `json:"evicted"`
	// Of these, for jobs that did not start then.
	Wasted int64 `json:"wasted"`
	// Of these, for a job that had lost pods to theirs within the hour before.
	Cycles int64 `json:"cycles"`
	// What the jobs asked for that got the room.
	// +optional
	Requested corev1.ResourceList `json:"requested,omitempty"`
	// What the evicted pods asked for.
	// +optional
	Taken corev1.ResourceList `json:"taken,omitempty"`
}
