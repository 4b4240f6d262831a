// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// tally is every number that Counts answers.
type tally struct {
	Ready, Valid, Scheduled, Completed, Placeable, Total int
	BestEffort, Gated, ReleasingPlaced, Killed           int
}

func tallyOf(c model.Counts) tally {
	return tally{
		Ready: c.Ready(), Valid: c.Valid(), Scheduled: c.Scheduled(), Completed: c.Completed(), Placeable: c.Placeable(), Total: c.Total(),
		BestEffort: c.PendingBestEffort, Gated: c.PendingGated, ReleasingPlaced: c.ReleasingPlaced, Killed: c.Killed,
	}
}

// The sets of reference section 2.5: what one task in each state counts as.
func TestCountsOfOneTask(t *testing.T) {
	for name, tc := range map[string]struct {
		pod     []func(*corev1.Pod)
		assumed bool
		want    tally
	}{
		"a waiting task is valid and may be placed": {
			want: tally{Valid: 1, Placeable: 1, Total: 1},
		},
		"a waiting task that asks for nothing is known as best-effort": {
			pod:  []func(*corev1.Pod){bestEffort},
			want: tally{Valid: 1, Placeable: 1, Total: 1, BestEffort: 1},
		},
		"a gated task is valid and may not be placed": {
			pod:  []func(*corev1.Pod){gated},
			want: tally{Valid: 1, Total: 1, Gated: 1},
		},
		"a gated task is not counted as ready because it asks for nothing": {
			pod:  []func(*corev1.Pod){gated, bestEffort},
			want: tally{Valid: 1, Total: 1, Gated: 1},
		},
		"a reservation is ready, and scheduled only once the API server has it": {
			assumed: true,
			want:    tally{Ready: 1, Valid: 1, Total: 1},
		},
		"a bound task is ready and scheduled": {
			pod:  []func(*corev1.Pod){on("node-0")},
			want: tally{Ready: 1, Valid: 1, Scheduled: 1, Total: 1},
		},
		"a running best-effort task is ready once, not twice": {
			pod:  []func(*corev1.Pod){running, bestEffort},
			want: tally{Ready: 1, Valid: 1, Scheduled: 1, Total: 1},
		},
		"a task terminating on its node is neither ready nor valid": {
			pod:  []func(*corev1.Pod){running, terminating},
			want: tally{Total: 1, ReleasingPlaced: 1},
		},
		"a task deleted before it had a node counts as nothing": {
			pod:  []func(*corev1.Pod){terminating},
			want: tally{Total: 1},
		},
		"a task that succeeded stays ready": {
			pod:  []func(*corev1.Pod){succeeded},
			want: tally{Ready: 1, Valid: 1, Scheduled: 1, Completed: 1, Total: 1},
		},
		"a task that failed is scheduled, but not valid": {
			pod:  []func(*corev1.Pod){failed},
			want: tally{Scheduled: 1, Completed: 1, Total: 1},
		},
		"a task that failed because it was deleted is known as such": {
			pod:  []func(*corev1.Pod){failed, terminating},
			want: tally{Scheduled: 1, Completed: 1, Total: 1, Killed: 1},
		},
		"a task of which nothing is known counts as nothing": {
			pod:  []func(*corev1.Pod){on("node-0"), phase(corev1.PodUnknown)},
			want: tally{Total: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var assumed []types.UID
			if tc.assumed {
				assumed = []types.UID{"w-0"}
			}
			job := jobOf(&model.Group{MinMember: 1}, members("w", 1, append(tc.pod, role("worker"))...), assumed...)
			if diff := cmp.Diff(tc.want, tallyOf(job.Counts)); diff != "" {
				t.Errorf("counts of the job (-want,+got)\n%s", diff)
			}
			if diff := cmp.Diff([]model.RoleCounts{{Role: "worker", Counts: job.Counts}}, job.Roles); diff != "" {
				t.Errorf("counts of the role differ from those of the job (-want,+got)\n%s", diff)
			}
		})
	}
}

// verdict is what a job's counters say about it.
type verdict struct {
	// Ready is Volcano's, Started ours: best-effort tasks that wait make a job ready, but do not start it.
	Ready, Started, Partial bool
	Need                    model.Requirement
	// Blocked is the kind of reason, empty when the job may have a turn.
	Blocked model.ReasonKind
}

// The examples of reference section 2.5, (test) and (computed) as there, and those around them. Volcano's Pipelined
// tasks do not exist here: a reservation is Allocated from the start.
func TestReadiness(t *testing.T) {
	roles := map[string]int{"ps": 1, "worker": 3}
	mixed := slices.Concat(
		members("idle", 1, bestEffort), members("busy-idle", 1, bestEffort, running), members("wait", 1), members("run", 1, running))
	for name, tc := range map[string]struct {
		group   model.Group
		pods    []*corev1.Pod
		assumed []types.UID
		want    verdict
	}{
		"(test) a waiting best-effort task makes up a minimum of 3, and it starts nothing": {
			group: model.Group{MinMember: 3},
			pods:  mixed,
			want:  verdict{Ready: true, Partial: true, Need: model.Requirement{Gang: true, Tasks: 0}},
		},
		"(test) with a minimum of 4 the same tasks need one more": {
			group: model.Group{MinMember: 4},
			pods:  mixed,
			want:  verdict{Partial: true, Need: model.Requirement{Gang: true, Tasks: 1}},
		},
		"(test) with a minimum of 5 the same tasks are too few": {
			group: model.Group{MinMember: 5},
			pods:  mixed,
			want:  verdict{Partial: true, Need: model.Requirement{Gang: true, Tasks: 2}, Blocked: model.NotEnoughTasks},
		},
		"(computed) role minimums above minMember are ignored: 3 workers suffice": {
			group: model.Group{MinMember: 3, MinTaskMember: roles},
			pods:  members("worker", 3, role("worker"), running),
			want:  verdict{Ready: true, Started: true, Need: model.Requirement{Tasks: 1}},
		},
		"(computed) role minimums of minMember in sum hold: 4 workers are no ps": {
			group: model.Group{MinMember: 4, MinTaskMember: roles},
			pods:  members("worker", 4, role("worker"), running),
			want: verdict{
				Partial: true, Need: model.Requirement{Gang: true, Tasks: 1, Roles: map[string]int{"ps": 1}},
				Blocked: model.NotEnoughPodsOfTask,
			},
		},
		"(computed) 1 ps and 3 workers meet the same minimums": {
			group: model.Group{MinMember: 4, MinTaskMember: roles},
			pods:  slices.Concat(members("ps", 1, role("ps"), running), members("worker", 3, role("worker"), running)),
			want:  verdict{Ready: true, Started: true, Need: model.Requirement{Tasks: 1}},
		},
		"(computed) one running, one failed of 2: not ready, and too few are valid": {
			group: model.Group{MinMember: 2},
			pods:  slices.Concat(members("run", 1, running), members("bad", 1, failed)),
			want:  verdict{Partial: true, Need: model.Requirement{Gang: true, Tasks: 1}, Blocked: model.NotEnoughTasks},
		},
		"nothing placed: the whole minimum is needed, not more": {
			group: model.Group{MinMember: 3},
			pods:  members("wait", 5),
			want:  verdict{Need: model.Requirement{Gang: true, Tasks: 3}},
		},
		"a minimum above the role minimums needs the rest of any role": {
			group: model.Group{MinMember: 5, MinTaskMember: map[string]int{"ps": 1, "worker": 2}},
			pods:  slices.Concat(members("ps", 2, role("ps")), members("worker", 4, role("worker"))),
			want:  verdict{Need: model.Requirement{Gang: true, Tasks: 5, Roles: map[string]int{"ps": 1, "worker": 2}}},
		},
		"the minimum is reached without a ps: one more is needed, and it must be a ps": {
			group: model.Group{MinMember: 4, MinTaskMember: roles},
			pods:  slices.Concat(members("worker", 5, role("worker"), running), members("ps", 1, role("ps"))),
			want:  verdict{Partial: true, Need: model.Requirement{Gang: true, Tasks: 1, Roles: map[string]int{"ps": 1}}},
		},
		"a best-effort ps that waits counts toward its role, and is not placed for it": {
			group: model.Group{MinMember: 4, MinTaskMember: roles},
			pods:  slices.Concat(members("ps", 1, role("ps"), bestEffort), members("worker", 3, role("worker"))),
			want:  verdict{Need: model.Requirement{Gang: true, Tasks: 3, Roles: map[string]int{"worker": 3}}},
		},
		"it makes the role ready beside members that run, and does not start it": {
			group: model.Group{MinMember: 4, MinTaskMember: roles},
			pods:  slices.Concat(members("ps", 1, role("ps"), bestEffort), members("worker", 4, role("worker"), running)),
			want:  verdict{Ready: true, Partial: true, Need: model.Requirement{Gang: true, Tasks: 0}},
		},
		"a gang of best-effort tasks only has nothing to promise": {
			group: model.Group{MinMember: 2},
			pods:  members("idle", 2, bestEffort),
			want:  verdict{Ready: true, Need: model.Requirement{Gang: true, Tasks: 0}},
		},
		"tasks of other roles count toward minMember": {
			group: model.Group{MinMember: 4, MinTaskMember: map[string]int{"ps": 1}},
			pods:  slices.Concat(members("ps", 1, role("ps"), running), members("any", 3, running)),
			want:  verdict{Ready: true, Started: true, Need: model.Requirement{Tasks: 1}},
		},
		"reservations start the gang before they are confirmed": {
			group:   model.Group{MinMember: 2},
			pods:    members("wait", 3),
			assumed: []types.UID{"wait-0", "wait-1"},
			want:    verdict{Ready: true, Started: true, Need: model.Requirement{Tasks: 1}},
		},
		"some reservations are a part of a gang": {
			group:   model.Group{MinMember: 3},
			pods:    members("wait", 3),
			assumed: []types.UID{"wait-0"},
			want:    verdict{Partial: true, Need: model.Requirement{Gang: true, Tasks: 2}},
		},
		"members that succeeded keep the gang started while the last one waits": {
			group: model.Group{MinMember: 2},
			pods:  slices.Concat(members("done", 2, succeeded), members("wait", 1)),
			want:  verdict{Ready: true, Started: true, Need: model.Requirement{Tasks: 1}},
		},
		"members that succeeded hold no node and so are no part of a gang to complete": {
			group: model.Group{MinMember: 3},
			pods:  slices.Concat(members("done", 2, succeeded), members("wait", 1)),
			want:  verdict{Need: model.Requirement{Gang: true, Tasks: 1}},
		},
		"members that terminate have to be replaced": {
			group: model.Group{MinMember: 2},
			pods:  slices.Concat(members("go", 1, running, terminating), members("run", 1, running), members("wait", 1)),
			want:  verdict{Partial: true, Need: model.Requirement{Gang: true, Tasks: 1}},
		},
		"minMember 0: each task on its own": {
			group: model.Group{MinMember: 0},
			pods:  members("wait", 3),
			want:  verdict{Ready: true, Started: true, Need: model.Requirement{Tasks: 1}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			job := jobOf(&tc.group, tc.pods, tc.assumed...)
			got := verdict{
				Ready: job.Ready(), Started: job.Started(), Partial: job.Partial(), Need: job.Requirement(), Blocked: job.Blocked().Kind,
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want,+got)\n%s", diff)
			}
		})
	}
}

func TestBlockedSaysWhatToChange(t *testing.T) {
	for name, tc := range map[string]struct {
		group *model.Group
		pods  []*corev1.Pod
		want  model.Reason
	}{
		"enough pods block nothing": {
			group: &model.Group{MinMember: 2},
			pods:  members("wait", 2),
		},
		"a PodGroup that does not exist": {
			pods: members("wait", 2),
			want: model.Reason{
				Kind:    model.PodGroupNotFound,
				Message: "PodGroup ns/train does not exist: create it, or remove the group name from the pod",
			},
		},
		"a negative minimum": {
			group: &model.Group{MinMember: -1},
			pods:  members("wait", 2),
			want: model.Reason{
				Kind: model.InvalidPodGroup, Subject: "spec.minMember",
				Message: "spec.minMember of PodGroup ns/train is -1: set it to 0 or more",
			},
		},
		"a negative minimum of a role": {
			group: &model.Group{MinMember: 2, MinTaskMember: map[string]int{"worker": -2, "ps": 1}},
			pods:  members("wait", 2),
			want: model.Reason{
				Kind: model.InvalidPodGroup, Subject: "spec.minTaskMember",
				Message: "spec.minTaskMember[worker] of PodGroup ns/train is -2: set it to 0 or more",
			},
		},
		"too few pods": {
			group: &model.Group{MinMember: 3},
			pods:  members("wait", 2),
			want: model.Reason{
				Kind:    model.NotEnoughTasks,
				Message: "2 of 3 pods exist: create the missing ones, or lower spec.minMember",
			},
		},
		"no pods at all": {
			group: &model.Group{MinMember: 1},
			want: model.Reason{
				Kind:    model.NotEnoughTasks,
				Message: "0 of 1 pods exist: create the missing ones, or lower spec.minMember",
			},
		},
		"failed and terminating pods do not count": {
			group: &model.Group{MinMember: 3},
			pods:  slices.Concat(members("wait", 1), members("bad", 1, failed), members("go", 1, running, terminating)),
			want: model.Reason{
				Kind:    model.NotEnoughTasks,
				Message: "1 of 3 pods exist: create the missing ones, or lower spec.minMember",
			},
		},
		"too few pods of a role, named before the total is": {
			group: &model.Group{MinMember: 3, MinTaskMember: map[string]int{"ps": 1, "worker": 2}},
			pods:  members("worker", 2, role("worker")),
			want: model.Reason{
				Kind: model.NotEnoughPodsOfTask, Subject: "ps",
				Message: `0 of 1 pods of task "ps" exist: create pods with volcano.sh/task-spec=ps, or lower spec.minTaskMember`,
			},
		},
		"the first of several short roles, in the order of their names": {
			group: &model.Group{MinMember: 4, MinTaskMember: map[string]int{"c": 1, "b": 2, "a": 1}},
			pods:  slices.Concat(members("a", 1, role("a")), members("b", 1, role("b"))),
			want: model.Reason{
				Kind: model.NotEnoughPodsOfTask, Subject: "b",
				Message: `1 of 2 pods of task "b" exist: create pods with volcano.sh/task-spec=b, or lower spec.minTaskMember`,
			},
		},
		"role minimums above minMember are not asked for": {
			group: &model.Group{MinMember: 2, MinTaskMember: map[string]int{"ps": 1, "worker": 2}},
			pods:  members("worker", 2, role("worker")),
		},
		"gates that leave too few": {
			group: &model.Group{MinMember: 2},
			pods:  slices.Concat(members("wait", 1), members("gated", 2, gated)),
			want:  model.Reason{Kind: model.SchedulingGated, Message: "2 of 3 pods carry scheduling gates"},
		},
		"gates that leave a role short": {
			group: &model.Group{MinMember: 2, MinTaskMember: map[string]int{"ps": 1}},
			pods:  slices.Concat(members("ps", 1, role("ps"), gated), members("worker", 2, role("worker"))),
			want:  model.Reason{Kind: model.SchedulingGated, Message: "1 of 3 pods carry scheduling gates"},
		},
		"gates on surplus pods block nothing": {
			group: &model.Group{MinMember: 2},
			pods:  slices.Concat(members("wait", 2), members("gated", 1, gated)),
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, jobOf(tc.group, tc.pods).Blocked()); diff != "" {
				t.Errorf("(-want,+got)\n%s", diff)
			}
		})
	}
}

func TestAJobOfOneIsBlockedByItsGatesOnly(t *testing.T) {
	alone := model.JobKey{Source: model.FromPod, Namespace: "ns", Name: "alone"}
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		want model.Reason
	}{
		"without gates": {pod: newPod("alone")},
		"with a gate": {
			pod:  newPod("alone", gated),
			want: model.Reason{Kind: model.SchedulingGated, Message: "1 of 1 pods carry scheduling gates"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			state := model.NewState()
			state.AddScheduler(batch)
			state.UpsertPod(tc.pod)
			job := state.Job(alone)
			if diff := cmp.Diff(tc.want, job.Blocked()); diff != "" {
				t.Errorf("(-want,+got)\n%s", diff)
			}
			if diff := cmp.Diff(model.Requirement{Gang: true, Tasks: 1}, job.Requirement()); diff != "" {
				t.Errorf("requirement (-want,+got)\n%s", diff)
			}
		})
	}
}
