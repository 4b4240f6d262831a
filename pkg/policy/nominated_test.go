// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"testing"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/policy"
)

// TestRoomThatIsKeptIsHeldOnce: what is kept for a nominated task counts as held from the beginning, and not once more
// when the task is placed or hoped for.
func TestRoomThatIsKeptIsHeldOnce(t *testing.T) {
	set, err := policy.Compile(&config.BatchQueueArgs{
		Tiers:   tier(config.TierPlugin{Name: config.PluginCapacity}, config.TierPlugin{Name: config.PluginDRF}),
		Actions: []config.Action{config.Reclaim, config.Preempt},
	})
	if err != nil {
		t.Fatal(err)
	}
	state := model.NewState()
	state.AddScheduler("volcano")
	mine, other := jobNamed("mine"), jobNamed("other")
	state.UpsertGroup(mine, &model.Group{Queue: "q", MinMember: 2})
	state.UpsertGroup(other, &model.Group{Queue: "q", MinMember: 1})
	for _, name := range []string{"mine-0", "mine-1", "other-0", "other-1", "other-2"} {
		pod := podAsking(name, name[:len(name)-2], 1)
		if pod.Annotations[model.GroupNameAnnotation] == "other" {
			place(pod)
		}
		state.UpsertPod(pod)
	}
	state.Pipeline([]model.Nomination{{UID: "mine-0", Node: "n"}}, nil)
	set.SetCluster(both(10, 10))
	set.SetQueue("q", &model.Queue{Name: "q", Deserved: both(5, 0), Reclaimable: true})
	for _, key := range []model.JobKey{mine, other} {
		set.SetJob(key, state.Job(key))
	}
	set.Update()
	job := state.Job(mine)
	tr := set.Trial(config.Reclaim, job, policy.EvictionWorld{Now: epoch})
	check := func(when string, most int64) {
		t.Helper()
		if why := tr.Entitled(both(most, 0)); most > 0 && why != (model.Reason{}) {
			t.Errorf("%s the queue may not take %d: %s", when, most, why.Message)
		}
		if tr.Entitled(both(most+1, 0)) == (model.Reason{}) {
			t.Errorf("%s the queue may take %d", when, most+1)
		}
	}
	nominated, waiting := job.Tasks[0], job.Tasks[1]
	if nominated.Nominated == "" {
		nominated, waiting = waiting, nominated
	}
	check("with room kept for one", 1)
	tr.Gain(nominated)
	check("with that one placed", 1)
	tr.Lose(nominated)
	tr.Gain(waiting)
	check("with the other placed", 0)

	// Three are left with two each, which are one kept and one waiting.
	preempts := set.Trial(config.Preempt, job, policy.EvictionWorld{Now: epoch})
	theirs := state.Job(other)
	if why := preempts.Evaluate(model.Victim{Task: theirs.Tasks[0], Job: theirs}); why != "" {
		t.Errorf("a job that is to hold two takes nothing from one that keeps two: %s", why)
	}
}
