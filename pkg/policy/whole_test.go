// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"testing"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/policy"
)

// TestAGangThatIsDisruptedAsAWhole: no action takes a part of it, of whatever size; those that evict whole gangs may take all. A job like it
// that says nothing of that gives what it has beyond its minimum.
func TestAGangThatIsDisruptedAsAWhole(t *testing.T) {
	set, err := policy.Compile(&config.BatchQueueArgs{
		Tiers:   tier(switched(config.PluginPriority), switched(config.PluginGang)),
		Actions: []config.Action{config.Preempt, config.GangPreempt},
	})
	if err != nil {
		t.Fatal(err)
	}
	state := model.NewState()
	state.AddScheduler("volcano")
	state.UpsertPriorityClass("high", 10, false)
	groups := map[string]*model.Group{
		"mine":  {Queue: "q", MinMember: 1, PriorityClass: "high"},
		"whole": {Queue: "q", MinMember: 1, Whole: true},
		"basic": {Queue: "q", Whole: true},
		"plain": {Queue: "q", MinMember: 1},
	}
	for name, group := range groups {
		state.UpsertGroup(jobNamed(name), group)
	}
	state.UpsertPod(podAsking("mine-0", "mine", 1))
	for name := range groups {
		for _, i := range []string{"-0", "-1", "-2"} {
			if name == "mine" {
				continue
			}
			pod := podAsking(name+i, name, 1)
			place(pod)
			state.UpsertPod(pod)
		}
	}
	set.SetCluster(both(10, 10))
	set.SetQueue("q", &model.Queue{Name: "q", Reclaimable: true})
	for name := range groups {
		set.SetJob(jobNamed(name), state.Job(jobNamed(name)))
	}
	set.Update()
	const wholly = "its PodGroup is disrupted as a whole only (spec.disruptionMode)"
	for name, tc := range map[string]struct {
		action config.Action
		job    string
		tasks  int
		want   string
	}{
		"one of its surplus":             {config.Preempt, "whole", 1, wholly},
		"two of its surplus":             {config.Preempt, "whole", 2, wholly},
		"all, by what takes single pods": {config.Preempt, "whole", 3, "its job would fall below its minimum"},
		"a part, by what takes gangs":    {config.GangPreempt, "whole", 2, wholly},
		"all, by what takes gangs":       {config.GangPreempt, "whole", 3, ""},
		"one without a minimum":          {config.Preempt, "basic", 1, wholly},
		"two without a minimum":          {config.GangPreempt, "basic", 2, wholly},
		"all without a minimum":          {config.GangPreempt, "basic", 3, ""},
		"the surplus of another one":     {config.Preempt, "plain", 2, ""},
	} {
		t.Run(name, func(t *testing.T) {
			trial, theirs := set.Trial(tc.action, state.Job(jobNamed("mine")), policy.EvictionWorld{Now: epoch}), state.Job(jobNamed(tc.job))
			var victims []model.Victim
			for _, task := range theirs.Tasks[:tc.tasks] {
				v := model.Victim{Task: task, Job: theirs}
				if why := trial.Candidate(v); why != "" {
					t.Fatalf("%s is no candidate: %s", task.UID, why)
				}
				victims = append(victims, v)
			}
			if got := trial.Evaluate(victims...); got != tc.want {
				t.Errorf("%d of %s: %q, want %q", tc.tasks, tc.job, got, tc.want)
			}
		})
	}
	running := state.Job(jobNamed("whole"))
	if spare := set.Ordinary(epoch, nil).Spare(running, running.Tasks); len(spare) > 0 {
		t.Errorf("ordinary pods may take %d of its pods, want none", len(spare))
	}
}
