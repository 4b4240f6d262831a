// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// JobView is a job as the scheduler sees it: a PodGroup with its pods, a controller that makes a gang of its pods, or a pod on its own.
//
// The name of a job by a PodGroup of Volcano is the PodGroup's. Names of others begin with where they come from: pod:NAME,
// coscheduling:NAME and native:NAME (PodGroups of scheduling.x-k8s.io and scheduling.k8s.io), replicaset:NAME, statefulset:NAME, job:NAME.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type JobView struct {
	metav1.TypeMeta `json:",inline"`
	// The uid and the time of creation are those of the job's object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`
	// How the job is now.
	Status JobViewStatus `json:"status"`
}

// JobViewList is a list of jobs.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type JobViewList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitzero"`
	// The jobs, by namespace and name.
	Items []JobView `json:"items"`
}

// JobPhase is the phase of a job. The words are those of Volcano's PodGroups.
type JobPhase string

// The phases of a job.
const (
	// JobPending: the job was not let into its queue.
	JobPending JobPhase = "Pending"
	// JobInqueue: the job was let in, and has not started.
	JobInqueue JobPhase = "Inqueue"
	// JobRunning: its minimum has nodes.
	JobRunning JobPhase = "Running"
	// JobUnknown: some of its pods run, and fewer than its minimum.
	JobUnknown JobPhase = "Unknown"
	// JobCompleted: its pods have finished.
	JobCompleted JobPhase = "Completed"
)

// JobViewStatus is how a job is.
type JobViewStatus struct {
	// When the scheduler looked.
	AsOf metav1.Time `json:"asOf"`
	// What makes the job.
	Object ObjectReference `json:"object"`
	// The queue of the job.
	Queue string `json:"queue"`
	// Of jobs of one queue, those of higher priority go first where the tiers say so.
	Priority int32 `json:"priority"`
	// Pending, Inqueue, Running, Unknown or Completed, as of a PodGroup of Volcano.
	Phase JobPhase `json:"phase"`
	// Some of its pods wait for nodes, or it lacks pods to start with.
	Waiting bool `json:"waiting"`
	// Since when it waits: since its oldest pod that waits was created, or since the job was if it has no such pod.
	// +optional
	WaitingSince *metav1.Time `json:"waitingSince,omitempty"`
	// How many pods start together or not at all.
	MinMember int32 `json:"minMember"`
	// Its pods.
	Pods JobPods `json:"pods"`
	// What its pods on nodes ask for, in all.
	// +optional
	Held corev1.ResourceList `json:"held,omitempty"`
	// What its pods ask for that have no node, in all.
	// +optional
	Missing corev1.ResourceList `json:"missing,omitempty"`
	// Why it waits.
	// +optional
	Reason *Reason `json:"reason,omitempty"`
	// Its place among the jobs that wait.
	// +optional
	Position *Position `json:"position,omitempty"`
	// How many turns found no room for it.
	// +optional
	Refused int32 `json:"refused,omitempty"`
	// Which changes would let it start. Only "kubectl caldera explain" fills it in.
	// +optional
	Explanation *Explanation `json:"explanation,omitempty"`
}

// Explanation lists changes after which a job that waits would start. The scheduler planned each of them in memory.
type Explanation struct {
	// It starts without any change.
	// +optional
	Starts bool `json:"starts,omitempty"`
	// Why no number of nodes like those that there are would help.
	// +optional
	Impossible string `json:"impossible,omitempty"`
	// Each of these changes lets it start. With one step less it still waits.
	// +optional
	// +listType=atomic
	Remedies []Remedy `json:"remedies,omitempty"`
	// There was no time to try everything.
	// +optional
	Incomplete bool `json:"incomplete,omitempty"`
}

// Remedy is a change that lets a job start.
type Remedy struct {
	// What is changed: nodes, queue, jobs or itself.
	Kind string `json:"kind"`
	// The change, as part of a sentence.
	Text string `json:"text"`
}

// ObjectReference names an object in the namespace of what refers to it.
type ObjectReference struct {
	// Group and version of its API.
	APIVersion string `json:"apiVersion"`
	// Its kind.
	Kind string `json:"kind"`
	// Its name.
	Name string `json:"name"`
}

// JobPods counts the pods of a job. A pod that terminates counts as that only.
type JobPods struct {
	// All that exist.
	Total int32 `json:"total"`
	// They have no node.
	Pending int32 `json:"pending"`
	// Of these, they carry scheduling gates.
	// +optional
	Gated int32 `json:"gated,omitempty"`
	// They have a node, and do not run yet.
	// +optional
	Bound int32 `json:"bound,omitempty"`
	// They run.
	// +optional
	Running int32 `json:"running,omitempty"`
	// They have finished well.
	// +optional
	Succeeded int32 `json:"succeeded,omitempty"`
	// They have failed, or nobody knows how they are.
	// +optional
	Failed int32 `json:"failed,omitempty"`
	// They are being deleted.
	// +optional
	Terminating int32 `json:"terminating,omitempty"`
}

// Reason is why something waits, or is left out.
type Reason struct {
	// One word, as conditions and metrics have it.
	Type string `json:"type"`
	// What is missing, how much, and what to change.
	Message string `json:"message"`
	// More room on nodes would help.
	// +optional
	FromNodes bool `json:"fromNodes,omitempty"`
}

// Position is the place of a job among those that wait.
type Position struct {
	// Its place among the jobs of its queue that wait, from 1. Who is behind goes first all the same if there is room for it only.
	InQueue int32 `json:"inQueue"`
	// How many jobs of its queue wait.
	OfQueue int32 `json:"ofQueue"`
	// The place of its queue among those with jobs that wait, from 1. It changes with what queues hold.
	Queue int32 `json:"queue"`
	// How many queues have jobs that wait.
	OfQueues int32 `json:"ofQueues"`
}
