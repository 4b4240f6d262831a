// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// workers is a policy for pods with the label role=w, numbered by the label "part".
func workers(size, least int) model.SubGroupPolicy {
	return model.SubGroupPolicy{
		Name: "w", Size: size, Min: least, Keys: []string{"part"}, Selector: labels.SelectorFromSet(labels.Set{"role": "w"}),
	}
}

// ofPart numbers a pod, and says which role it has.
func ofPart(role, part string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels = map[string]string{"role": role, "part": part} }
}

func batchState() *model.State {
	s := model.NewState()
	s.AddScheduler(batch)
	return s
}

// divided is a job of four pods in each of some parts, of which so many run, and then others.
func divided(g *model.Group, running map[string]int, parts ...string) (s *model.State, job *model.Job) {
	s = batchState()
	s.UpsertGroup(train, g)
	for _, part := range parts {
		for i, p := range members("p"+part, 4, ofPart("w", part)) {
			if i < running[part] {
				running := *p
				running.Spec.NodeName, running.Status.Phase = "n", corev1.PodRunning
				p = &running
			}
			s.UpsertPod(p)
		}
	}
	job = s.Job(train)
	return s, job
}

func TestWhatADividedJobNeeds(t *testing.T) {
	for name, tc := range map[string]struct {
		least, size, min int
		running          map[string]int
		parts            []string
		started          bool
		need             model.Requirement
		blocked          string
	}{
		"two of three subgroups": {
			least: 8, size: 4, min: 2, parts: []string{"0", "1", "2"}, need: model.Requirement{Gang: true, Tasks: 8, SubGroups: []int{2}},
		},
		"a minimum of tasks only": {
			least: 6, size: 4, parts: []string{"0", "1"}, need: model.Requirement{Gang: true, Tasks: 6},
		},
		"subgroups that come to more than the minimum": {
			least: 1, size: 4, min: 2, parts: []string{"0", "1"}, need: model.Requirement{Gang: true, Tasks: 8, SubGroups: []int{2}},
		},
		"one of two runs": {
			least: 8, size: 4, min: 2, running: map[string]int{"1": 4}, parts: []string{"0", "1"}, need: model.Requirement{Gang: true, Tasks: 4, SubGroups: []int{1}},
		},
		"the cheapest ones": {
			least: 2, size: 4, min: 2, running: map[string]int{"0": 2, "2": 1}, parts: []string{"0", "1", "2"}, need: model.Requirement{Gang: true, Tasks: 5, SubGroups: []int{2}},
		},
		"all that it asked for": {
			least: 8, size: 4, min: 2, running: map[string]int{"0": 4, "1": 4}, parts: []string{"0", "1", "2"}, started: true, need: model.Requirement{Tasks: 4},
		},
		"what a subgroup lost": {
			least: 4, size: 4, min: 1, running: map[string]int{"0": 4, "1": 3}, parts: []string{"0", "1", "2"}, started: true, need: model.Requirement{Tasks: 1},
		},
		"one that is larger than its size": {
			least: 2, size: 2, min: 1, running: map[string]int{"0": 2}, parts: []string{"0"}, started: true, need: model.Requirement{Tasks: 1},
		},
		"too few pods": {
			least: 8, size: 4, min: 3, parts: []string{"0", "1"}, need: model.Requirement{Gang: true, Tasks: 12, SubGroups: []int{3}},
			blocked: `2 of 3 subgroups of "w" have 4 pods: create the missing ones, or lower its minSubGroups in spec.subGroupPolicy`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, job := divided(&model.Group{UID: "g", MinMember: tc.least, SubGroups: []model.SubGroupPolicy{workers(tc.size, tc.min)}}, tc.running, tc.parts...)
			if job.Started() != tc.started {
				t.Errorf("started is %v, want %v", job.Started(), tc.started)
			}
			if diff := cmp.Diff(tc.need, job.Requirement()); diff != "" {
				t.Errorf("the requirement is (-want +got):\n%s", diff)
			}
			if got := job.Blocked().Message; got != tc.blocked {
				t.Errorf("blocked by %q, want %q", got, tc.blocked)
			}
		})
	}
}

// TestAPolicyThatCannotBeMeantKeepsItsGangWaiting, and says what to change.
func TestAPolicyThatCannotBeMeantKeepsItsGangWaiting(t *testing.T) {
	bad := workers(4, 1)
	bad.Selector, bad.Problem = nil, "spec.subGroupPolicy[0].labelSelector cannot be read: correct it"
	_, job := divided(&model.Group{UID: "g", MinMember: 4, SubGroups: []model.SubGroupPolicy{bad}}, nil, "0")
	want := model.Reason{Kind: model.InvalidPodGroup, Subject: "spec.subGroupPolicy", Message: bad.Problem}
	if got := job.Blocked(); got != want {
		t.Errorf("blocked by %+v, want %+v", got, want)
	}
}

func TestWhichSubGroupAPodIsIn(t *testing.T) {
	policies := []model.SubGroupPolicy{
		{Name: "all", Size: 1, Selector: labels.SelectorFromSet(labels.Set{"role": "all"})},
		{Name: "two", Size: 1, Keys: []string{"a", "b"}, Selector: labels.SelectorFromSet(labels.Set{"role": "two"})},
		{Name: "rest", Size: 1, Keys: []string{"a"}, Selector: labels.Everything()},
	}
	for name, tc := range map[string]struct {
		labels map[string]string
		want   string
	}{
		"without keys all are in one":      {map[string]string{"role": "all", "a": "1"}, "all"},
		"by two keys":                      {map[string]string{"role": "two", "a": "1", "b": "x"}, "two/1/x"},
		"one key is missing: the next one": {map[string]string{"role": "two", "a": "1"}, "rest/1"},
		"a key without a value":            {map[string]string{"role": "two", "a": "1", "b": ""}, "rest/1"},
		"in none":                          {map[string]string{"role": "two"}, ""},
		"without labels":                   {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := batchState()
			s.UpsertGroup(train, &model.Group{UID: "g", MinMember: 1, SubGroups: policies})
			for _, p := range members("p", 1, func(p *corev1.Pod) { p.Labels = tc.labels }) {
				s.UpsertPod(p)
			}
			if got := s.Job(train).Parts()[0].Name; got != tc.want {
				t.Errorf("it is in %q, want %q", got, tc.want)
			}
		})
	}
}

// TestPartsComeInTheOrderInWhichTheyAreTried: numbers count as numbers, and what has begun comes first.
func TestPartsComeInTheOrderInWhichTheyAreTried(t *testing.T) {
	s, _ := divided(&model.Group{UID: "g", MinMember: 8, SubGroups: []model.SubGroupPolicy{workers(4, 2)}}, map[string]int{"7": 1, "9": 4}, "10", "x", "9", "7", "2")
	for _, p := range members("loose", 1) {
		s.UpsertPod(p)
	}
	var names []string
	for _, part := range s.Job(train).Parts() {
		names = append(names, fmt.Sprintf("%s %d", part.Name, part.Lacks()))
	}
	if got, want := strings.Join(names, ", "), "w/7 3, w/2 4, w/10 4, w/x 4,  0"; got != want {
		t.Errorf("the parts are %q, want %q", got, want)
	}
}

func TestWhatIsLeftOfADividedJob(t *testing.T) {
	for name, tc := range map[string]struct {
		// min is how many of three subgroups are to be whole, of which one has two tasks more than its size.
		min  int
		gone map[string]int
		more string
		want model.Lack
	}{
		"one of a subgroup":                    {min: 2, more: "0", want: model.LacksPart},
		"one of a subgroup that is needed":     {min: 3, more: "0", want: model.LacksSubGroups},
		"the last one of a subgroup":           {min: 2, gone: map[string]int{"0": 3}, more: "0"},
		"all of one":                           {min: 2, gone: map[string]int{"0": 4}},
		"all of one, and a task of the other":  {min: 1, gone: map[string]int{"0": 4}, more: "1", want: model.LacksPart},
		"nobody":                               {min: 3},
		"a part of one, gone already":          {min: 2, gone: map[string]int{"0": 1}, want: model.LacksPart},
		"all of both of which one is to stay":  {min: 2, gone: map[string]int{"0": 4, "1": 4}, want: model.LacksSubGroups},
		"a task that is in none":               {min: 3, more: "none"},
		"one of those of whom there are more":  {min: 3, more: "large"},
		"more than there are beyond its size":  {min: 2, gone: map[string]int{"large": 2}, more: "large", want: model.LacksPart},
		"all of those of whom there were more": {min: 2, gone: map[string]int{"large": 6}},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := divided(&model.Group{UID: "g", SubGroups: []model.SubGroupPolicy{workers(4, tc.min)}}, map[string]int{"0": 4, "1": 4}, "0", "1")
			for _, p := range members("l", 6, ofPart("w", "large"), running) {
				s.UpsertPod(p)
			}
			for _, p := range members("n", 1, ofPart("none", "none"), running) {
				s.UpsertPod(p)
			}
			job := s.Job(train)
			left := job.Left()
			task := func(part string) *model.Task {
				return job.Tasks[slices.IndexFunc(job.Tasks, func(t *model.Task) bool { return t.Pod.Labels["part"] == part })]
			}
			for part, n := range tc.gone {
				left.Count(task(part), -n)
			}
			var more *model.Task
			n := 0
			if tc.more != "" {
				more, n = task(tc.more), 1
			}
			if got := left.Without(more, n); got != tc.want {
				t.Errorf("it would lack %d, want %d", got, tc.want)
			}
		})
	}
}

// TestSubGroupsAreCountedAsThePodsAre: whatever comes and goes, the counts of subgroups are those of the job made anew.
func TestSubGroupsAreCountedAsThePodsAre(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := batchState()
		pods := map[string]*corev1.Pod{}
		var group *model.Group
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			name := fmt.Sprintf("p-%d", rapid.IntRange(0, 5).Draw(rt, "pod"))
			switch rapid.SampledFrom([]string{"put", "put", "put", "delete", "group", "no group"}).Draw(rt, "step") {
			case "put":
				p := members(name, 1, ofPart(rapid.SampledFrom([]string{"w", "x"}).Draw(rt, "role"), rapid.SampledFrom([]string{"", "0", "1"}).Draw(rt, "part")))[0]
				if rapid.Bool().Draw(rt, "runs") {
					p.Spec.NodeName, p.Status.Phase = "n", corev1.PodRunning
				}
				pods[name] = p
				s.UpsertPod(p)
			case "delete":
				if p := pods[name]; p != nil {
					s.DeletePod(p.UID)
					delete(pods, name)
				}
			case "group":
				group = &model.Group{UID: "g", MinMember: 1, SubGroups: []model.SubGroupPolicy{workers(rapid.IntRange(1, 3).Draw(rt, "size"), 0)}}
				switch policy := &group.SubGroups[0]; rapid.SampledFrom([]string{"as it is", "none", "unreadable", "all", "by role"}).Draw(rt, "policy") {
				case "none":
					group.SubGroups = nil
				case "unreadable":
					policy.Selector = nil
				case "all":
					policy.Selector = labels.Everything()
				case "by role":
					policy.Keys = []string{"role"}
				}
				s.UpsertGroup(train, group)
			case "no group":
				group = nil
				s.DeleteGroup(train)
			}
		}
		fresh := batchState()
		if group != nil {
			fresh.UpsertGroup(train, group)
		}
		for _, p := range pods {
			fresh.UpsertPod(p)
		}
		got, want := s.Job(train), fresh.Job(train)
		if got == nil || want == nil {
			if got != want {
				rt.Fatalf("the job is %v, want %v", got, want)
			}
			return
		}
		if diff := cmp.Diff(want.SubGroups, got.SubGroups, cmpopts.EquateEmpty()); diff != "" {
			rt.Fatalf("the subgroups are (-want +got):\n%s", diff)
		}
	})
}

func TestAStartWithSubGroupsIsRead(t *testing.T) {
	for _, want := range []model.Start{
		{Tasks: 8, SubGroups: map[string]int{"w": 2}},
		{Tasks: 9, Roles: map[string]int{"ps": 1}, SubGroups: map[string]int{"w": 2, "x": 1}},
	} {
		if diff := cmp.Diff(want, model.ParseStart(want.String())); diff != "" {
			t.Errorf("%q is read as (-want +got):\n%s", want.String(), diff)
		}
	}
}

// TestASubGroupThatIsLostBreaksItsGang, unless the gang was started with fewer.
func TestASubGroupThatIsLostBreaksItsGang(t *testing.T) {
	s, job := divided(&model.Group{UID: "g", MinMember: 4, SubGroups: []model.SubGroupPolicy{workers(4, 2)}}, map[string]int{"0": 4, "1": 4}, "0", "1")
	if job.Partial() || len(job.Start.SubGroups) != 1 {
		t.Fatalf("a whole gang is partial (%v), or did not start with two subgroups: %+v", job.Partial(), job.Start)
	}
	s.UpsertGroup(train, &model.Group{UID: "g", MinMember: 4, SubGroups: []model.SubGroupPolicy{workers(4, 3)}})
	if job := s.Job(train); job.Partial() || job.Started() {
		t.Errorf("with a minimum that was raised it is partial (%v) or has started (%v)", job.Partial(), job.Started())
	}
	s.UpsertGroup(train, &model.Group{UID: "g", MinMember: 4, SubGroups: []model.SubGroupPolicy{workers(5, 2)}})
	if job := s.Job(train); job.Partial() {
		t.Error("with a size that was raised it is partial")
	}
	s.UpsertGroup(train, &model.Group{UID: "g", MinMember: 4, SubGroups: []model.SubGroupPolicy{workers(4, 2)}})
	s.DeletePod(job.Tasks[0].UID)
	if job := s.Job(train); !job.Partial() {
		t.Error("with a subgroup less it is not partial")
	}
}
