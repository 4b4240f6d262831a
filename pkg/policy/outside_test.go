// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/policy"
	"github.com/caldera-scheduler/caldera/pkg/queue/account"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// stranger is a policy from outside that answers what it is told to.
type stranger struct {
	vote     policy.Vote
	withheld bool
	again    time.Time
}

func (s *stranger) Admit(policy.World, *policy.Ranked) (policy.Vote, model.Reason) {
	if s.vote == policy.Reject {
		return s.vote, model.Reason{Kind: model.NotAdmitted, Message: "stranger"}
	}
	return s.vote, model.Reason{}
}

func (s *stranger) Withholds(*account.Queue) model.Reason {
	if s.withheld {
		return model.Reason{Kind: model.Withheld}
	}
	return model.Reason{}
}

func (s *stranger) Chooses(bool) bool      { return true }
func (s *stranger) AloneInAdmission() bool { return true }
func (s *stranger) AloneInTurns() bool     { return false }
func (s *stranger) Again() time.Time       { return s.again }
func (s *stranger) Asked()                 { s.again = time.Time{} }

// tiersFor are tiers of plugins.
func tiersFor(tiers ...[]config.TierPlugin) *config.BatchQueueArgs {
	args := &config.BatchQueueArgs{Actions: []config.Action{config.Allocate, config.Preempt, config.Reclaim, config.GangPreempt}}
	for _, plugins := range tiers {
		args.Tiers = append(args.Tiers, config.Tier{Plugins: plugins})
	}
	return args
}

func withStranger(t *testing.T, args *config.BatchQueueArgs, s *stranger) *policy.Set {
	t.Helper()
	set, err := policy.Compile(args, policy.Extension{Plugin: config.PluginExtender, Policy: s})
	if err != nil {
		t.Fatal(err)
	}
	set.SetQueue("q", &model.Queue{Name: "q"})
	set.Update()
	return set
}

func TestWhenSomebodyOutsideChoosesVictims(t *testing.T) {
	outside, priority := config.TierPlugin{Name: config.PluginExtender}, config.TierPlugin{Name: config.PluginPriority}
	off := config.TierPlugin{Name: config.PluginExtender, Switches: map[config.Switch]bool{config.EnablePreemptable: false}}
	for name, tc := range map[string]struct {
		args   *config.BatchQueueArgs
		action config.Action
		want   bool
	}{
		"in the first tier":                    {tiersFor([]config.TierPlugin{outside}, []config.TierPlugin{priority}), config.Preempt, true},
		"beside another that chooses":          {tiersFor([]config.TierPlugin{priority, outside}), config.Preempt, true},
		"not below a tier that decides":        {tiersFor([]config.TierPlugin{priority}, []config.TierPlugin{outside}), config.Preempt, false},
		"below a tier that does not choose":    {tiersFor([]config.TierPlugin{{Name: config.PluginGang}}, []config.TierPlugin{outside}), config.Preempt, true},
		"not when it is switched off":          {tiersFor([]config.TierPlugin{off}), config.Preempt, false},
		"the other switch is another question": {tiersFor([]config.TierPlugin{off}), config.Reclaim, true},
		"for whole gangs, too":                 {tiersFor([]config.TierPlugin{outside}), config.GangPreempt, true},
	} {
		t.Run(name, func(t *testing.T) {
			set := withStranger(t, tc.args, &stranger{})
			if got := set.Trial(tc.action, &model.Job{Queue: "q"}, policy.EvictionWorld{}).AsksOutside(); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestWhatSomebodyOutsideChoosesDecides(t *testing.T) {
	victim := model.Victim{Task: &model.Task{UID: "v", Status: model.Running}, Job: &model.Job{Key: model.JobKey{Name: "victim"}, Queue: "q"}}
	chosen := map[types.UID]bool{"v": true}
	for name, tc := range map[string]struct {
		answer func(*policy.Trial)
		want   string
	}{
		"nobody before it answered":  {func(*policy.Trial) {}, "the extender does not choose it"},
		"one that is chosen":         {func(t *policy.Trial) { t.Answer(policy.Permit, chosen) }, ""},
		"one that is not":            {func(t *policy.Trial) { t.Answer(policy.Permit, nil) }, "the extender does not choose it"},
		"a rejection chooses nobody": {func(t *policy.Trial) { t.Answer(policy.Reject, nil) }, "the extender does not choose it"},
		"without an opinion the next tier decides": {
			func(t *policy.Trial) { t.Answer(policy.Abstain, chosen) }, "its job's priority is not lower",
		},
	} {
		t.Run(name, func(t *testing.T) {
			set := withStranger(t, tiersFor([]config.TierPlugin{{Name: config.PluginExtender}}, []config.TierPlugin{{Name: config.PluginPriority}}), &stranger{})
			trial := set.Trial(config.Preempt, &model.Job{Key: model.JobKey{Name: "own"}, Queue: "q"}, policy.EvictionWorld{})
			tc.answer(trial)
			if got := trial.Evaluate(victim); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestHooksOfSomebodyOutside(t *testing.T) {
	s := &stranger{vote: policy.Reject, withheld: true, again: time.Unix(1, 0)}
	set := withStranger(t, tiersFor([]config.TierPlugin{{Name: config.PluginExtender}}), s)
	if why := set.Admit(policy.World{}, &policy.Ranked{Job: &model.Job{Queue: "q"}}); why.Message != "stranger" {
		t.Errorf("got reason %+v", why)
	}
	if why := set.Withheld(set.Book().Queue("q")); why.Kind != model.Withheld {
		t.Errorf("got reason %+v", why)
	}
	if !set.AloneInAdmission() || set.AloneInTurns() || !set.Again().Equal(time.Unix(1, 0)) {
		t.Errorf("alone %v, %v; again at %v", set.AloneInAdmission(), set.AloneInTurns(), set.Again())
	}
	builtIn, err := policy.Compile(tiersFor([]config.TierPlugin{{Name: config.PluginPriority}}), policy.Extension{Plugin: config.PluginExtender, Policy: s})
	if err != nil || builtIn.HasOutsiders() || !set.HasOutsiders() {
		t.Errorf("policies from outside: %v without an entry of theirs (%v), %v with one", builtIn.HasOutsiders(), err, set.HasOutsiders())
	}
	if set.Asked(); !set.Again().IsZero() {
		t.Errorf("again at %v", set.Again())
	}
	off := config.TierPlugin{Name: config.PluginExtender, Switches: map[config.Switch]bool{config.EnableOverused: false, config.EnableJobEnqueued: false}}
	set = withStranger(t, tiersFor([]config.TierPlugin{off}), s)
	if why := set.Withheld(set.Book().Queue("q")); why != (model.Reason{}) {
		t.Errorf("switched off: got reason %+v", why)
	}
	if why := set.Admit(policy.World{}, &policy.Ranked{Job: &model.Job{Queue: "q"}}); why != (model.Reason{}) {
		t.Errorf("switched off: got reason %+v", why)
	}
}

// taker is a policy from outside that would have anybody of other queues evicted for anyone.
type taker struct{}

func (taker) Reclaimable(policy.Eviction, model.Victim) string { return "" }

// TestWhoeverChoosesFromOutsideNeedNotGoByDues: the other queue holds no more than it is due, which matters where a plugin of Volcano's
// chooses in the same tier.
func TestWhoeverChoosesFromOutsideNeedNotGoByDues(t *testing.T) {
	own, due := config.TierPlugin{Name: "taker"}, config.TierPlugin{
		Name: config.PluginProportion, Switches: map[config.Switch]bool{config.EnablePreemptive: false},
	}
	cores := func(n int64) resource.Vector { return resource.Vector{{Name: "cpu", Value: n * 1000}} }
	for name, tc := range map[string]struct {
		args *config.BatchQueueArgs
		want []config.Action
	}{
		"in a tier above":        {tiersFor([]config.TierPlugin{own}, []config.TierPlugin{due}), []config.Action{config.Reclaim}},
		"in the same tier":       {tiersFor([]config.TierPlugin{own, due}), nil},
		"before it in its tier":  {tiersFor([]config.TierPlugin{due, own}), nil},
		"below one that decides": {tiersFor([]config.TierPlugin{due}, []config.TierPlugin{own}), nil},
	} {
		t.Run(name, func(t *testing.T) {
			set, err := policy.Compile(tc.args, policy.Extension{Plugin: "taker", Policy: taker{}})
			if err != nil {
				t.Fatal(err)
			}
			for _, queue := range []string{"mine", "other"} {
				set.SetQueue(queue, &model.Queue{Name: queue, Weight: 1, Reclaimable: true})
			}
			set.SetCluster(cores(4))
			holds := &model.Job{Key: model.JobKey{Name: "holds"}, Queue: "other", Usage: model.Usage{Allocated: cores(2), Requested: cores(2)}}
			waits := &model.Job{Key: model.JobKey{Name: "waits"}, Queue: "mine", Usage: model.Usage{Requested: cores(3)}, Pending: []model.Demand{{Count: 1, Request: cores(3), Charge: cores(3)}}}
			for _, job := range []*model.Job{holds, waits} {
				set.SetJob(job.Key, job)
			}
			set.Update()
			if got := set.MayEvict(waits); !slices.Equal(got, tc.want) {
				t.Errorf("it might find victims by %v, want %v", got, tc.want)
			}
			if !set.AloneInTurns() {
				t.Error("jobs share what was found out about one of them")
			}
		})
	}
}
