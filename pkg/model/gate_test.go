// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// atGate puts a pod before the gate of its queue, and the others that are named.
func atGate(others ...string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		for _, name := range append(others, model.QueueGate) {
			p.Spec.SchedulingGates = append(p.Spec.SchedulingGates, corev1.PodSchedulingGate{Name: name})
		}
	}
}

func TestWhoIsLetThroughTheGateNext(t *testing.T) {
	gang := func(least int) *model.Group { return &model.Group{MinMember: least} }
	master := role("master")
	ranked := annotated(model.TaskPriorityAnnotation, "9")
	for name, tc := range map[string]struct {
		group *model.Group
		pods  []*corev1.Pod
		want  []types.UID
	}{
		"what a gang lacks, together":       {gang(3), members("w", 4, atGate()), []types.UID{"w-0", "w-1", "w-2"}},
		"those of higher priority first":    {gang(1), append(members("a", 1, atGate()), members("w", 2, atGate(), ranked)...), []types.UID{"w-0"}},
		"nobody while pods are missing":     {gang(3), members("w", 2, atGate()), nil},
		"nobody while other gates are shut": {gang(3), append(members("a", 2, atGate()), members("x", 1, atGate("other"))...), nil},
		"only for those that are missing":   {gang(3), append(members("r", 2, running), members("w", 3, atGate())...), []types.UID{"w-0"}},
		"with those that have no gate":      {gang(3), append(members("f", 2), members("w", 3, atGate())...), []types.UID{"w-0"}},
		"one more of a gang that has started": {
			gang(2), append(members("r", 2, running), members("w", 3, atGate())...), []types.UID{"w-0"},
		},
		"what a role needs, and no more than the minimum": {
			&model.Group{MinMember: 3, MinTaskMember: map[string]int{"master": 1}},
			append(members("a", 4, atGate()), members("m", 1, atGate(), master)...),
			[]types.UID{"a-0", "a-1", "m-0"},
		},
		"whole subgroups": {
			&model.Group{MinMember: 4, SubGroups: []model.SubGroupPolicy{workers(2, 2)}},
			slices.Concat(members("a", 1, atGate(), ofPart("w", "0")), members("b", 2, atGate(), ofPart("w", "1")), members("c", 2, atGate(), ofPart("w", "2"))),
			[]types.UID{"b-0", "b-1", "c-0", "c-1"},
		},
		"of a gang that has started a whole subgroup": {
			&model.Group{MinMember: 2, SubGroups: []model.SubGroupPolicy{workers(2, 1)}},
			slices.Concat(members("a", 2, running, ofPart("w", "0")), members("b", 2, atGate(), ofPart("w", "1")), members("c", 1, atGate(), ofPart("w", "2"))),
			[]types.UID{"b-0", "b-1"},
		},
		"of subgroups that cannot be whole nobody": {
			&model.Group{MinMember: 2, SubGroups: []model.SubGroupPolicy{workers(2, 1)}},
			slices.Concat(members("a", 2, running, ofPart("w", "0")), members("c", 1, atGate(), ofPart("w", "2"))), nil,
		},
		"what a subgroup lacks that has begun": {
			&model.Group{MinMember: 0, SubGroups: []model.SubGroupPolicy{workers(2, 0)}},
			slices.Concat(members("a", 2, atGate(), ofPart("w", "0")), members("b", 1, atGate(), ofPart("w", "1")), members("c", 1, ofPart("w", "1"))),
			[]types.UID{"b-0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := batchState()
			s.UpsertGroup(train, tc.group)
			for _, p := range tc.pods {
				s.UpsertPod(p)
			}
			var got []types.UID
			for _, task := range s.Job(train).NextThroughGate() {
				got = append(got, task.UID)
			}
			slices.Sort(got)
			if !slices.Equal(got, tc.want) {
				t.Errorf("let through next are %v, want %v", got, tc.want)
			}
		})
	}
}

// TestClaimsOfThoseLetThrough follows a pod through the gate: what it asks for is kept from when it is let through until it has a node, and
// is given back with it, whatever news of it comes in between.
func TestClaimsOfThoseLetThrough(t *testing.T) {
	pod := func(options ...func(*corev1.Pod)) *corev1.Pod {
		return newPod("w", append([]func(*corev1.Pod){in("train"), asking("cpu", "2")}, options...)...)
	}
	through := annotated(model.QueueAdmittedAnnotation, "true")
	s := batchState()
	s.UpsertGroup(train, &model.Group{MinMember: 1})
	wants := func(when string, cpu int64, placeable int) {
		t.Helper()
		job := s.Job(train)
		if job == nil {
			job = &model.Job{}
		}
		if got := job.Usage.Claimed.Get(corev1.ResourceCPU); got != cpu || job.Counts.Placeable() != placeable {
			t.Errorf("%s: claims %d of CPU and %d may be placed, want %d and %d", when, got, job.Counts.Placeable(), cpu, placeable)
		}
	}
	s.UpsertPod(pod(atGate()))
	wants("before the gate", 0, 0)
	s.LetThrough("w", "unknown")
	wants("let through", 2000, 0)
	s.UpsertPod(pod(atGate(), labelled("news", "1")))
	wants("news of it while the gate is there", 2000, 0)
	s.HoldBack("w")
	wants("held back", 0, 0)
	s.LetThrough("w")
	s.UpsertPod(pod(through))
	wants("the gate is gone", 2000, 1)
	s.HoldBack("w")
	wants("too late to be held back", 2000, 1)
	s.Assume("w", "node-0")
	wants("it has a node", 0, 0)
	s.Forget("w")
	wants("it has lost the node", 2000, 1)
	s.Pipeline([]model.Nomination{{UID: "w", Node: "node-0"}}, nil)
	wants("room is kept for it by evictions", 0, 1)
	s.ClearNominations("w")
	s.DeletePod("w")
	wants("it is gone", 0, 0)
	s.UpsertPod(pod(through))
	wants("seen by a scheduler that takes over", 2000, 1)
	s.UpsertPod(pod(through, terminating))
	wants("it terminates", 0, 0)
}

// BenchmarkNextThroughGate asks who of a gang of 1,000 in subgroups of 8 is let through.
func BenchmarkNextThroughGate(b *testing.B) {
	s := batchState()
	s.UpsertGroup(train, &model.Group{MinMember: 1000, SubGroups: []model.SubGroupPolicy{workers(8, 125)}})
	for i := range 125 {
		for _, p := range members(fmt.Sprintf("p%d", i), 8, atGate(), ofPart("w", fmt.Sprint(i))) {
			s.UpsertPod(p)
		}
	}
	job := s.Job(train)
	for b.Loop() {
		if n := len(job.NextThroughGate()); n != 1000 {
			b.Fatal(n)
		}
	}
}
