// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// A gang is broken when it holds fewer nodes than it started with. A minimum that is raised breaks none: its owner asks for
// more, which is no reason to go before all queues.
func TestARaisedMinimumIsNoBrokenGang(t *testing.T) {
	type steps = []func(*model.State)
	least := func(n int) func(*model.State) {
		return func(s *model.State) { s.UpsertGroup(train, &model.Group{UID: "u", MinMember: n}) }
	}
	roles := func(n int, of map[string]int) func(*model.State) {
		return func(s *model.State) { s.UpsertGroup(train, &model.Group{UID: "u", MinMember: n, MinTaskMember: of}) }
	}
	// again is the PodGroup as a process finds it that is started anew.
	again := func(n int, start model.Start) func(*model.State) {
		return func(s *model.State) { s.UpsertGroup(train, &model.Group{UID: "u", MinMember: n, Start: start}) }
	}
	pods := func(prefix string, n int, options ...func(*corev1.Pod)) func(*model.State) {
		return func(s *model.State) {
			for _, p := range members(prefix, n, options...) {
				s.UpsertPod(p)
			}
		}
	}
	gone := func(prefix string, n int) func(*model.State) {
		return func(s *model.State) {
			for _, p := range members(prefix, n) {
				s.DeletePod(p.UID)
			}
		}
	}
	for name, tc := range map[string]struct {
		steps   steps
		partial bool
		need    model.Requirement
	}{
		"never whole: half of it was bound": {
			steps{least(4), pods("w", 4), pods("w", 2, running)}, true, model.Requirement{Gang: true, Tasks: 2},
		},
		"whole": {
			steps{least(2), pods("w", 2, running)}, false, model.Requirement{Tasks: 1},
		},
		"raised from 1 to 9 while one member runs": {
			steps{least(1), pods("w", 1, running), pods("x", 8), least(9)}, false, model.Requirement{Gang: true, Tasks: 8},
		},
		"raised from no minimum at all": {
			steps{least(0), pods("w", 2, running), pods("x", 7), least(9)}, false, model.Requirement{Gang: true, Tasks: 7},
		},
		"raised, and then below what it started with": {
			steps{least(2), pods("w", 2, running), pods("x", 7), least(9), gone("w", 1)}, true, model.Requirement{Gang: true, Tasks: 1},
		},
		"lost a member": {
			steps{least(3), pods("w", 3, running), gone("w", 1)}, true, model.Requirement{Gang: true, Tasks: 1},
		},
		"lost a member, and less is asked for since": {
			steps{least(3), pods("w", 3, running), gone("w", 1), least(2)}, false, model.Requirement{Tasks: 1},
		},
		"lost all members: what comes now is a new gang": {
			steps{least(1), pods("w", 2, running), gone("w", 2), least(4), pods("x", 4), pods("x", 2, running)}, true, model.Requirement{Gang: true, Tasks: 2},
		},
		"members that succeeded count as what it started with": {
			steps{least(2), pods("w", 1, running), pods("d", 1, succeeded), pods("x", 7), least(9)}, false, model.Requirement{Gang: true, Tasks: 7},
		},
		"a role's minimum is raised": {
			steps{
				roles(2, map[string]int{"ps": 1, "worker": 1}), pods("p", 1, running, role("ps")), pods("w", 1, running, role("worker")),
				roles(4, map[string]int{"ps": 1, "worker": 3}),
			}, false, model.Requirement{Gang: true, Tasks: 2, Roles: map[string]int{"worker": 2}},
		},
		"a role is below what it started with": {
			steps{
				roles(2, map[string]int{"ps": 1, "worker": 1}), pods("p", 1, running, role("ps")), pods("w", 3, running, role("worker")), gone("p", 1),
			}, true, model.Requirement{Gang: true, Tasks: 1, Roles: map[string]int{"ps": 1}},
		},
		"raised before this process was started": {
			steps{pods("w", 1, running), again(9, model.Start{Tasks: 1}), pods("x", 8)}, false, model.Requirement{Gang: true, Tasks: 8},
		},
		"the same, and its pods are delivered later": {
			steps{again(9, model.Start{Tasks: 1}), pods("w", 1, running), pods("x", 8)}, false, model.Requirement{Gang: true, Tasks: 8},
		},
		"broken before this process was started": {
			steps{pods("w", 1, running), again(9, model.Start{Tasks: 9}), pods("x", 8)}, true, model.Requirement{Gang: true, Tasks: 8},
		},
		"what an earlier gang of the name started with does not count for the one placed now": {
			steps{again(4, model.Start{Tasks: 1}), pods("w", 4), func(s *model.State) { s.Assume("w-0", "node-0") }}, true, model.Requirement{Gang: true, Tasks: 3},
		},
		"a plan that came to nothing was no start": {
			steps{
				least(2), pods("w", 4), func(s *model.State) { s.Assume("w-0", "node-0"); s.Assume("w-1", "node-0") },
				func(s *model.State) { s.Forget("w-0"); s.Forget("w-1") }, least(4), func(s *model.State) { s.Assume("w-2", "node-0"); s.Assume("w-3", "node-0") },
			}, true, model.Requirement{Gang: true, Tasks: 2},
		},
	} {
		t.Run(name, func(t *testing.T) {
			state := watching()
			for _, step := range tc.steps {
				step(state)
			}
			job := state.Job(train)
			if got := job.Partial(); got != tc.partial {
				t.Errorf("partial is %t; it started with %+v", got, job.Start)
			}
			if diff := cmp.Diff(tc.need, job.Requirement()); diff != "" {
				t.Errorf("what its turn has to place (-want,+got)\n%s", diff)
			}
		})
	}
}

// TestHalf: a gang is half placed if it was never whole, as far as that is known.
func TestHalf(t *testing.T) {
	for name, tc := range map[string]struct {
		source model.Source
		start  int
		bound  int
		// assumed are those of which it is not known yet whether they are bound.
		assumed int
		want    bool
	}{
		"nothing is placed":             {source: model.FromVolcano},
		"one of three":                  {source: model.FromVolcano, bound: 1, want: true},
		"the last binds may be refused": {source: model.FromVolcano, bound: 1, assumed: 2},
		"all of three":                  {source: model.FromVolcano, bound: 3},
		"it was whole":                  {source: model.FromVolcano, start: 3, bound: 1},
		"a PodGroup that does not say whether it was": {source: model.FromCoscheduling, bound: 1},
	} {
		t.Run(name, func(t *testing.T) {
			job := &model.Job{
				Key: model.JobKey{Source: tc.source, Namespace: "ns", Name: "train"}, Group: &model.Group{MinMember: 3}, Start: model.Start{Tasks: tc.start},
			}
			job.Counts.ByStatus[model.Bound], job.Counts.ByStatus[model.Allocated] = tc.bound, tc.assumed
			if got := job.Half(); got != tc.want {
				t.Errorf("half is %t, want %t", got, tc.want)
			}
		})
	}
}

// TestABindThatMayBeRefusedIsNoStart: what a gang started with is noted when all of its binds are known.
func TestABindThatMayBeRefusedIsNoStart(t *testing.T) {
	state := watching()
	state.UpsertGroup(train, &model.Group{UID: "u", MinMember: 2})
	for _, p := range append(members("w", 1, running), members("x", 1)...) {
		state.UpsertPod(p)
	}
	state.Assume("x-0", "node-0")
	if job := state.Job(train); job.Start.Tasks != 0 || job.Partial() {
		t.Errorf("before the last bind is known it started with %+v, and partial is %t", job.Start, job.Partial())
	}
	for _, p := range members("x", 1, running) {
		state.UpsertPod(p)
	}
	if job := state.Job(train); job.Start.Tasks != 2 {
		t.Errorf("when it is, it started with %+v, want 2 tasks", job.Start)
	}
}

func TestAStartIsReadAsItWasWritten(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want model.Start
	}{
		"tasks":                      {"started with a minimum of 12 tasks", model.Start{Tasks: 12}},
		"roles, in order":            {`started with a minimum of 12 tasks, by role {"a, b":2,"ps":1}`, model.Start{Tasks: 12, Roles: map[string]int{"ps": 1, "a, b": 2}}},
		"nothing was written":        {"", model.Start{}},
		"somebody else's message":    {"tasks in gang are ready", model.Start{}},
		"a number that means no":     {"started with a minimum of -1 tasks", model.Start{}},
		"roles that cannot be read":  {"started with a minimum of 2 tasks, by role {", model.Start{}},
		"more digits than there are": {"started with a minimum of 99999999999999999999 tasks", model.Start{}},
	} {
		t.Run(name, func(t *testing.T) {
			got := model.ParseStart(tc.text)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want,+got)\n%s", diff)
			}
			if text := fmt.Sprint(got); got.Tasks > 0 && text != tc.text {
				t.Errorf("it is written as %q", text)
			}
		})
	}
}

// TestTermsOfABrokenGangAreProtection: who waits for its room hears of other ones.
func TestTermsOfABrokenGangAreProtection(t *testing.T) {
	state := watching()
	state.UpsertPod(newPod("p", in("train"), running))
	for i, tc := range []struct {
		terms model.Terms
		want  bool
	}{
		// Its pods had no PodGroup, and were not evicted for that.
		{model.Terms{}, true},
		{model.Terms{BrokenTimeout: model.Say(time.Minute)}, true},
		{model.Terms{BrokenTimeout: model.Say(time.Minute)}, false},
		{model.Terms{}, true},
	} {
		c := state.UpsertGroup(train, &model.Group{UID: "u", MinMember: 2, Terms: tc.terms})
		if got := c.Events&model.ProtectionChanged != 0; got != tc.want {
			t.Errorf("change %d, to %+v: who waits hears of it: %t", i, tc.terms, got)
		}
	}
}

// TestAGangThatIsCompletedAsItFitsTakesNoMoreThanItLacks: whichever of the members go first that its turns may place.
func TestAGangThatIsCompletedAsItFitsTakesNoMoreThanItLacks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		roles := []string{"a", "b"}
		draw := func(what string, most int) int { return rapid.IntRange(0, most).Draw(t, what) }
		group := &model.Group{MinTaskMember: map[string]int{"a": draw("a", 3), "b": draw("b", 3)}}
		group.MinMember = group.MinTaskMember["a"] + group.MinTaskMember["b"] + draw("beside", 3)
		job := &model.Job{Key: train, Group: group}
		if rapid.Bool().Draw(t, "lost") {
			job.Start = model.Start{Tasks: 1 + draw("started with", 9), Roles: map[string]int{"a": draw("started with a", 3), "b": draw("started with b", 3)}}
		}
		counts := map[string]int{"a": draw("holds a", 4), "b": draw("holds b", 4)}
		update := func() {
			job.Roles, job.Counts = nil, model.Counts{}
			for _, role := range roles {
				c := model.RoleCounts{Role: role}
				c.ByStatus[model.Bound] = counts[role]
				job.Counts.ByStatus[model.Bound] += counts[role]
				job.Roles = append(job.Roles, c)
			}
		}
		update()
		lacks, placed := job.Requirement().Tasks, 0
		if !job.Partial() {
			t.Skip("it is not broken")
		}
		for job.Piecemeal = true; job.Partial(); placed++ {
			r := job.Requirement()
			if r.Tasks != 1 {
				t.Fatalf("it has to place %+v at once", r)
			}
			role := rapid.SampledFrom(roles).Filter(func(role string) bool { return len(r.Roles) == 0 || r.Roles[role] > 0 }).Draw(t, "places")
			counts[role]++
			update()
			if placed > 20 {
				t.Fatal("it is never whole")
			}
		}
		if placed != lacks {
			t.Fatalf("it lacked %d members and placed %d", lacks, placed)
		}
	})
}

// TestWhoLosesAllHasToBeLetInAnew: a gang that was whole and holds nothing any more has no place in its queue, until it is let in again.
func TestWhoLosesAllHasToBeLetInAnew(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		started, lost int
		evicted       bool
		letIn         bool
	}{
		"it never started":           {started: 1, lost: 1, letIn: true},
		"some of its members remain": {started: 2, lost: 1, letIn: true},
		"all are gone":               {started: 2, lost: 2},
		"all were evicted":           {started: 2, lost: 2, evicted: true, letIn: true},
	} {
		s := watching()
		s.UpsertGroup(train, &model.Group{UID: "u", MinMember: 2})
		s.Admit(train, true)
		for _, p := range members("w", 2) {
			s.UpsertPod(p)
		}
		for _, p := range members("w", c.started, running) {
			s.UpsertPod(p)
		}
		for _, p := range members("w", c.lost) {
			if c.evicted {
				s.Pipeline(nil, []types.UID{p.UID})
			}
		}
		for _, p := range members("w", c.lost) {
			s.DeletePod(p.UID)
		}
		if got := s.Job(train).LetIn(); got != c.letIn {
			t.Errorf("%s: it is let in: %t, want %t", name, got, c.letIn)
		}
		if s.Admit(train, true); !s.Job(train).LetIn() {
			t.Errorf("%s: it is not let in again", name)
		}
	}
}

// TestWhoLostAllBeforeThisProcessLedHasToBeLetInAnew: its PodGroup still says that it runs.
func TestWhoLostAllBeforeThisProcessLedHasToBeLetInAnew(t *testing.T) {
	t.Parallel()
	s := watching()
	s.UpsertGroup(train, &model.Group{UID: "u", MinMember: 2, Phase: model.PhaseRunning, Start: model.Start{Tasks: 2}})
	for _, p := range members("w", 2) {
		s.UpsertPod(p)
	}
	if s.Lead(); s.Job(train).LetIn() {
		t.Error("it is let in")
	}
}
