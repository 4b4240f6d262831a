// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/apis/config/validation"
)

// tier is one of plugins without arguments.
func tier(names ...string) config.Tier {
	var t config.Tier
	for _, name := range names {
		t.Plugins = append(t.Plugins, config.TierPlugin{Name: name})
	}
	return t
}

// hierarchical is drf in the mode that needs the hierarchy of the queues.
func hierarchical() config.TierPlugin {
	return config.TierPlugin{Name: "drf", Switches: map[config.Switch]bool{config.EnableHierarchy: true}}
}

func raw(text string) runtime.RawExtension { return runtime.RawExtension{Raw: []byte(text)} }

func TestBatchQueueArgs(t *testing.T) {
	minimal := []config.Action{config.Allocate}
	shuffling := []config.Action{config.Allocate, config.Shuffle}
	moving := config.TierPlugin{Name: "rescheduling", Arguments: map[string]runtime.RawExtension{
		"strategies": raw(`[{"name": "lowNodeUtilization", "params": {"thresholds": {"cpu": 20}, "targetThresholds": {"cpu": 70}}}]`),
	}}
	for name, tc := range map[string]struct {
		args config.BatchQueueArgs
		want []string
	}{
		"the defaults": {config.BatchQueueArgs{
			Actions:          []config.Action{config.Enqueue, config.Allocate, config.Backfill},
			Tiers:            []config.Tier{tier("priority", "gang", "conformance"), tier("overcommit", "drf", "predicates", "proportion", "nodeorder")},
			AdmissionTimeout: metav1.Duration{Duration: 10 * time.Minute},
			StalledAfter:     metav1.Duration{Duration: 10 * time.Second},
			PromiseGrace:     metav1.Duration{Duration: 2 * time.Second},
			HalfTimeout:      metav1.Duration{Duration: time.Minute},
			BrokenTimeout:    metav1.Duration{Duration: 5 * time.Minute},
		}, nil},
		"all actions": {config.BatchQueueArgs{Actions: config.Actions()}, nil},
		"all plugins that go together": {config.BatchQueueArgs{Actions: minimal, Tiers: []config.Tier{
			tier("priority", "gang", "conformance", "drf", "capacity", "overcommit", "sla", "pdb", "cdp", "tdm", "resourcequota"),
			tier(
				"predicates", "nodeorder", "binpack", "nodegroup", "task-topology", "numa-aware", "deviceshare",
				"network-topology-aware", "usage", "extender", "resource-strategy-fit", "rescheduling",
			),
			{},
		}}, nil},
		"rescheduling that can do something": {config.BatchQueueArgs{
			Actions: shuffling, Tiers: []config.Tier{{Plugins: []config.TierPlugin{moving}}}, Metrics: map[string]string{"type": "prometheus_adaptor"},
		}, nil},
		"rescheduling that can do nothing": {
			config.BatchQueueArgs{Actions: shuffling, Tiers: []config.Tier{tier("gang", "rescheduling")}},
			[]string{
				`args.metrics: Required value: rescheduling at args.tiers[0].plugins[1] evicts by the loads of nodes; add the section metrics with a type and an address, or remove rescheduling`,
				`args.tiers[0].plugins[1].arguments[strategies]: Required value: name lowNodeUtilization with targetThresholds below 100 for cpu or memory, or remove rescheduling: no load is above 100`,
			},
		},
		"rescheduling that is switched off": {
			config.BatchQueueArgs{Actions: shuffling, Tiers: []config.Tier{{Plugins: []config.TierPlugin{
				{Name: "rescheduling", Switches: map[config.Switch]bool{config.EnableVictim: false}},
			}}}}, nil,
		},
		"no plugins": {config.BatchQueueArgs{Actions: minimal}, nil},
		"no actions": {config.BatchQueueArgs{}, []string{`args.actions: Required value: add allocate: without it nothing is scheduled`}},
		"a mistyped action": {
			config.BatchQueueArgs{Actions: []config.Action{"allocate", "prempt"}},
			[]string{`args.actions[1]: Unsupported value: "prempt": did you mean "preempt"?`},
		},
		"an unknown action": {
			config.BatchQueueArgs{Actions: []config.Action{"allocate", "elect"}},
			[]string{`args.actions[1]: Unsupported value: "elect": valid are "allocate", "backfill", "consolidate", "enqueue", "gangpreempt", "gangreclaim", "preempt", "reclaim", "shuffle"`},
		},
		"an action without a name": {
			config.BatchQueueArgs{Actions: []config.Action{"allocate", ""}},
			[]string{`args.actions[1]: Required value: name an action, or remove the comma before or after it`},
		},
		"an action listed twice": {
			config.BatchQueueArgs{Actions: []config.Action{"enqueue", "allocate", "enqueue"}},
			[]string{`args.actions[2]: Duplicate value: "enqueue"`},
		},
		"nothing allocates": {
			config.BatchQueueArgs{Actions: []config.Action{"enqueue", "backfill"}},
			[]string{`args.actions: Required value: add allocate: without it nothing is scheduled`},
		},
		"a mistyped plugin": {
			config.BatchQueueArgs{Actions: minimal, Tiers: []config.Tier{tier("gang"), tier("drff")}},
			[]string{`args.tiers[1].plugins[0].name: Unsupported value: "drff": did you mean "drf"?`},
		},
		"the Go package of a plugin for its name": {
			config.BatchQueueArgs{Actions: minimal, Tiers: []config.Tier{tier("numaaware")}},
			[]string{`args.tiers[0].plugins[0].name: Unsupported value: "numaaware": did you mean "numa-aware"?`},
		},
		"a plugin without a name": {
			config.BatchQueueArgs{Actions: minimal, Tiers: []config.Tier{tier("")}},
			[]string{`args.tiers[0].plugins[0].name: Required value: name a plugin`},
		},
		"a plugin twice in a tier": {
			config.BatchQueueArgs{Actions: minimal, Tiers: []config.Tier{tier("gang", "drf", "gang")}},
			[]string{`args.tiers[0].plugins[2].name: Duplicate value: "gang": keep one of this and args.tiers[0].plugins[0]`},
		},
		"a plugin in two tiers": {
			config.BatchQueueArgs{Actions: minimal, Tiers: []config.Tier{tier("gang", "drf"), tier("drf")}},
			[]string{`args.tiers[1].plugins[0].name: Duplicate value: "drf": keep one of this and args.tiers[0].plugins[1]`},
		},
		"a switch of a hook that the plugin has not": {
			config.BatchQueueArgs{Actions: minimal, Tiers: []config.Tier{{Plugins: []config.TierPlugin{
				{Name: "priority", Switches: map[config.Switch]bool{config.EnableHyperNodeOrder: true, config.EnableReclaimable: false}},
			}}}},
			nil,
		},
		"proportion and capacity in a tier": {
			config.BatchQueueArgs{Actions: minimal, Tiers: []config.Tier{tier("proportion", "capacity")}},
			[]string{`args.tiers[0].plugins[1].name: Invalid value: "capacity": conflicts with proportion at args.tiers[0].plugins[0]: both say what a queue may have; remove one of them`},
		},
		"proportion and capacity in two tiers": {
			config.BatchQueueArgs{Actions: minimal, Tiers: []config.Tier{tier("capacity"), tier("gang", "proportion")}},
			[]string{`args.tiers[0].plugins[0].name: Invalid value: "capacity": conflicts with proportion at args.tiers[1].plugins[1]: both say what a queue may have; remove one of them`},
		},
		"proportion and hierarchical drf in a tier": {
			config.BatchQueueArgs{Actions: minimal, Tiers: []config.Tier{{Plugins: []config.TierPlugin{hierarchical(), {Name: "proportion"}}}}},
			[]string{`args.tiers[0].plugins[0].enableHierarchy: Invalid value: true: conflicts with proportion at args.tiers[0].plugins[1]: both order the queues; turn it off or remove proportion`},
		},
		"proportion and hierarchical drf in two tiers": {
			config.BatchQueueArgs{Actions: minimal, Tiers: []config.Tier{tier("proportion"), {Plugins: []config.TierPlugin{hierarchical()}}}},
			[]string{`args.tiers[1].plugins[0].enableHierarchy: Invalid value: true: conflicts with proportion at args.tiers[0].plugins[0]: both order the queues; turn it off or remove proportion`},
		},
		"capacity and hierarchical drf in a tier": {
			config.BatchQueueArgs{Actions: minimal, Tiers: []config.Tier{{Plugins: []config.TierPlugin{{Name: "capacity"}, hierarchical()}}}},
			[]string{`args.tiers[0].plugins[1].enableHierarchy: Invalid value: true: conflicts with capacity at args.tiers[0].plugins[0]: both order the queues; turn it off or remove capacity`},
		},
		"capacity and hierarchical drf in two tiers": {
			config.BatchQueueArgs{Actions: minimal, Tiers: []config.Tier{tier("capacity"), {Plugins: []config.TierPlugin{hierarchical()}}}}, nil,
		},
		"proportion and flat drf": {
			config.BatchQueueArgs{Actions: minimal, Tiers: []config.Tier{{Plugins: []config.TierPlugin{
				{Name: "drf", Switches: map[config.Switch]bool{config.EnableHierarchy: false}}, {Name: "proportion"},
			}}}},
			nil,
		},
		"a bad argument of a plugin": {
			config.BatchQueueArgs{Actions: minimal, Tiers: []config.Tier{tier("gang"), {Plugins: []config.TierPlugin{
				{Name: "sla", Arguments: map[string]runtime.RawExtension{"sla-waiting-time": raw("5")}},
			}}}},
			[]string{`args.tiers[1].plugins[0].arguments[sla-waiting-time]: Invalid value: 5: must be a duration with its unit, such as "10m"`},
		},
		"a bad argument of an action": {
			config.BatchQueueArgs{Actions: minimal, Configurations: []config.ActionConfiguration{
				{Name: "preempt", Arguments: map[string]runtime.RawExtension{"enableTopologyAwarePreemption": raw("5")}},
			}},
			[]string{`args.configurations[0].arguments[enableTopologyAwarePreemption]: Invalid value: 5: must be true or false`},
		},
		"arguments of an action that is not run": {
			config.BatchQueueArgs{Actions: minimal, Configurations: []config.ActionConfiguration{{Name: "shuffle"}}}, nil,
		},
		"arguments of a mistyped action": {
			config.BatchQueueArgs{Actions: minimal, Configurations: []config.ActionConfiguration{{Name: "alocate"}}},
			[]string{`args.configurations[0].name: Unsupported value: "alocate": did you mean "allocate"?`},
		},
		"arguments of no action": {
			config.BatchQueueArgs{Actions: minimal, Configurations: []config.ActionConfiguration{{}}},
			[]string{`args.configurations[0].name: Required value: name an action`},
		},
		"arguments of an action in two places": {
			config.BatchQueueArgs{Actions: minimal, Configurations: []config.ActionConfiguration{
				{Name: "allocate"}, {Name: "allocate", Arguments: map[string]runtime.RawExtension{"x": raw("5")}},
			}},
			[]string{
				`args.configurations[1].arguments[x]: Forbidden: unknown key; valid are "predicateErrorCacheEnable"`,
				`args.configurations[1].name: Duplicate value: "allocate": Volcano would use args.configurations[0] only; keep one of them`,
			},
		},
		"an admission for ever":                {config.BatchQueueArgs{Actions: minimal, AdmissionTimeout: metav1.Duration{}}, nil},
		"the shortest admission":               {config.BatchQueueArgs{Actions: minimal, AdmissionTimeout: metav1.Duration{Duration: time.Second}}, nil},
		"a shorter admission":                  {config.BatchQueueArgs{Actions: minimal, AdmissionTimeout: metav1.Duration{Duration: time.Second - 1}}, []string{`args.admissionTimeout: Invalid value: "999.999999ms": must be 0s, which is for ever, or at least 1s`}},
		"an admission before now":              {config.BatchQueueArgs{Actions: minimal, AdmissionTimeout: metav1.Duration{Duration: -time.Minute}}, []string{`args.admissionTimeout: Invalid value: "-1m0s": must be 0s, which is for ever, or at least 1s`}},
		"the soonest guests":                   {config.BatchQueueArgs{Actions: minimal, StalledAfter: metav1.Duration{Duration: time.Second}}, nil},
		"guests before that":                   {config.BatchQueueArgs{Actions: minimal, StalledAfter: metav1.Duration{Duration: time.Second - 1}}, []string{`args.stalledAfter: Invalid value: "999.999999ms": must be 0s, which is for ever, or at least 1s`}},
		"the longest claim":                    {config.BatchQueueArgs{Actions: minimal, PromiseGrace: metav1.Duration{Duration: 10 * time.Minute}}, nil},
		"a longer claim":                       {config.BatchQueueArgs{Actions: minimal, PromiseGrace: metav1.Duration{Duration: 10*time.Minute + 1}}, []string{`args.promiseGrace: Invalid value: "10m0.000000001s": must be from 0s, which is not at all, to 10m`}},
		"a gang that lost members is released": {config.BatchQueueArgs{Actions: minimal, ReleaseLost: true, BrokenTimeout: metav1.Duration{Duration: time.Second}}, nil},
		"a gang that lost members is released after ever": {config.BatchQueueArgs{Actions: minimal, ReleaseLost: true}, []string{
			`args.releaseLost: Invalid value: true: nothing is released while brokenTimeout is 0s, which is for ever`,
		}},
		"all errors are told": {
			config.BatchQueueArgs{
				Actions: []config.Action{"enque"},
				Tiers: []config.Tier{tier("gnag", "proportion"), {Plugins: []config.TierPlugin{
					hierarchical(), {Name: "gang", Arguments: map[string]runtime.RawExtension{"x": raw("1")}},
				}}},
				Configurations:   []config.ActionConfiguration{{Name: "preempty"}},
				AdmissionTimeout: metav1.Duration{Duration: 1},
				StalledAfter:     metav1.Duration{Duration: -1},
				PromiseGrace:     metav1.Duration{Duration: -time.Second},
				HalfTimeout:      metav1.Duration{Duration: 10},
				BrokenTimeout:    metav1.Duration{Duration: 11},
			},
			[]string{
				`args.actions: Required value: add allocate: without it nothing is scheduled`,
				`args.actions[0]: Unsupported value: "enque": did you mean "enqueue"?`,
				`args.admissionTimeout: Invalid value: "1ns": must be 0s, which is for ever, or at least 1s`,
				`args.brokenTimeout: Invalid value: "11ns": must be 0s, which is for ever, or at least 1s`,
				`args.configurations[0].name: Unsupported value: "preempty": did you mean "preempt"?`,
				`args.halfTimeout: Invalid value: "10ns": must be 0s, which is for ever, or at least 1s`,
				`args.promiseGrace: Invalid value: "-1s": must be from 0s, which is not at all, to 10m`,
				`args.stalledAfter: Invalid value: "-1ns": must be 0s, which is for ever, or at least 1s`,
				`args.tiers[0].plugins[0].name: Unsupported value: "gnag": did you mean "gang"?`,
				`args.tiers[1].plugins[0].enableHierarchy: Invalid value: true: conflicts with proportion at args.tiers[0].plugins[1]: both order the queues; turn it off or remove proportion`,
				`args.tiers[1].plugins[1].arguments[x]: Forbidden: gang takes no arguments; remove it`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, messages(validation.ValidateBatchQueueArgs(field.NewPath("args"), &tc.args))); diff != "" {
				t.Errorf("(-want,+got)\n%s", diff)
			}
		})
	}
}

func TestKeysThatAnEntryCannotHave(t *testing.T) {
	on := map[config.Switch]bool{config.EnableOverused: true}
	for name, tc := range map[string]struct {
		entry config.TierPlugin
		want  []string
	}{
		"a mistyped switch": {
			config.TierPlugin{Name: "gang", Unknown: map[string]runtime.RawExtension{"enablePremptable": raw("false")}},
			[]string{`tiers[0].plugins[0].enablePremptable: Forbidden: unknown key; did you mean "enablePreemptable"?`},
		},
		"a mistyped switch in Volcano's other spelling": {
			config.TierPlugin{Name: "gang", Unknown: map[string]runtime.RawExtension{"enabledOverusd": raw("false")}},
			[]string{`tiers[0].plugins[0].enabledOverusd: Forbidden: unknown key; did you mean "enableOverused"?`},
		},
		"a mistyped key": {
			config.TierPlugin{Name: "gang", Unknown: map[string]runtime.RawExtension{"argument": raw("{}")}},
			[]string{`tiers[0].plugins[0].argument: Forbidden: unknown key; did you mean "arguments"?`},
		},
		"a mistyped name leaves the plugin without one": {
			config.TierPlugin{Unknown: map[string]runtime.RawExtension{"nam": raw(`"gang"`)}},
			[]string{
				`tiers[0].plugins[0].nam: Forbidden: unknown key; did you mean "name"?`,
				`tiers[0].plugins[0].name: Required value: name a plugin`,
			},
		},
		"a switch that is neither on nor off": {
			config.TierPlugin{Name: "gang", Unknown: map[string]runtime.RawExtension{"enableOverused": raw("1"), "enabledVictim": raw(`"maybe"`)}},
			[]string{
				`tiers[0].plugins[0].enableOverused: Invalid value: 1: must be true or false`,
				`tiers[0].plugins[0].enabledVictim: Invalid value: "maybe": must be true or false`,
			},
		},
		"two spellings that contradict each other": {
			config.TierPlugin{Name: "gang", Switches: on, Unknown: map[string]runtime.RawExtension{"enabledOverused": raw("false")}},
			[]string{`tiers[0].plugins[0].enabledOverused: Invalid value: false: contradicts enableOverused: true, which is the same switch; keep one of them`},
		},
		"a name that is no string is not missing": {
			config.TierPlugin{Unknown: map[string]runtime.RawExtension{"name": raw("5")}},
			[]string{`tiers[0].plugins[0].name: Invalid value: 5: must be a string`},
		},
		"arguments that are no map": {
			config.TierPlugin{Name: "sla", Unknown: map[string]runtime.RawExtension{"arguments": raw(`["x"]`)}},
			[]string{`tiers[0].plugins[0].arguments: Invalid value: ["x"]: must be a map`},
		},
		"an entry that is only a name": {
			config.TierPlugin{Unknown: map[string]runtime.RawExtension{config.NotAMap: raw(`"gang"`)}},
			[]string{`tiers[0].plugins[0]: Invalid value: "gang": must be a map with the name of a plugin, and its switches and arguments if it has any`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			args := &config.BatchQueueArgs{Actions: []config.Action{"allocate"}, Tiers: []config.Tier{{Plugins: []config.TierPlugin{tc.entry}}}}
			if diff := cmp.Diff(tc.want, messages(validation.ValidateBatchQueueArgs(nil, args))); diff != "" {
				t.Errorf("(-want,+got)\n%s", diff)
			}
		})
	}
}

func TestEverySwitchIsSuggested(t *testing.T) {
	for _, s := range config.Switches() {
		t.Run(string(s), func(t *testing.T) {
			key := string(s) + "s"
			args := &config.BatchQueueArgs{Actions: []config.Action{"allocate"}, Tiers: []config.Tier{{Plugins: []config.TierPlugin{
				{Name: "gang", Unknown: map[string]runtime.RawExtension{key: raw("true")}},
			}}}}
			want := []string{fmt.Sprintf("tiers[0].plugins[0].%s: Forbidden: unknown key; did you mean %q?", key, s)}
			if diff := cmp.Diff(want, messages(validation.ValidateBatchQueueArgs(nil, args))); diff != "" {
				t.Errorf("(-want,+got)\n%s", diff)
			}
		})
	}
}
