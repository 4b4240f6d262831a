// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// The comments below are the page docs/reference/reasons-and-events.md. Others rely on these names: docs/names.md.

// eventReason is the reason of an event.
type eventReason string

// The reasons of events, each with what it is recorded on.
const (
	// evictReason, on victims, their PodGroups, their queues: pods are evicted, for whom, and by which action. It is Volcano's, and written when the
	// API server has agreed. See docs/evictions-operations.md#events.
	evictReason eventReason = "Evict"
	// evictingReason, on who gets the room, and its queue: how many pods of which queues are evicted for it, once a decision.
	evictingReason eventReason = "Evicting"
	// brokenReason, on PodGroups: the gang lost members, or was never whole, and what becomes of it. See docs/evictions.md#broken-gangs.
	brokenReason eventReason = "GangBroken"
	// wholeReason, on PodGroups: the gang is whole again, and for how long it was not.
	wholeReason eventReason = "GangWhole"
	// releasedReason, on PodGroups: the gang gives back what it holds, and why.
	releasedReason eventReason = "GangReleased"
	// waitsReason, on PodGroups, controllers that make gangs: why the job waits. It is Volcano's.
	waitsReason eventReason = "Unschedulable"
	// scheduledReason, on PodGroups: the job is placed. It is Volcano's.
	scheduledReason eventReason = "Scheduled"
	// podWaitsReason, on pods without a PodGroup: why the pod waits. It is upstream's.
	podWaitsReason eventReason = "FailedScheduling"
	// malformedReason, on PodGroups, pods, queues, controllers that make gangs: what is wrong with an annotation, and what to write. See docs/bad-input.md.
	malformedReason eventReason = "MalformedAnnotation"
	// faultReason, on queues: the queue is left out, why, and what to change. See docs/queues.md#broken-queues.
	faultReason eventReason = "QueueMisconfigured"
	// acceptedReason, on queues: the queue takes part again.
	acceptedReason eventReason = "QueueAccepted"
	// configurationRefusedReason, on the queue root: what is wrong with the changed file of --volcano-conf. The configuration from before stays in force.
	configurationRefusedReason eventReason = "ConfigurationRefused"
	// configurationAppliedReason, on the queue root: a change of the file of --volcano-conf is in force.
	configurationAppliedReason eventReason = "ConfigurationApplied"
)

// event records an event. Nothing else does.
func (w *Writer) event(on runtime.Object, kind string, reason eventReason, message string) {
	w.recorder.Event(on, kind, string(reason), message)
}

// podReason is a reason on the condition PodScheduled of a pod.
type podReason string

// The reasons on the condition PodScheduled that are not those of the pod's job.
const (
	// unschedulable: more room on nodes would help, which is what autoscalers act on.
	unschedulable podReason = corev1.PodReasonUnschedulable
	// gated: the gate of its queue holds the pod. The API server has said that much itself, and clients know the pod by it.
	gated podReason = corev1.PodReasonSchedulingGated
	// membersGated: the pod has no scheduling gates, and those of others of its gang are in the way. Who is told SchedulingGated looks for its own.
	membersGated podReason = "MembersSchedulingGated"
)

// evictionReason is a reason on the condition DisruptionTarget of a pod.
type evictionReason string

// Why pods are evicted.
const (
	// forRoom: a job needs its room. The message names the job, its queue and the action.
	forRoom evictionReason = corev1.PodReasonPreemptionByScheduler
	// byAPI: nobody needs its room, as with shuffle, and the message says why it was evicted; or it is still that of the API server.
	byAPI evictionReason = "EvictionByEvictionAPI"
)
