// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

func TestPodsSayWhetherTheyMayBeEvicted(t *testing.T) {
	type facts struct{ Preemptable, Revocable bool }
	for name, tc := range map[string]struct {
		pod  []func(*corev1.Pod)
		want facts
	}{
		"a pod that says nothing may be evicted, and does not run on revocable nodes": {
			want: facts{Preemptable: true},
		},
		"one that says yes does run there": {
			pod:  []func(*corev1.Pod){annotated(model.PreemptableKey, "true")},
			want: facts{Preemptable: true, Revocable: true},
		},
		"one that says no": {pod: []func(*corev1.Pod){annotated(model.PreemptableKey, "false")}},
		"a label will do, for that": {
			pod: []func(*corev1.Pod){labelled(model.PreemptableKey, "false")},
		},
		"a label does not make it run on revocable nodes": {
			pod:  []func(*corev1.Pod){labelled(model.PreemptableKey, "true")},
			want: facts{Preemptable: true},
		},
		"the annotation counts before the label": {
			pod:  []func(*corev1.Pod){annotated(model.PreemptableKey, "true"), labelled(model.PreemptableKey, "false")},
			want: facts{Preemptable: true, Revocable: true},
		},
		"what cannot be read is a no": {pod: []func(*corev1.Pod){annotated(model.PreemptableKey, "maybe")}},
		"all revocable zones": {
			pod:  []func(*corev1.Pod){annotated(model.RevocableZoneKey, "*"), annotated(model.PreemptableKey, "false")},
			want: facts{Revocable: true},
		},
		"one revocable zone is none, whatever else it says": {
			pod:  []func(*corev1.Pod){annotated(model.RevocableZoneKey, "rz1"), annotated(model.PreemptableKey, "true")},
			want: facts{Preemptable: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			task := model.NewTask(newPod("p", tc.pod...))
			if diff := cmp.Diff(tc.want, facts{task.Preemptable(), task.Revocable()}); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
		})
	}
}

func scheduledAt(at time.Time, status corev1.ConditionStatus) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
			Type: corev1.PodScheduled, Status: status, LastTransitionTime: metav1.NewTime(at),
		})
	}
}

func TestCooldownBeginsWhenThePodWasScheduled(t *testing.T) {
	for name, tc := range map[string]struct {
		pod  []func(*corev1.Pod)
		want time.Time
	}{
		"no cooldown": {pod: []func(*corev1.Pod){running, scheduledAt(epoch, corev1.ConditionTrue)}},
		"a label": {
			pod:  []func(*corev1.Pod){running, scheduledAt(epoch, corev1.ConditionTrue), labelled(model.CooldownKey, "10m")},
			want: epoch.Add(10 * time.Minute),
		},
		"an annotation": {
			pod:  []func(*corev1.Pod){running, scheduledAt(epoch, corev1.ConditionTrue), annotated(model.CooldownKey, "10m")},
			want: epoch.Add(10 * time.Minute),
		},
		"the label first, even if it cannot be read": {
			pod: []func(*corev1.Pod){
				running, scheduledAt(epoch, corev1.ConditionTrue), labelled(model.CooldownKey, "long"), annotated(model.CooldownKey, "10m"),
			},
		},
		"a pod that is bound only": {
			pod: []func(*corev1.Pod){on("node-0"), scheduledAt(epoch, corev1.ConditionTrue), labelled(model.CooldownKey, "10m")},
		},
		"a pod of which nobody knows when": {
			pod: []func(*corev1.Pod){running, scheduledAt(epoch, corev1.ConditionFalse), labelled(model.CooldownKey, "10m")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := model.NewTask(newPod("p", tc.pod...)).CoolsUntil(); !got.Equal(tc.want) {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// The examples of reference section 4.10: five tasks.
func TestPodGroupsSayHowManyMayBeEvictedAtOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		annotations            map[string]string
		running, waiting, done int
		want                   int
	}{
		"one if it says nothing":                        {running: 5, want: 1},
		"30% of 5 are 2":                                {map[string]string{model.MaxUnavailableAnnotation: "30%"}, 5, 0, 0, 2},
		"50% of 5 are 3":                                {map[string]string{model.MaxUnavailableAnnotation: "50%"}, 5, 0, 0, 3},
		"a number":                                      {map[string]string{model.MaxUnavailableAnnotation: "3"}, 5, 0, 0, 3},
		"those that wait are missing already":           {map[string]string{model.MaxUnavailableAnnotation: "99%"}, 3, 2, 0, 3},
		"more than that are missing":                    {map[string]string{model.MaxUnavailableAnnotation: "1"}, 3, 2, 0, 0},
		"those that are done are not missing":           {map[string]string{model.MaxUnavailableAnnotation: "2"}, 3, 0, 2, 2},
		"three are to run":                              {map[string]string{model.MinAvailableAnnotation: "3"}, 5, 0, 0, 2},
		"30% are to run":                                {map[string]string{model.MinAvailableAnnotation: "30%"}, 5, 0, 0, 3},
		"fewer run than are to":                         {map[string]string{model.MinAvailableAnnotation: "3"}, 2, 3, 0, 0},
		"what is to run counts before what may be lost": {map[string]string{model.MinAvailableAnnotation: "4", model.MaxUnavailableAnnotation: "3"}, 5, 0, 0, 1},
		"what cannot be read says nothing":              {map[string]string{model.MinAvailableAnnotation: "most"}, 5, 0, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			pods := slices.Concat(members("a", tc.running, running), members("b", tc.waiting), members("c", tc.done, succeeded))
			job := jobOf(&model.Group{Object: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: tc.annotations}}}, pods)
			if got := job.EvictableAtOnce(); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

func TestIndexIsTheNumberOfAReplica(t *testing.T) {
	for name, want := range map[string]int{
		"train-worker-7": 7, "train-worker-12": 12, "worker-7": math.MaxInt, "train-worker": math.MaxInt, "train-worker-x": math.MaxInt, "a-b--1": 1, "": math.MaxInt,
	} {
		if got := model.NewTask(newPod(name)).Index(); got != want {
			t.Errorf("%q has index %d, want %d", name, got, want)
		}
	}
}

// TestSupposingIsWhatWouldBe compares a job that is supposed with one whose pods are as supposed.
func TestSupposingIsWhatWouldBe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var before, after []*corev1.Pod
		var again, placed []string
		for i := range rapid.IntRange(1, 6).Draw(t, "pods") {
			name := fmt.Sprintf("p-%d", i)
			options := []func(*corev1.Pod){
				in("train"), role(rapid.SampledFrom([]string{"ps", "worker"}).Draw(t, "role")),
				rapid.SampledFrom([]func(*corev1.Pod){bestEffort, asking("cpu", "1"), asking("cpu", "2", "memory", "1Gi")}).Draw(t, "asks"),
			}
			runs, turns := rapid.Bool().Draw(t, "runs"), rapid.Bool().Draw(t, "turns")
			state := map[bool][]func(*corev1.Pod){true: append(slices.Clone(options), running), false: options}
			before, after = append(before, newPod(name, state[runs]...)), append(after, newPod(name, state[runs != turns]...))
			switch {
			case turns && runs:
				again = append(again, name)
			case turns:
				placed = append(placed, name)
			}
		}
		group := &model.Group{MinMember: rapid.IntRange(0, 4).Draw(t, "min")}
		job, want := jobOf(group, before), jobOf(group, after)
		pick := func(names []string) (tasks []*model.Task) {
			for _, task := range job.Tasks {
				if slices.Contains(names, task.Pod.Name) {
					tasks = append(tasks, task)
				}
			}
			return tasks
		}
		untouched := job.Counts
		got := job.Supposing(model.Pending, pick(again)...).Supposing(model.Running, pick(placed)...)
		if diff := cmp.Diff(want.Counts, got.Counts); diff != "" {
			t.Fatalf("counts (-want,+got):\n%s", diff)
		}
		for _, role := range []string{"ps", "worker"} {
			if diff := cmp.Diff(want.Role(role), got.Role(role)); diff != "" {
				t.Fatalf("role %s (-want,+got):\n%s", role, diff)
			}
		}
		if !got.Usage.Allocated.Equal(want.Usage.Allocated) || !got.Usage.Requested.Equal(want.Usage.Requested) {
			t.Fatalf("usage %v, want %v", got.Usage, want.Usage)
		}
		if !got.Need().Equal(want.Need()) {
			t.Fatalf("needs %s, want %s", got.Need(), want.Need())
		}
		if job.Counts != untouched {
			t.Fatal("supposing changed the job")
		}
	})
}
