// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package scheme_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	scheduler "k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"pgregory.net/rapid"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	v1 "github.com/caldera-scheduler/caldera/pkg/apis/config/v1"
	"github.com/caldera-scheduler/caldera/pkg/apis/config/validation"
)

// loadQueue reads the arguments of the queue in a configuration file, as kube-scheduler does.
func loadQueue(pluginConfig string) (*config.BatchQueueArgs, error) {
	file := "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n- schedulerName: volcano\n" +
		"  plugins: {queueSort: {enabled: [{name: BatchQueue}], disabled: [{name: '*'}]}}\n" + pluginConfig
	object, _, err := scheduler.Codecs.UniversalDecoder().Decode([]byte(file), nil, nil)
	if err != nil {
		return nil, err
	}
	for _, c := range object.(*schedulerconfig.KubeSchedulerConfiguration).Profiles[0].PluginConfig {
		if c.Name == "BatchQueue" {
			return c.Args.(*config.BatchQueueArgs), nil
		}
	}
	return nil, nil
}

// plain are plugins without switches or arguments.
func plain(names ...string) config.Tier {
	var tier config.Tier
	for _, name := range names {
		tier.Plugins = append(tier.Plugins, config.TierPlugin{Name: name})
	}
	return tier
}

func TestWhatKubeSchedulerReadsForTheQueue(t *testing.T) {
	raw := func(text string) runtime.RawExtension { return runtime.RawExtension{Raw: []byte(text)} }
	// with are Volcano's defaults but for some of them.
	with := func(change func(*config.BatchQueueArgs)) *config.BatchQueueArgs {
		args := &config.BatchQueueArgs{
			Actions:          []config.Action{config.Enqueue, config.Allocate, config.Backfill},
			Tiers:            []config.Tier{plain("priority", "gang", "conformance"), plain("overcommit", "drf", "predicates", "proportion", "nodeorder")},
			AdmissionTimeout: metav1.Duration{Duration: 10 * time.Minute},
			StalledAfter:     metav1.Duration{Duration: 10 * time.Second},
			PromiseGrace:     metav1.Duration{Duration: 2 * time.Second},
			HalfTimeout:      metav1.Duration{Duration: time.Minute},
			BrokenTimeout:    metav1.Duration{Duration: 5 * time.Minute},
		}
		if change != nil {
			change(args)
		}
		return args
	}
	for name, tc := range map[string]struct {
		pluginConfig string
		want         *config.BatchQueueArgs
	}{
		"a profile that gives no arguments": {"", with(nil)},
		"empty arguments":                   {"  pluginConfig: [{name: BatchQueue, args: {}}]", with(nil)},
		"their kind": {
			"  pluginConfig: [{name: BatchQueue, args: {apiVersion: kubescheduler.config.k8s.io/v1, kind: BatchQueueArgs}}]", with(nil),
		},
		"actions": {
			"  pluginConfig: [{name: BatchQueue, args: {actions: [enqueue, allocate, preempt]}}]",
			with(func(a *config.BatchQueueArgs) {
				a.Actions = []config.Action{config.Enqueue, config.Allocate, config.Preempt}
			}),
		},
		"an admission for ever": {
			"  pluginConfig: [{name: BatchQueue, args: {admissionTimeout: 0s}}]",
			with(func(a *config.BatchQueueArgs) { a.AdmissionTimeout.Duration = 0 }),
		},
		"no guests": {
			"  pluginConfig: [{name: BatchQueue, args: {stalledAfter: 0s}}]",
			with(func(a *config.BatchQueueArgs) { a.StalledAfter.Duration = 0 }),
		},
		"tiers with switches and arguments, as Volcano's file has them": {
			`
  pluginConfig:
  - name: BatchQueue
    args:
      tiers:
      - plugins:
        - name: gang
          enablePreemptable: false
          enabledOverused: "false"
        - name: sla
          arguments: {sla-waiting-time: 1h}
      - plugins:
        - name: rescheduling
          arguments:
            interval: 5m
            strategies:
            - name: lowNodeUtilization
              params: {thresholds: {cpu: 20}}
      metrics: {type: prometheus_adaptor, interval: 1m}
      configurations:
      - name: preempt
        arguments: {enableTopologyAwarePreemption: "true"}
`,
			with(func(a *config.BatchQueueArgs) {
				a.Tiers = []config.Tier{
					{Plugins: []config.TierPlugin{
						{Name: "gang", Switches: map[config.Switch]bool{config.EnablePreemptable: false, config.EnableOverused: false}},
						{Name: "sla", Arguments: map[string]runtime.RawExtension{"sla-waiting-time": raw(`"1h"`)}},
					}},
					{Plugins: []config.TierPlugin{{Name: "rescheduling", Arguments: map[string]runtime.RawExtension{
						"interval": raw(`"5m"`), "strategies": raw(`[{"name":"lowNodeUtilization","params":{"thresholds":{"cpu":20}}}]`),
					}}}},
				}
				a.Metrics = map[string]string{"type": "prometheus_adaptor", "interval": "1m"}
				a.Configurations = []config.ActionConfiguration{
					{Name: config.Preempt, Arguments: map[string]runtime.RawExtension{"enableTopologyAwarePreemption": raw(`"true"`)}},
				}
			}),
		},
		"what cannot be used is kept, for the validation to refuse": {
			"  pluginConfig: [{name: BatchQueue, args: {actions: [], tiers: [{plugins: [{name: 5, enablePremptable: true}, gang]}], admissionTimeout: -1s, stalledAfter: 1ms, promiseGrace: 1h, halfTimeout: 1ms}}]",
			&config.BatchQueueArgs{
				Actions: []config.Action{},
				Tiers: []config.Tier{{Plugins: []config.TierPlugin{
					{Unknown: map[string]runtime.RawExtension{"name": raw("5"), "enablePremptable": raw("true")}},
					{Unknown: map[string]runtime.RawExtension{config.NotAMap: raw(`"gang"`)}},
				}}},
				AdmissionTimeout: metav1.Duration{Duration: -time.Second},
				StalledAfter:     metav1.Duration{Duration: time.Millisecond},
				PromiseGrace:     metav1.Duration{Duration: time.Hour},
				HalfTimeout:      metav1.Duration{Duration: time.Millisecond},
				BrokenTimeout:    metav1.Duration{Duration: 5 * time.Minute},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := loadQueue(tc.pluginConfig)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want,+got)\n%s", diff)
			}
		})
	}
}

func TestDefaultsOfTheQueueAreValid(t *testing.T) {
	args, err := loadQueue("")
	if err != nil {
		t.Fatal(err)
	}
	if err := validation.ValidateBatchQueueArgs(nil, args); err != nil {
		t.Error(err)
	}
}

func TestWhatKubeSchedulerRefusesForTheQueue(t *testing.T) {
	for name, tc := range map[string]struct {
		args string
		// want is a part of the error that tells what to change.
		want string
	}{
		"a mistyped field":                {"{action: [allocate]}", `unknown field "action"`},
		"a mistyped field of a tier":      {"{tiers: [{plugin: []}]}", `unknown field "tiers[0].plugin"`},
		"a mistyped field of an action":   {"{configurations: [{name: preempt, args: {}}]}", `unknown field "configurations[0].args"`},
		"actions as in Volcano's file":    {`{actions: "enqueue, allocate"}`, "actions of type []string"},
		"a switch given twice":            {"{tiers: [{plugins: [{name: gang, enableVictim: true, enableVictim: true}]}]}", `"enableVictim" already set`},
		"a number for a duration":         {"{admissionTimeout: 90}", "admissionTimeout of type string"},
		"arguments of an action, no map":  {"{configurations: [{name: preempt, arguments: x}]}", "must be a map"},
		"a list that is not one of tiers": {"{tiers: {plugins: []}}", "tiers of type []v1.Tier"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := loadQueue("  pluginConfig: [{name: BatchQueue, args: " + tc.args + "}]")
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error is %v, want one that says %q", err, tc.want)
			}
		})
	}
}

// text is what YAML can hold and a key can be: no control characters, and not empty.
func text() *rapid.Generator[string] {
	return rapid.StringMatching("[a-dA-D0-2<>&é.:, \"'#{}\\[\\]-]{1,6}")
}

// anything is any JSON that an argument may be.
func anything() *rapid.Generator[any] {
	scalar := rapid.OneOf(
		rapid.Just[any](nil), rapid.Bool().AsAny(), rapid.Int32().AsAny(), text().AsAny(), rapid.Float64Range(-1e6, 1e6).AsAny(),
	)
	return rapid.OneOf(scalar, rapid.SliceOfN(scalar, 0, 3).AsAny(), rapid.MapOfN(text(), scalar, 0, 3).AsAny())
}

// written is a queue's configuration as a user may write it, right or wrong.
func written(t *rapid.T) map[string]any {
	key := rapid.OneOf(text(), rapid.SampledFrom([]string{
		"name", "arguments", "enableOverused", "enabledOverused", "enableJobOrder", "enabledJobOrder", "enableHierarchy",
	}))
	arguments := rapid.MapOfN(text(), anything(), 0, 3)
	entry := rapid.Custom(func(t *rapid.T) any {
		if rapid.IntRange(0, 9).Draw(t, "no map") == 0 {
			return anything().Draw(t, "entry")
		}
		keys := rapid.MapOfN(key, rapid.OneOf(rapid.Bool().AsAny(), rapid.SampledFrom([]string{"true", "false", "x"}).AsAny(), anything()), 0, 4).Draw(t, "keys")
		if rapid.Bool().Draw(t, "has name") {
			keys["name"] = rapid.SampledFrom([]string{"gang", "drf", ""}).Draw(t, "name")
		}
		if rapid.Bool().Draw(t, "has arguments") {
			keys["arguments"] = arguments.Draw(t, "arguments")
		}
		return keys
	})
	args := map[string]any{}
	if list := optional(t, "actions", rapid.SliceOfN(rapid.SampledFrom([]string{"enqueue", "allocate", "x", ""}), 0, 3)); list != nil {
		args["actions"] = *list
	}
	if tiers := optional(t, "tiers", rapid.SliceOfN(rapid.SliceOfN(entry, 0, 3), 0, 3)); tiers != nil {
		list := []any{}
		for _, plugins := range *tiers {
			list = append(list, map[string]any{"plugins": plugins})
		}
		args["tiers"] = list
	}
	if given := optional(t, "configurations", arguments); given != nil {
		args["configurations"] = []any{map[string]any{"name": "preempt", "arguments": *given}}
	}
	if n := optional(t, "timeout", rapid.Int64()); n != nil {
		args["admissionTimeout"] = time.Duration(*n).String()
	}
	if n := optional(t, "stalledAfter", rapid.Int64()); n != nil {
		args["stalledAfter"] = time.Duration(*n).String()
	}
	if n := optional(t, "promiseGrace", rapid.Int64()); n != nil {
		args["promiseGrace"] = time.Duration(*n).String()
	}
	if n := optional(t, "halfTimeout", rapid.Int64()); n != nil {
		args["halfTimeout"] = time.Duration(*n).String()
	}
	return args
}

func TestWhatIsWrittenForTheQueueReadsTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		given, err := json.Marshal(written(t))
		if err != nil {
			t.Fatal(err)
		}
		before, err := loadQueue("  pluginConfig: [{name: BatchQueue, args: " + string(given) + "}]")
		if err != nil {
			t.Fatal(err)
		}
		info, _ := runtime.SerializerInfoForMediaType(scheduler.Codecs.SupportedMediaTypes(), runtime.ContentTypeJSON)
		again, err := runtime.Encode(scheduler.Codecs.EncoderForVersion(info.Serializer, v1.SchemeGroupVersion), before)
		if err != nil {
			t.Fatal(err)
		}
		after, err := loadQueue("  pluginConfig: [{name: BatchQueue, args: " + string(again) + "}]")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(before, after); diff != "" {
			t.Fatalf("given as %s, written as %s (-before,+after)\n%s", given, again, diff)
		}
	})
}

func TestConversionOfTheQueueLosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		given, err := json.Marshal(written(t))
		if err != nil {
			t.Fatal(err)
		}
		internal, err := loadQueue("  pluginConfig: [{name: BatchQueue, args: " + string(given) + "}]")
		if err != nil {
			t.Fatal(err)
		}
		var versioned v1.BatchQueueArgs
		if err := scheduler.Scheme.Convert(internal, &versioned, nil); err != nil {
			t.Fatal(err)
		}
		var again config.BatchQueueArgs
		if err := scheduler.Scheme.Convert(&versioned, &again, nil); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(internal, &again); diff != "" {
			t.Fatalf("%s to v1 and back (-want,+got)\n%s", given, diff)
		}
	})
}
