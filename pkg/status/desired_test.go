// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/status"
)

// tasks are how many tasks of a job are in which state.
type tasks map[model.Status]int

// jobOf returns a job with a minimum that was let into its queue. Its terminating tasks are on nodes.
func jobOf(least int, n tasks) *model.Job {
	job := &model.Job{Group: &model.Group{MinMember: least}, Admitted: true}
	for s, count := range n {
		job.Counts.ByStatus[s] = count
	}
	job.Counts.ReleasingPlaced = n[model.Releasing]
	return job
}

// withMessage is a condition with another message.
func withMessage(c volcano.PodGroupCondition, message string) volcano.PodGroupCondition {
	c.Message = message
	return c
}

// startedWith gives a job the minimum with which it was first whole.
func startedWith(least int, job *model.Job) *model.Job {
	job.Start.Tasks = least
	return job
}

// neverPlaced makes the terminating tasks of a job ones that had no node.
func neverPlaced(job *model.Job) *model.Job {
	job.Counts.ReleasingPlaced = 0
	return job
}

// killed makes n failed tasks of a job ones that were deleted.
func killed(n int, job *model.Job) *model.Job {
	job.Counts.Killed = n
	return job
}

// over makes a job one that has completed.
func over(job *model.Job) *model.Job {
	job.Group.Phase = model.PhaseCompleted
	return job
}

// outside makes a job one that was not let into its queue.
func outside(job *model.Job) *model.Job {
	job.Admitted = false
	return job
}

var (
	noRoom   = model.Reason{Kind: model.NotEnoughResources, Message: "no room for 2 of 2 pods", Subject: "cpu", FromNodes: true}
	noPods   = model.Reason{Kind: model.NotEnoughTasks, Message: "1 of 2 pods exist"}
	gates    = model.Reason{Kind: model.SchedulingGated, Message: "2 of 2 pods carry scheduling gates"}
	badGroup = model.Reason{Kind: model.InvalidPodGroup, Message: "spec.minMember is -1"}
	noQueue  = model.Reason{Kind: model.QueueNotFound, Message: "queue \"q\" does not exist"}
	refused  = model.Reason{Kind: model.NotAdmitted, Message: "resource in cluster is overused: overused cpu", FromNodes: true}
	leftOut  = model.Reason{Kind: model.QueueMisconfigured, Message: "queue \"q\" is left out"}
	inner    = model.Reason{Kind: model.QueueNotLeaf, Message: "queue \"q\" has queues below it"}
	shut     = model.Reason{Kind: model.QueueClosed, Message: "queue \"q\" is Closed"}
)

// The examples of reference section 3.10 are marked (test) and (computed) as there. Where Caldera differs: a job that
// was let in stays Inqueue when it loses its members, where Volcano has it ask again.
func TestPhase(t *testing.T) {
	for name, tc := range map[string]struct {
		job    *model.Job
		reason model.Reason
		want   volcano.PodGroupPhase
	}{
		"(test) minMember 1, one terminating on a node": {
			jobOf(1, tasks{model.Releasing: 1}), noPods, volcano.PodGroupRunning,
		},
		"(test) minMember 2, one running, one terminating on a node": {
			jobOf(2, tasks{model.Running: 1, model.Releasing: 1}), noPods, volcano.PodGroupRunning,
		},
		"the same with a minimum of 3: one is missing": {
			jobOf(3, tasks{model.Running: 1, model.Releasing: 1}), noPods, volcano.PodGroupUnknown,
		},
		"the same with another one waiting: the gang is short of a member": {
			jobOf(2, tasks{model.Running: 1, model.Releasing: 1, model.Pending: 1}), noRoom, volcano.PodGroupUnknown,
		},
		"(test) minMember 2, one terminating that had no node, one pending: Volcano says Pending": {
			neverPlaced(jobOf(2, tasks{model.Releasing: 1, model.Pending: 1})), noPods, volcano.PodGroupInqueue,
		},
		"(test) minMember 2, one terminating and nothing else: Volcano says Pending": {
			jobOf(2, tasks{model.Releasing: 1}), noPods, volcano.PodGroupInqueue,
		},
		"(test) minMember 2, two succeeded": {
			jobOf(2, tasks{model.Succeeded: 2}), model.Reason{}, volcano.PodGroupCompleted,
		},
		"two were deleted while they ran, and are Failed for a moment": {
			killed(2, jobOf(2, tasks{model.Failed: 2})), noPods, volcano.PodGroupRunning,
		},
		"one succeeded, one was deleted while it ran": {
			killed(1, jobOf(2, tasks{model.Succeeded: 1, model.Failed: 1})), noPods, volcano.PodGroupRunning,
		},
		"it had completed, and what failed is deleted": {
			over(killed(2, jobOf(2, tasks{model.Failed: 2}))), noPods, volcano.PodGroupCompleted,
		},
		"(test) minMember 2, one running, one that does not fit": {
			jobOf(2, tasks{model.Running: 1, model.Pending: 1}), noRoom, volcano.PodGroupUnknown,
		},
		"the same while its turn is on: nothing is known to be missing": {
			jobOf(2, tasks{model.Running: 1, model.Pending: 1}), model.Reason{}, volcano.PodGroupInqueue,
		},
		"one bound, one that does not fit: nothing runs that could be in an unknown state": {
			jobOf(2, tasks{model.Bound: 1, model.Pending: 1}), noRoom, volcano.PodGroupInqueue,
		},
		"(computed) minMember 0 without pods": {
			jobOf(0, nil), model.Reason{}, volcano.PodGroupCompleted,
		},
		"minMember 0, pods that wait: Volcano says Completed": {
			jobOf(0, tasks{model.Pending: 2}), model.Reason{}, volcano.PodGroupInqueue,
		},
		"minMember 0, pods that do not fit": {
			jobOf(0, tasks{model.Pending: 2}), noRoom, volcano.PodGroupInqueue,
		},
		"minMember 0, one pod runs": {
			jobOf(0, tasks{model.Running: 1, model.Pending: 1}), noRoom, volcano.PodGroupRunning,
		},
		"minMember 0, all pods have succeeded": {
			jobOf(0, tasks{model.Succeeded: 2}), model.Reason{}, volcano.PodGroupCompleted,
		},
		"minMember 0 in a closed queue": {
			jobOf(0, tasks{model.Pending: 2}), shut, volcano.PodGroupPending,
		},
		"all members have failed: Volcano says Completed too": {
			jobOf(2, tasks{model.Failed: 2}), noPods, volcano.PodGroupCompleted,
		},
		"one has succeeded, one runs": {
			jobOf(2, tasks{model.Succeeded: 1, model.Running: 1}), model.Reason{}, volcano.PodGroupRunning,
		},
		"one has failed, one runs: the minimum cannot be met": {
			jobOf(2, tasks{model.Failed: 1, model.Running: 1}), noPods, volcano.PodGroupUnknown,
		},
		"reservations are not scheduled before they are confirmed": {
			jobOf(2, tasks{model.Allocated: 2}), model.Reason{}, volcano.PodGroupInqueue,
		},
		"bound members run as far as the PodGroup is concerned": {
			jobOf(2, tasks{model.Bound: 2}), model.Reason{}, volcano.PodGroupRunning,
		},
		"the minimum runs, and surplus tasks do not fit": {
			jobOf(2, tasks{model.Running: 2, model.Pending: 3}), noRoom, volcano.PodGroupRunning,
		},
		"without pods: its controller makes them once it is Inqueue": {
			jobOf(2, nil), model.Reason{}, volcano.PodGroupInqueue,
		},
		"too few pods": {
			jobOf(2, tasks{model.Pending: 1}), noPods, volcano.PodGroupInqueue,
		},
		"no room": {
			jobOf(2, tasks{model.Pending: 2}), noRoom, volcano.PodGroupInqueue,
		},
		"scheduling gates": {
			jobOf(2, tasks{model.Pending: 2}), gates, volcano.PodGroupInqueue,
		},
		"not let in yet": {
			outside(jobOf(2, tasks{model.Pending: 2})), model.Reason{}, volcano.PodGroupPending,
		},
		"not let in, and no pods yet: its controller must make none": {
			outside(jobOf(2, nil)), refused, volcano.PodGroupPending,
		},
		"it gave its admission back": {
			jobOf(2, nil), refused, volcano.PodGroupPending,
		},
		"one that runs though nobody let it in": {
			outside(jobOf(1, tasks{model.Running: 1, model.Pending: 1})), noRoom, volcano.PodGroupRunning,
		},
		"it has completed, and its pods were deleted: Volcano says Pending": {
			over(jobOf(2, nil)), model.Reason{}, volcano.PodGroupCompleted,
		},
		"it has completed, and there are pods again": {
			over(jobOf(2, tasks{model.Pending: 2})), noRoom, volcano.PodGroupInqueue,
		},
		"a misconfigured queue": {
			jobOf(2, tasks{model.Pending: 2}), leftOut, volcano.PodGroupPending,
		},
		"a queue that takes no jobs": {
			jobOf(2, tasks{model.Pending: 2}), inner, volcano.PodGroupPending,
		},
		"a queue that does not exist": {
			jobOf(2, tasks{model.Pending: 2}), noQueue, volcano.PodGroupPending,
		},
		"a queue that does not exist, and no pods yet: its controller must make none": {
			jobOf(2, nil), noQueue, volcano.PodGroupPending,
		},
		"a closed queue": {
			jobOf(2, tasks{model.Pending: 2}), shut, volcano.PodGroupPending,
		},
		"a PodGroup to be mended": {
			jobOf(-1, tasks{model.Pending: 2}), badGroup, volcano.PodGroupPending,
		},
		"the queue of a gang that runs was deleted, and a surplus task waits": {
			jobOf(1, tasks{model.Running: 1, model.Pending: 1}), noQueue, volcano.PodGroupUnknown,
		},
		"the queue of a gang that is bound was deleted": {
			jobOf(2, tasks{model.Bound: 1, model.Pending: 1}), noQueue, volcano.PodGroupPending,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := status.Desired(tc.job, volcano.PodGroupStatus{Phase: volcano.PodGroupPending}, tc.reason, tc.reason, metav1.Time{}, "t").Phase
			if got != tc.want {
				t.Errorf("phase is %s, want %s", got, tc.want)
			}
		})
	}
}

func TestCountersOfTheStatus(t *testing.T) {
	job := jobOf(2, tasks{model.Running: 3, model.Succeeded: 2, model.Failed: 1, model.Bound: 4, model.Pending: 5})
	got := status.Desired(job, volcano.PodGroupStatus{Running: 9, Succeeded: 9, Failed: 9}, model.Reason{}, model.Reason{}, metav1.Time{}, "t")
	if diff := cmp.Diff([]int32{3, 2, 1}, []int32{got.Running, got.Succeeded, got.Failed}); diff != "" {
		t.Errorf("running, succeeded, failed (-want,+got)\n%s", diff)
	}
}

var (
	earlier = metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	now     = metav1.NewTime(earlier.Add(time.Hour))
)

// condition is one that was set earlier, or just now.
func condition(kind volcano.PodGroupConditionType, status corev1.ConditionStatus, reason, message string, at metav1.Time) volcano.PodGroupCondition {
	id := "before"
	if at == now {
		id = "this time"
	}
	return volcano.PodGroupCondition{Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: at, TransitionID: id}
}

// Conditions are transitions: one entry a type, which changes with its status or reason and with nothing else.
func TestConditions(t *testing.T) {
	const ready = "tasks in gang are ready to be scheduled"
	unschedulable := condition(volcano.PodGroupUnschedulableType, "True", "NotEnoughResources", "no room for 2 of 2 pods", earlier)
	scheduled := condition(volcano.PodGroupScheduled, "True", ready, "not all members of its minimum are bound yet", earlier)
	foreign := condition("Suspended", "True", "ByUser", "on holiday", earlier)
	otherNumbers := noRoom
	otherNumbers.Message = "no room for 1 of 2 pods"
	detailed := noRoom
	detailed.Detail = "3 node(s) had untolerated taint(s)"
	type list = []volcano.PodGroupCondition
	for name, tc := range map[string]struct {
		before list
		job    *model.Job
		reason model.Reason
		want   list
	}{
		"a gang that does not fit is Unschedulable, with the cause as reason": {
			nil, jobOf(2, tasks{model.Pending: 2}), noRoom,
			list{condition(volcano.PodGroupUnschedulableType, "True", "NotEnoughResources", "no room for 2 of 2 pods", now)},
		},
		"what the nodes said is part of the message": {
			nil, jobOf(2, tasks{model.Pending: 2}), detailed,
			list{condition(volcano.PodGroupUnschedulableType, "True", "NotEnoughResources", "no room for 2 of 2 pods; 3 node(s) had untolerated taint(s)", now)},
		},
		"other numbers are no transition": {
			list{unschedulable},
			jobOf(2, tasks{model.Pending: 2}), otherNumbers,
			list{withMessage(unschedulable, otherNumbers.Message)},
		},
		"another reason is": {
			list{unschedulable},
			jobOf(2, tasks{model.Pending: 2}), shut,
			list{condition(volcano.PodGroupUnschedulableType, "True", "QueueClosed", "queue \"q\" is Closed", now)},
		},
		"a gang that starts at once was never unschedulable": {
			nil, jobOf(2, tasks{model.Bound: 2}),
			model.Reason{},
			list{condition(volcano.PodGroupScheduled, "True", ready, "not all members of its minimum are bound yet", now)},
		},
		"a gang that starts in the end no longer is": {
			list{unschedulable},
			jobOf(2, tasks{model.Bound: 2}),
			model.Reason{},
			list{
				condition(volcano.PodGroupUnschedulableType, "False", ready, "", now),
				condition(volcano.PodGroupScheduled, "True", ready, "not all members of its minimum are bound yet", now),
			},
		},
		"what a gang started with is kept, and changes no times": {
			list{scheduled},
			startedWith(2, jobOf(2, tasks{model.Running: 2})),
			model.Reason{},
			list{condition(volcano.PodGroupScheduled, "True", ready, "started with a minimum of 2 tasks", earlier)},
		},
		"a gang that goes on running is as it was": {
			list{scheduled},
			jobOf(2, tasks{model.Running: 2}),
			model.Reason{},
			list{scheduled},
		},
		"a gang that lost a member and finds no room is no longer scheduled": {
			list{condition(volcano.PodGroupUnschedulableType, "False", ready, "", earlier), scheduled},
			jobOf(2, tasks{model.Running: 1, model.Pending: 1}), noRoom,
			list{
				condition(volcano.PodGroupUnschedulableType, "True", "NotEnoughResources", "no room for 2 of 2 pods", now),
				condition(volcano.PodGroupScheduled, "False", "NotEnoughResources", "", now),
			},
		},
		"one that is not scheduled for another reason stays so": {
			list{unschedulable, condition(volcano.PodGroupScheduled, "False", "NotEnoughResources", "", earlier)},
			jobOf(2, tasks{model.Running: 1, model.Pending: 1}), shut,
			list{
				condition(volcano.PodGroupUnschedulableType, "True", "QueueClosed", "queue \"q\" is Closed", now),
				condition(volcano.PodGroupScheduled, "False", "NotEnoughResources", "", earlier),
			},
		},
		"while the turn of a gang is on nothing is known": {
			list{unschedulable},
			jobOf(2, tasks{model.Allocated: 1, model.Pending: 1}),
			model.Reason{},
			list{unschedulable},
		},
		"surplus tasks that do not fit make no gang unschedulable": {
			nil, jobOf(2, tasks{model.Running: 2, model.Pending: 3}), noRoom,
			list{condition(volcano.PodGroupScheduled, "True", ready, "not all members of its minimum are bound yet", now)},
		},
		"nor do members that terminate and leave nothing to place": {
			list{scheduled},
			jobOf(2, tasks{model.Running: 1, model.Releasing: 1}), noPods,
			list{scheduled},
		},
		"a gang that holds its minimum in a queue that is gone is told so": {
			list{scheduled},
			jobOf(1, tasks{model.Bound: 1, model.Pending: 1}), noQueue,
			list{
				condition(volcano.PodGroupScheduled, "False", "QueueNotFound", "", now),
				condition(volcano.PodGroupUnschedulableType, "True", "QueueNotFound", "queue \"q\" does not exist", now),
			},
		},
		"a PodGroup without pods is neither": {
			nil, jobOf(0, nil), model.Reason{}, nil,
		},
		"conditions of others are left alone": {
			list{foreign},
			jobOf(2, tasks{model.Bound: 2}),
			model.Reason{},
			list{foreign, condition(volcano.PodGroupScheduled, "True", ready, "not all members of its minimum are bound yet", now)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := volcano.PodGroupStatus{Conditions: tc.before}
			kept := before.DeepCopy()
			got := status.Desired(tc.job, before, tc.reason, tc.reason, now, "this time").Conditions
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want,+got)\n%s", diff)
			}
			if diff := cmp.Diff(*kept, before); diff != "" {
				t.Errorf("the status given was changed (-before,+after)\n%s", diff)
			}
		})
	}
}
