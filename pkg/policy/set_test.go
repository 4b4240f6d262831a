// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/policy"
	"github.com/caldera-scheduler/caldera/pkg/queue/account"
	"github.com/caldera-scheduler/caldera/pkg/resource"
	"github.com/caldera-scheduler/caldera/pkg/volcano/arguments"
)

// tier is one tier of plugins.
func tier(plugins ...config.TierPlugin) []config.Tier { return []config.Tier{{Plugins: plugins}} }

func TestTiersTellWhatIsLookedAt(t *testing.T) {
	type facts struct {
		Enqueue, Backfill, Gangs, Quotas bool
		Mode                             account.Mode
	}
	gang := config.TierPlugin{Name: config.PluginGang}
	for name, tc := range map[string]struct {
		args config.BatchQueueArgs
		want facts
	}{
		"nothing is configured": {},
		"gang makes jobs start whole": {
			args: config.BatchQueueArgs{Tiers: tier(gang)}, want: facts{Gangs: true},
		},
		"gang without job readiness does not": {
			args: config.BatchQueueArgs{Tiers: tier(config.TierPlugin{
				Name: config.PluginGang, Switches: map[config.Switch]bool{config.EnableJobReady: false},
			})},
		},
		"actions are taken over": {
			args: config.BatchQueueArgs{Actions: []config.Action{config.Enqueue, config.Allocate, config.Backfill}},
			want: facts{Enqueue: true, Backfill: true},
		},
		"resourcequota looks at quotas, in whatever tier": {
			args: config.BatchQueueArgs{Tiers: append(tier(gang), tier(config.TierPlugin{Name: config.PluginResourceQuota})...)},
			want: facts{Gangs: true, Quotas: true},
		},
		"proportion divides by weight": {
			args: config.BatchQueueArgs{Tiers: tier(config.TierPlugin{Name: config.PluginProportion}, gang)},
			want: facts{Gangs: true, Mode: account.Proportion},
		},
		"capacity reads objects": {
			args: config.BatchQueueArgs{Tiers: tier(config.TierPlugin{Name: config.PluginCapacity})},
			want: facts{Mode: account.Capacity},
		},
		"capacity with hierarchy reads the tree": {
			args: config.BatchQueueArgs{Tiers: tier(config.TierPlugin{
				Name: config.PluginCapacity, Switches: map[config.Switch]bool{config.EnableHierarchy: true},
			})},
			want: facts{Mode: account.Hierarchy},
		},
		"plugins that decide on nodes have no say": {
			args: config.BatchQueueArgs{Tiers: tier(config.TierPlugin{Name: config.PluginBinpack})},
		},
	} {
		t.Run(name, func(t *testing.T) {
			set, err := policy.Compile(&tc.args)
			if err != nil {
				t.Fatal(err)
			}
			got := facts{set.Enqueue, set.Backfill, set.Gangs, set.Quotas, set.Book().Mode()}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
		})
	}
}

func TestBadArgumentsAreErrorsThatNameTheirPlace(t *testing.T) {
	for name, tc := range map[string]struct {
		plugin, argument, value, want string
	}{
		"a factor below 1": {
			config.PluginOvercommit, "overcommit-factor", "0.8",
			`tiers[1].plugins[0].arguments[overcommit-factor]: Invalid value: 0.8: must be a number of at least 1`,
		},
		"a waiting time that is no duration": {
			config.PluginSLA, "sla-waiting-time", `"soon"`,
			`tiers[1].plugins[0].arguments[sla-waiting-time]: Invalid value: "soon": must be a duration with its unit, such as "10m"`,
		},
		"a waiting time that is no text": {
			config.PluginSLA, "sla-waiting-time", `3`,
			`tiers[1].plugins[0].arguments[sla-waiting-time]: Invalid value: 3: must be a duration with its unit, such as "10m"`,
		},
		"a level below 0": {
			config.PluginCapacity, "ancestorReclaimLevel", "-1",
			`tiers[1].plugins[0].arguments[ancestorReclaimLevel]: Invalid value: -1: must be a whole number of at least 0`,
		},
		"an argument that does not exist": {
			config.PluginCapacity, "ancestorLevel", "1",
			`tiers[1].plugins[0].arguments[ancestorLevel]: Forbidden: unknown key; valid are "ancestorReclaimLevel", ` +
				`"capacity.DRAConsumableCapacityEnable", "capacity.DynamicResourceAllocationEnable", "usageHalfLife"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			bad := config.TierPlugin{Name: tc.plugin, Arguments: map[string]runtime.RawExtension{tc.argument: {Raw: []byte(tc.value)}}}
			_, err := policy.Compile(&config.BatchQueueArgs{
				Tiers: append(tier(config.TierPlugin{Name: config.PluginGang}), tier(bad)...),
			})
			if err == nil {
				t.Fatal("no error")
			}
			if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
		})
	}
}

func TestJobsOfOneNameFromDifferentAPIsAreDifferentJobs(t *testing.T) {
	set, err := policy.Compile(&config.BatchQueueArgs{Tiers: tier(config.TierPlugin{
		Name: config.PluginDRF, Switches: map[config.Switch]bool{config.EnableHierarchy: true},
	})})
	if err != nil {
		t.Fatal(err)
	}
	set.SetCluster(cores(10))
	for i, name := range []string{"a", "b"} {
		set.SetQueue(name, &model.Queue{
			Name: name, Created: epoch.Add(-hours(i)), Hierarchy: []string{"root", name}, HierarchyWeights: []float64{1, 1},
		})
		key := model.JobKey{Source: []model.Source{model.FromVolcano, model.FromPod}[i], Namespace: "ns", Name: "same"}
		held := cores(int64(2 + i))
		set.SetJob(key, &model.Job{Key: key, Queue: name, Usage: model.Usage{Allocated: held, Requested: cores(9)}})
	}
	set.Update()
	if set.CompareQueues(set.Book().Queue("a"), set.Book().Queue("b")) >= 0 {
		t.Error("the queue that holds 3 cores goes before the one that holds 2")
	}
}

// Both hold what they are due, and A has held it for longer. As long as B held less than its due, it went first by that.
func TestOfQueuesThatHoldTheirDueWhoHeldLessLatelyGoesFirst(t *testing.T) {
	for name, tc := range map[string]struct {
		arguments map[string]runtime.RawExtension
		first     string
	}{
		"it counts":                        {map[string]runtime.RawExtension{arguments.UsageHalfLife: {Raw: []byte(`"1h"`)}}, "b"},
		"it does not: the older one first": {nil, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			set, err := policy.Compile(&config.BatchQueueArgs{Tiers: tier(config.TierPlugin{Name: config.PluginCapacity, Arguments: tc.arguments})})
			if err != nil {
				t.Fatal(err)
			}
			set.SetCluster(cores(10))
			holds := func(queue string, n int64) {
				key := model.JobKey{Source: model.FromVolcano, Namespace: "ns", Name: queue}
				set.SetJob(key, &model.Job{Key: key, Queue: queue, Usage: model.Usage{Allocated: cores(n), Requested: cores(9)}})
			}
			for i, queue := range []string{"a", "b"} {
				set.SetQueue(queue, &model.Queue{Name: queue, Created: epoch.Add(hours(i)), Weight: 1, Deserved: cores(4)})
			}
			set.Pass(epoch.Add(hours(3)))
			holds("a", 4)
			set.Update()
			set.Pass(epoch.Add(hours(5)))
			holds("b", 4)
			set.Update()
			if again := set.Again(); (again.IsZero()) != (tc.arguments == nil) {
				t.Errorf("the policies are to be looked at again at %s", again)
			}
			a, b := set.Book().Queue("a"), set.Book().Queue("b")
			if got := map[bool]string{true: "a", false: "b"}[set.CompareQueues(a, b) < 0]; got != tc.first {
				t.Errorf("%s goes first, want %s", got, tc.first)
			}
			holds("a", 3)
			set.Update()
			if set.CompareQueues(a, b) > 0 {
				t.Error("b goes first, and a holds less than its due")
			}
		})
	}
}

func TestMinimumsOfRolesDoNotCountInTheOrderOfJobs(t *testing.T) {
	set, err := policy.Compile(&config.BatchQueueArgs{Tiers: tier(config.TierPlugin{Name: config.PluginGang})})
	if err != nil {
		t.Fatal(err)
	}
	running := func(n int, group *model.Group) *policy.Ranked {
		job := &model.Job{Group: group}
		job.Counts.ByStatus[model.Running] = n
		return set.Rank(job)
	}
	full := running(2, &model.Group{MinMember: 2, MinTaskMember: map[string]int{"ps": 1, "worker": 1}})
	short := running(1, &model.Group{MinMember: 2})
	if set.CompareJobs(short, full) >= 0 || set.CompareJobs(full, short) <= 0 {
		t.Error("a job with minMember running goes before one without, because a role of it is short")
	}
}

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func hours(n int) time.Duration { return time.Duration(n) * time.Hour }

func cores(n int64) resource.Vector { return resource.Vector{{Name: "cpu", Value: 1000 * n}} }

func TestAPromiseToAQuotaThatShrinksIsHeard(t *testing.T) {
	set, err := policy.Compile(&config.BatchQueueArgs{Tiers: tier(config.TierPlugin{Name: config.PluginResourceQuota})})
	if err != nil {
		t.Fatal(err)
	}
	key := model.JobKey{Source: model.FromVolcano, Namespace: "ns", Name: "j"}
	job := func(admitted bool, pods int) *model.Job {
		j := &model.Job{Key: key, Queue: "q", Admitted: admitted, Group: &model.Group{
			MinMember: 2, MinResources: cores(4), MinQuota: resource.Vector{{Name: "requests.cpu", Value: 4000}},
		}}
		j.Counts.ByStatus[model.Pending] = pods
		return j
	}
	for _, step := range []struct {
		name string
		job  *model.Job
		want bool
	}{
		{"it arrives", job(false, 0), false},
		{"it is admitted", job(true, 0), false},
		{"a pod of it exists", job(true, 1), true},
		{"all its pods exist", job(true, 2), true},
		{"a pod more exists", job(true, 3), false},
		{"its pods are gone", job(true, 0), false},
		{"it is gone", nil, true},
	} {
		before := set.Book().Freed()
		set.SetJob(key, step.job)
		if got := set.Book().Freed() != before; got != step.want {
			t.Errorf("%s: admission has to be asked for again: %t, want %t", step.name, got, step.want)
		}
	}
}

func TestBadArgumentsOfActionsAreErrorsThatNameTheirPlace(t *testing.T) {
	_, err := policy.Compile(&config.BatchQueueArgs{Configurations: []config.ActionConfiguration{
		{Name: config.Preempt},
		{Name: config.GangReclaim, Arguments: map[string]runtime.RawExtension{"allowWholeBundle": {Raw: []byte("3")}}},
	}})
	if err == nil {
		t.Fatal("no error")
	}
	want := `configurations[1].arguments[allowWholeBundle]: Invalid value: 3: must be true or false`
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("(-want,+got):\n%s", diff)
	}
}

func TestAnActionThatEvictsNobodyFindsNobody(t *testing.T) {
	set, err := policy.Compile(&config.BatchQueueArgs{Tiers: tier(config.TierPlugin{Name: config.PluginPriority})})
	if err != nil {
		t.Fatal(err)
	}
	set.Update()
	if tr := set.Trial(config.Allocate, &model.Job{Queue: "default"}, policy.EvictionWorld{}); tr.WholeJobs() || !tr.Again().IsZero() {
		t.Error("allocate evicts")
	}
}

// TestARejectionThatIsKnownIsNotWordedAgain: its numbers are as they were, unless something else is short or would help now.
func TestARejectionThatIsKnownIsNotWordedAgain(t *testing.T) {
	args := &config.BatchQueueArgs{Tiers: tier(config.TierPlugin{Name: config.PluginOvercommit})}
	set, err := policy.Compile(args)
	if err != nil {
		t.Fatal(err)
	}
	set.SetQueue("q", &model.Queue{Name: "q", Weight: 1})
	set.SetCluster(cores(10))
	set.Update()
	job := set.Rank(&model.Job{Key: model.JobKey{Name: "large"}, Queue: "q", Group: &model.Group{MinMember: 1, MinResources: cores(20)}})
	first := set.Admit(policy.World{}, job)
	other, nodeless := first, first
	other.Subject, nodeless.FromNodes = "cluster memory", false
	for name, tc := range map[string]struct {
		known model.Reason
		again bool
	}{
		"it is not known":         {},
		"it is":                   {known: first, again: true},
		"something else is known": {known: other},
		"nodes did not help then": {known: nodeless},
	} {
		t.Run(name, func(t *testing.T) {
			world := policy.World{Used: cores(1), Known: tc.known}
			got := set.Admit(world, job)
			if got.Message == "" || !got.Same(first) || !got.FromNodes || (got.Message == first.Message) != tc.again {
				t.Errorf("got %+v, want that of before: %t", got, tc.again)
			}
		})
	}
}
