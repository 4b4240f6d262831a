// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package schedulerconf_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/apis/config/validation"
	"github.com/caldera-scheduler/caldera/pkg/volcano/schedulerconf"
)

type (
	switches  = map[config.Switch]bool
	arguments = map[string]runtime.RawExtension
)

func raw(text string) runtime.RawExtension { return runtime.RawExtension{Raw: []byte(text)} }

func plugin(name string) config.TierPlugin { return config.TierPlugin{Name: name} }

func tier(plugins ...config.TierPlugin) config.Tier { return config.Tier{Plugins: plugins} }

func defaultTiers() []config.Tier {
	return []config.Tier{
		tier(plugin("priority"), plugin("gang"), plugin("conformance")),
		tier(plugin("overcommit"), plugin("drf"), plugin("predicates"), plugin("proportion"), plugin("nodeorder")),
	}
}

func defaultActions() []config.Action {
	return []config.Action{config.Enqueue, config.Allocate, config.Backfill}
}

// read is a file of testdata as it should be read, without the time-out that all have.
func read() map[string]config.BatchQueueArgs {
	return map[string]config.BatchQueueArgs{
		"default.conf": {Actions: defaultActions(), Tiers: defaultTiers()},
		"helm-chart.conf": {Actions: defaultActions(), Tiers: []config.Tier{
			tier(plugin("priority"), config.TierPlugin{Name: "gang", Switches: switches{config.EnablePreemptable: false}}, plugin("conformance")),
			tier(plugin("overcommit"), config.TierPlugin{Name: "drf", Switches: switches{config.EnablePreemptable: false}},
				plugin("predicates"), plugin("proportion"), plugin("nodeorder"), plugin("binpack")),
		}},
		"quoted-by-tools.conf": {
			Actions: []config.Action{"enqueue", "allocate", "preempt", "reclaim", "backfill"},
			Tiers: []config.Tier{
				tier(
					config.TierPlugin{Name: "gang", Switches: switches{config.EnableJobReady: true, config.EnableOverused: false}},
					config.TierPlugin{Name: "sla", Arguments: arguments{"sla-waiting-time": raw(`"1h"`)}},
				),
				tier(
					config.TierPlugin{Name: "overcommit", Arguments: arguments{"overcommit-factor": raw(`"1.5"`)}},
					config.TierPlugin{Name: "capacity", Switches: switches{config.EnableHierarchy: true}, Arguments: arguments{
						"ancestorReclaimLevel": raw(`"1"`), "capacity.DynamicResourceAllocationEnable": raw(`"false"`),
					}},
					config.TierPlugin{Name: "binpack", Arguments: arguments{
						"binpack.weight": raw(`"10"`), "binpack.resources": raw(`"nvidia.com/gpu, example.com/fpga"`),
					}},
				),
			},
			Configurations: []config.ActionConfiguration{{Name: config.Preempt, Arguments: arguments{
				"enableTopologyAwarePreemption": raw(`"true"`), "topologyAwarePreemptWorkerNum": raw(`"8"`),
			}}},
			Metrics: map[string]string{
				"type": "prometheus", "address": "http://prometheus.monitoring:9090", "interval": "30s", "tls.insecureSkipVerify": "true",
			},
		},
		"without-enqueue.conf": {
			Actions: []config.Action{config.Allocate, config.Backfill},
			Tiers:   []config.Tier{tier(plugin("gang"), plugin("priority")), tier(plugin("predicates"), plugin("proportion"))},
		},
		"capacity-hierarchy.conf": {
			Actions: []config.Action{"enqueue", "allocate", "reclaim", "preempt", "backfill"},
			Tiers: []config.Tier{
				tier(plugin("priority"), plugin("gang"), plugin("conformance")),
				tier(
					config.TierPlugin{Name: "drf", Switches: switches{config.EnablePreemptable: false}},
					plugin("predicates"),
					config.TierPlugin{
						Name: "capacity", Switches: switches{config.EnableHierarchy: true},
						Arguments: arguments{"ancestorReclaimLevel": raw("2")},
					},
					plugin("nodeorder"),
				),
			},
		},
		"drf-hierarchy.conf": {
			Actions: []config.Action{"enqueue", "allocate", "reclaim"},
			Tiers: []config.Tier{
				tier(plugin("gang")),
				tier(config.TierPlugin{Name: "drf", Switches: switches{config.EnableHierarchy: true}}, plugin("predicates")),
			},
		},
		"gang-eviction.conf": {
			Actions: []config.Action{"allocate", "backfill", "gangreclaim", "gangpreempt"},
			Tiers: []config.Tier{
				tier(plugin("capacity"), plugin("priority"), plugin("gang")),
				tier(plugin("predicates"), config.TierPlugin{Name: "network-topology-aware", Arguments: arguments{"weight": raw("10")}}),
			},
			Configurations: []config.ActionConfiguration{
				{Name: config.Allocate, Arguments: arguments{"predicateErrorCacheEnable": raw("false")}},
				{Name: config.GangPreempt, Arguments: arguments{"maxDomains": raw("4"), "allowWholeBundle": raw("false")}},
			},
		},
		"revocable-zones.conf": {
			Actions: []config.Action{"enqueue", "allocate", "preempt", "shuffle"},
			Tiers: []config.Tier{
				tier(
					plugin("priority"), plugin("gang"),
					config.TierPlugin{Name: "tdm", Switches: switches{config.EnableVictim: true}, Arguments: arguments{
						"tdm.revocable-zone.night": raw(`"22:00-6:00"`), "tdm.revocable-zone.lunch": raw(`"12:00-13:30"`),
						"tdm.evict.period": raw(`"2m"`),
					}},
					plugin("pdb"), plugin("cdp"),
				),
				tier(plugin("predicates"), plugin("resourcequota")),
			},
		},
		"nested-arguments.conf": {
			Actions: []config.Action{"enqueue", "allocate", "shuffle"},
			Tiers: []config.Tier{
				tier(plugin("gang"), config.TierPlugin{Name: "rescheduling", Arguments: arguments{
					"interval": raw(`"5m"`),
					"strategies": raw(`[{"name":"lowNodeUtilization","params":` +
						`{"targetThresholds":{"cpu":70,"memory":70},"thresholds":{"cpu":20,"memory":20}}}]`),
				}}),
				tier(
					plugin("predicates"),
					config.TierPlugin{Name: "resource-strategy-fit", Arguments: arguments{
						"resourceStrategyFitWeight": raw("10"),
						"resources":                 raw(`{"cpu":{"type":"LeastAllocated","weight":1},"nvidia.com/gpu":{"type":"MostAllocated","weight":2}}`),
					}},
					config.TierPlugin{Name: "nodegroup", Arguments: arguments{"strict": raw("false")}},
					config.TierPlugin{Name: "usage", Arguments: arguments{"thresholds": raw(`{"cpu":80}`), "usage.weight": raw("5")}},
					config.TierPlugin{Name: "task-topology", Arguments: arguments{"task-topology.weight": raw("10")}},
				),
			},
			Metrics: map[string]string{"type": "prometheus", "address": "http://prometheus.monitoring:9090"},
		},
		"anchors.conf": {
			Actions: defaultActions(),
			Tiers: []config.Tier{
				tier(
					config.TierPlugin{Name: "gang", Switches: switches{config.EnablePreemptable: false}},
					config.TierPlugin{Name: "drf", Switches: switches{config.EnablePreemptable: false}},
				),
				{Plugins: []config.TierPlugin{}},
			},
		},
	}
}

func TestFilesAreRead(t *testing.T) {
	want := read()
	files, err := filepath.Glob("testdata/*.conf")
	if err != nil || len(files) != len(want) {
		t.Fatalf("testdata has %d files, want the %d that are expected: %v", len(files), len(want), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got, err := schedulerconf.Parse(data)
			if err != nil {
				t.Fatal(err)
			}
			args := want[filepath.Base(file)]
			args.AdmissionTimeout, args.StalledAfter = metav1.Duration{Duration: 10 * time.Minute}, metav1.Duration{Duration: 10 * time.Second}
			args.PromiseGrace = metav1.Duration{Duration: 2 * time.Second}
			args.HalfTimeout, args.BrokenTimeout = metav1.Duration{Duration: time.Minute}, metav1.Duration{Duration: 5 * time.Minute}
			if diff := cmp.Diff(&args, got); diff != "" {
				t.Errorf("(-want,+got)\n%s", diff)
			}
		})
	}
}

func TestWhatIsAbsentIsVolcanosDefault(t *testing.T) {
	for name, tc := range map[string]struct {
		file string
		want config.BatchQueueArgs
	}{
		"an empty file":                 {"", config.BatchQueueArgs{Actions: defaultActions(), Tiers: defaultTiers()}},
		"nothing but a comment":         {"# volcano-scheduler.conf\n---\n", config.BatchQueueArgs{Actions: defaultActions(), Tiers: defaultTiers()}},
		"only actions":                  {"actions: allocate", config.BatchQueueArgs{Actions: []config.Action{"allocate"}, Tiers: defaultTiers()}},
		"only tiers":                    {"tiers: [{plugins: [{name: gang}]}]", config.BatchQueueArgs{Actions: defaultActions(), Tiers: []config.Tier{tier(plugin("gang"))}}},
		"sections without a value":      {"actions:\ntiers:\nconfigurations:\nmetrics:\n", config.BatchQueueArgs{Actions: defaultActions(), Tiers: defaultTiers()}},
		"no tiers are not the defaults": {"tiers: []", config.BatchQueueArgs{Actions: defaultActions(), Tiers: []config.Tier{}}},
		"a comment before the document": {"# License\n---\nactions: allocate\n", config.BatchQueueArgs{Actions: []config.Action{"allocate"}, Tiers: defaultTiers()}},
		"lines that end as on Windows":  {"actions: allocate\r\ntiers:\r\n- plugins:\r\n  - name: gang\r\n", config.BatchQueueArgs{Actions: []config.Action{"allocate"}, Tiers: []config.Tier{tier(plugin("gang"))}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := schedulerconf.Parse([]byte(tc.file))
			if err != nil {
				t.Fatal(err)
			}
			tc.want.AdmissionTimeout, tc.want.StalledAfter = metav1.Duration{Duration: 10 * time.Minute}, metav1.Duration{Duration: 10 * time.Second}
			tc.want.PromiseGrace = metav1.Duration{Duration: 2 * time.Second}
			tc.want.HalfTimeout, tc.want.BrokenTimeout = metav1.Duration{Duration: time.Minute}, metav1.Duration{Duration: 5 * time.Minute}
			if diff := cmp.Diff(&tc.want, got); diff != "" {
				t.Errorf("(-want,+got)\n%s", diff)
			}
		})
	}
}

func TestWhatIsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		file string
		want []string
	}{
		"a mistyped section":         {"tires: []", []string{`tires: Forbidden: unknown key; did you mean "tiers"?`}},
		"a section of Caldera":       {"admissionTimeout: 1m", []string{`admissionTimeout: Forbidden: unknown key; valid are "actions", "configurations", "metrics", "tiers"`}},
		"a mistyped key of a tier":   {"tiers: [{plugin: []}]", []string{`tiers[0].plugin: Forbidden: unknown key; did you mean "plugins"?`}},
		"a mistyped key of a plugin": {"tiers: [{plugins: [{name: gang, enableJobOrdr: true}]}]", []string{`tiers[0].plugins[0].enableJobOrdr: Forbidden: unknown key; did you mean "enableJobOrder"?`}},
		"a mistyped key of an action": {
			"configurations: [{name: preempt, argument: {}}]",
			[]string{`configurations[0].argument: Forbidden: unknown key; did you mean "arguments"?`},
		},
		"a mistyped metric":      {"metrics: {adress: a}", []string{`metrics.adress: Forbidden: unknown key; did you mean "address"?`}},
		"a comma at the end":     {`actions: "allocate, backfill,"`, []string{`actions[2]: Required value: name an action, or remove the comma before or after it`}},
		"two commas":             {`actions: "allocate,,backfill"`, []string{`actions[1]: Required value: name an action, or remove the comma before or after it`}},
		"a blank for a comma":    {`actions: "allocate backfill"`, []string{`actions: Required value: add allocate: without it nothing is scheduled`, `actions[0]: Unsupported value: "allocate backfill": valid are "allocate", "backfill", "consolidate", "enqueue", "gangpreempt", "gangreclaim", "preempt", "reclaim", "shuffle"`}},
		"actions as a list":      {"actions: [allocate]", []string{`actions: Invalid value: ["allocate"]: must be a string with commas, such as "enqueue, allocate, backfill"`}},
		"tiers as a map":         {"tiers: {plugins: []}", []string{`tiers: Invalid value: {"plugins":[]}: must be a list`}},
		"plugins as a map":       {"tiers: [{plugins: {name: gang}}]", []string{`tiers[0].plugins: Invalid value: {"name":"gang"}: must be a list`}},
		"a tier as a name":       {"tiers: [gang]", []string{`tiers[0]: Invalid value: "gang": must be a map with the keys plugins`}},
		"a plugin as a name":     {"tiers: [{plugins: [gang]}]", []string{`tiers[0].plugins[0]: Invalid value: "gang": must be a map with the name of a plugin, and its switches and arguments if it has any`}},
		"a plugin with no key":   {`tiers: [{plugins: [{"": gang}]}]`, []string{`tiers[0].plugins[0]: Invalid value: {"":"gang"}: a key is empty`}},
		"an action as a name":    {"configurations: [preempt]", []string{`configurations[0]: Invalid value: "preempt": must be a map with the keys name, arguments`}},
		"an action as a number":  {"configurations: [{name: 5}]", []string{`configurations[0].name: Invalid value: 5: must be a string`}},
		"arguments as a list":    {"configurations: [{name: preempt, arguments: [a]}]", []string{`configurations[0].arguments: Invalid value: ["a"]: must be a map`}},
		"a metric as a list":     {"metrics: {type: [prometheus]}", []string{`metrics[type]: Invalid value: ["prometheus"]: must be a string`}},
		"metrics as a name":      {"metrics: prometheus", []string{`metrics: Invalid value: "prometheus": must be a map with the keys ` + "type, address, interval, timeout, tls.insecureSkipVerify, prometheus.nodeLabel, elasticsearch.index, elasticsearch.hostnameFieldName, elasticsearch.username, elasticsearch.password"}},
		"a list for a file":      {"- actions: allocate", []string{`the configuration is [{"actions":"allocate"}]; it must be a map with the keys actions, tiers, configurations, metrics`}},
		"two documents":          {"actions: allocate\n---\ntiers: []\n", []string{"the configuration is more than one YAML document; remove the line ---"}},
		"what validation checks": {"tiers: [{plugins: [{name: proportion}, {name: capacity}]}]", []string{`tiers[0].plugins[1].name: Invalid value: "capacity": conflicts with proportion at tiers[0].plugins[0]: both say what a queue may have; remove one of them`}},
		"all errors are told": {
			"actions: 'enqueue,'\ntires: []\ntiers:\n- plugins: gang\n- plugins:\n  - name: drff\n    enabledOverused: true\n    enableOverused: false\n" +
				"configurations:\n- name: [preempt]\n  arguments: {a: 1}\n- name: alocate\n",
			[]string{
				`actions: Required value: add allocate: without it nothing is scheduled`,
				`actions[1]: Required value: name an action, or remove the comma before or after it`,
				`configurations[0].name: Invalid value: ["preempt"]: must be a string`,
				`configurations[1].name: Unsupported value: "alocate": did you mean "allocate"?`,
				`tiers[0].plugins: Invalid value: "gang": must be a list`,
				`tiers[1].plugins[0].enabledOverused: Invalid value: true: contradicts enableOverused: false, which is the same switch; keep one of them`,
				`tiers[1].plugins[0].name: Unsupported value: "drff": did you mean "drf"?`,
				`tires: Forbidden: unknown key; did you mean "tiers"?`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			args, err := schedulerconf.Parse([]byte(tc.file))
			if args != nil {
				t.Errorf("read as %v, want nothing", args)
			}
			if diff := cmp.Diff(tc.want, messages(err)); diff != "" {
				t.Errorf("(-want,+got)\n%s", diff)
			}
		})
	}
}

func TestWhatIsNotYAMLIsRefusedWithTheLine(t *testing.T) {
	for name, tc := range map[string]struct{ file, want string }{
		"a key given twice":   {"actions: allocate\ntiers: []\nactions: backfill\n", `line 3: key "actions" already set`},
		"a wrong indent":      {"tiers:\n- plugins:\n - name: gang\n", "line 2"},
		"a quote left open":   {"actions: \"allocate\n", "line 2"},
		"a control character": {"actions: allocate\x01\n", "control characters are not allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			args, err := schedulerconf.Parse([]byte(tc.file))
			if args != nil || err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("read as %v with error %v, want one that says %q", args, err, tc.want)
			}
		})
	}
}

// Whatever the bytes are, they are read into valid arguments or refused.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/*.conf")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte("tiers: [gang, {plugins: [5, {name: }]}]\nconfigurations: [{name: 5}]\nmetrics: {type: }\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		args, err := schedulerconf.Parse(data)
		if (args == nil) == (err == nil) {
			t.Fatalf("read as %v with error %v", args, err)
		}
		if args != nil {
			if err := validation.ValidateBatchQueueArgs(nil, args); err != nil {
				t.Error(err)
			}
		}
	})
}

// messages are those of all errors that one is made of, sorted.
func messages(err error) []string {
	if err == nil {
		return nil
	}
	var all utilerrors.Aggregate
	if !errors.As(err, &all) {
		return []string{err.Error()}
	}
	var list []string
	for _, e := range all.Errors() {
		list = append(list, e.Error())
	}
	slices.Sort(list)
	return list
}
