// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package v1_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	v1 "github.com/caldera-scheduler/caldera/pkg/apis/config/v1"
)

func raw(text string) runtime.RawExtension { return runtime.RawExtension{Raw: []byte(text)} }

func TestEntryOfATier(t *testing.T) {
	type extensions = map[string]runtime.RawExtension
	for name, tc := range map[string]struct {
		file string
		want v1.TierPlugin
	}{
		"a name":                               {"name: gang", v1.TierPlugin{Name: "gang"}},
		"a switch":                             {"{name: gang, enablePreemptable: false}", v1.TierPlugin{Name: "gang", Switches: map[string]bool{"enablePreemptable": false}}},
		"a switch in quotes":                   {`{name: gang, enablePreemptable: "false"}`, v1.TierPlugin{Name: "gang", Switches: map[string]bool{"enablePreemptable": false}}},
		"a switch in Volcano's other spelling": {"{name: gang, enabledOverused: true}", v1.TierPlugin{Name: "gang", Switches: map[string]bool{"enableOverused": true}}},
		"the other spelling where Volcano has not": {"{name: gang, enabledJobOrder: true}", v1.TierPlugin{Name: "gang", Switches: map[string]bool{"enableJobOrder": true}}},
		"both spellings that agree":                {`{name: gang, enableVictim: true, enabledVictim: "true"}`, v1.TierPlugin{Name: "gang", Switches: map[string]bool{"enableVictim": true}}},
		"both spellings that do not":               {"{name: gang, enabledVictim: true, enableVictim: false}", v1.TierPlugin{Name: "gang", Switches: map[string]bool{"enableVictim": false}, Unknown: extensions{"enabledVictim": raw("true")}}},
		"a switch without a value is absent":       {"{name: gang, enableVictim: null}", v1.TierPlugin{Name: "gang"}},
		"a switch that is neither on nor off":      {"{name: gang, enableVictim: 1, enableOverused: maybe}", v1.TierPlugin{Name: "gang", Unknown: extensions{"enableVictim": raw("1"), "enableOverused": raw(`"maybe"`)}}},
		"a good spelling beside a bad one":         {"{name: gang, enableVictim: maybe, enabledVictim: false}", v1.TierPlugin{Name: "gang", Switches: map[string]bool{"enableVictim": false}, Unknown: extensions{"enableVictim": raw(`"maybe"`)}}},
		"a mistyped switch":                        {"{name: gang, enableVictims: true}", v1.TierPlugin{Name: "gang", Unknown: extensions{"enableVictims": raw("true")}}},
		"a switch in another case":                 {"{name: gang, EnableVictim: true}", v1.TierPlugin{Name: "gang", Unknown: extensions{"EnableVictim": raw("true")}}},
		"a key without a value":                    {"{name: gang, weight: null}", v1.TierPlugin{Name: "gang", Unknown: extensions{"weight": {}}}},
		"arguments":                                {`{name: a, arguments: {b: 1, c: "x", d: true, e: [{f: null}]}}`, v1.TierPlugin{Name: "a", Arguments: v1.Arguments{"b": raw("1"), "c": raw(`"x"`), "d": raw("true"), "e": raw(`[{"f":null}]`)}}},
		"no arguments":                             {"{name: a, arguments: {}}", v1.TierPlugin{Name: "a", Arguments: v1.Arguments{}}},
		"arguments without a value are absent":     {"{name: a, arguments: }", v1.TierPlugin{Name: "a"}},
		"an argument without a value":              {"{name: a, arguments: {b: }}", v1.TierPlugin{Name: "a", Arguments: v1.Arguments{"b": {}}}},
		"a number keeps its digits":                {`{name: a, arguments: {"b": 12345678901234567890}}`, v1.TierPlugin{Name: "a", Arguments: v1.Arguments{"b": raw("12345678901234567890")}}},
		"a name that is no string":                 {"name: 5", v1.TierPlugin{Unknown: extensions{"name": raw("5")}}},
		"arguments that are no map":                {"{name: a, arguments: [b]}", v1.TierPlugin{Name: "a", Unknown: extensions{"arguments": raw(`["b"]`)}}},
		"an entry that is no map":                  {"gang", v1.TierPlugin{Unknown: extensions{"": raw(`"gang"`)}}},
		"an entry that is a list":                  {"[gang]", v1.TierPlugin{Unknown: extensions{"": raw(`["gang"]`)}}},
		"nothing":                                  {"null", v1.TierPlugin{}},
	} {
		t.Run(name, func(t *testing.T) {
			data, err := yaml.YAMLToJSONStrict([]byte(tc.file))
			if err != nil {
				t.Fatal(err)
			}
			var got v1.TierPlugin
			if err := json.Unmarshal(data, &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want,+got)\n%s", diff)
			}
			written, err := json.Marshal(got)
			if err != nil {
				t.Fatal(err)
			}
			var again v1.TierPlugin
			if err := json.Unmarshal(written, &again); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(got, again); diff != "" {
				t.Errorf("written as %s (-before,+after)\n%s", written, diff)
			}
		})
	}
}

func TestKeysThatNoEntryCanHave(t *testing.T) {
	for name, tc := range map[string]struct{ entry, want string }{
		"a switch twice":    {`{"name":"gang","enableVictim":true,"enableVictim":true}`, `key "enableVictim" is given twice`},
		"the name twice":    {`{"name":"gang","name":"drf"}`, `key "name" is given twice`},
		"no key at all":     {`{"name":"gang","":1}`, "a key is empty"},
		"an argument twice": {`{"name":"tdm","arguments":{"a":1,"a":1}}`, `key "a" is given twice`},
	} {
		t.Run(name, func(t *testing.T) {
			var got v1.TierPlugin
			if err := json.Unmarshal([]byte(tc.entry), &got); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error is %v, want %q", err, tc.want)
			}
		})
	}
}

// Two profiles must have the same arguments, whoever wrote them.
func TestArgumentsAreReadInOneForm(t *testing.T) {
	var a, b v1.Arguments
	if err := json.Unmarshal([]byte(`{"x": {"b": "<", "a": [ 1 ]}}`), &a); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(`{"x":{"a":[1],"b":"\u003c"}}`), &b); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(a, b); diff != "" {
		t.Errorf("the same in two forms (-one,+other)\n%s", diff)
	}
}

func TestSwitchesKnowBothSpellings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.SampledFrom(config.Switches()).Draw(t, "switch")
		key := string(s)
		if rapid.Bool().Draw(t, "historical") {
			key = "enabled" + strings.TrimPrefix(key, "enable")
		}
		on := rapid.Bool().Draw(t, "on")
		entry, err := json.Marshal(map[string]any{"name": "gang", key: on})
		if err != nil {
			t.Fatal(err)
		}
		var got v1.TierPlugin
		if err := json.Unmarshal(entry, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(v1.TierPlugin{Name: "gang", Switches: map[string]bool{string(s): on}}, got); diff != "" {
			t.Fatalf("%s (-want,+got)\n%s", entry, diff)
		}
	})
}

func TestDefaultsOfTheQueueFillOnlyWhatIsAbsent(t *testing.T) {
	entries := func(names ...string) (tier v1.Tier) {
		for _, name := range names {
			tier.Plugins = append(tier.Plugins, v1.TierPlugin{Name: name})
		}
		return tier
	}
	actions := []string{"enqueue", "allocate", "backfill"}
	tiers := []v1.Tier{entries("priority", "gang", "conformance"), entries("overcommit", "drf", "predicates", "proportion", "nodeorder")}
	duration := func(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }
	for name, tc := range map[string]struct {
		given, want v1.BatchQueueArgs
	}{
		"everything is absent": {
			v1.BatchQueueArgs{},
			v1.BatchQueueArgs{Actions: actions, Tiers: tiers, AdmissionTimeout: duration(10 * time.Minute), StalledAfter: duration(10 * time.Second), PromiseGrace: duration(2 * time.Second), HalfTimeout: duration(time.Minute), BrokenTimeout: duration(5 * time.Minute)},
		},
		"actions are given": {
			v1.BatchQueueArgs{Actions: []string{"allocate"}},
			v1.BatchQueueArgs{Actions: []string{"allocate"}, Tiers: tiers, AdmissionTimeout: duration(10 * time.Minute), StalledAfter: duration(10 * time.Second), PromiseGrace: duration(2 * time.Second), HalfTimeout: duration(time.Minute), BrokenTimeout: duration(5 * time.Minute)},
		},
		"tiers are given": {
			v1.BatchQueueArgs{Tiers: []v1.Tier{entries("drf")}},
			v1.BatchQueueArgs{Actions: actions, Tiers: []v1.Tier{entries("drf")}, AdmissionTimeout: duration(10 * time.Minute), StalledAfter: duration(10 * time.Second), PromiseGrace: duration(2 * time.Second), HalfTimeout: duration(time.Minute), BrokenTimeout: duration(5 * time.Minute)},
		},
		"arguments of actions have no default": {
			v1.BatchQueueArgs{Configurations: []v1.ActionConfiguration{{Name: "preempt"}}},
			v1.BatchQueueArgs{
				Actions: actions, Tiers: tiers, AdmissionTimeout: duration(10 * time.Minute), StalledAfter: duration(10 * time.Second), PromiseGrace: duration(2 * time.Second), HalfTimeout: duration(time.Minute), BrokenTimeout: duration(5 * time.Minute),
				Configurations: []v1.ActionConfiguration{{Name: "preempt"}},
			},
		},
		"none is a value": {
			v1.BatchQueueArgs{Actions: []string{}, Tiers: []v1.Tier{}, AdmissionTimeout: duration(0), StalledAfter: duration(0), PromiseGrace: duration(0), HalfTimeout: duration(0), BrokenTimeout: duration(0)},
			v1.BatchQueueArgs{Actions: []string{}, Tiers: []v1.Tier{}, AdmissionTimeout: duration(0), StalledAfter: duration(0), PromiseGrace: duration(0), HalfTimeout: duration(0), BrokenTimeout: duration(0)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := v1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			got := tc.given.DeepCopy()
			scheme.Default(got)
			if diff := cmp.Diff(&tc.want, got); diff != "" {
				t.Errorf("(-want,+got)\n%s", diff)
			}
		})
	}
}

func TestDefaultsOfTheQueueAreNotShared(t *testing.T) {
	var a, b v1.BatchQueueArgs
	v1.SetDefaults_BatchQueueArgs(&a)
	v1.SetDefaults_BatchQueueArgs(&b)
	a.Actions[0], a.Tiers[0].Plugins[0].Name, a.AdmissionTimeout.Duration, a.StalledAfter.Duration, a.HalfTimeout.Duration, a.BrokenTimeout.Duration = "x", "x", 1, 1, 1, 1
	if b.Actions[0] == "x" || b.Tiers[0].Plugins[0].Name == "x" || b.AdmissionTimeout.Duration == 1 || b.StalledAfter.Duration == 1 || b.HalfTimeout.Duration == 1 || b.BrokenTimeout.Duration == 1 {
		t.Error("changing the defaults of one profile changes those of another")
	}
}
