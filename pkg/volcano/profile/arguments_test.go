// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package profile_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/volcano/arguments"
	"github.com/caldera-scheduler/caldera/pkg/volcano/profile"
)

// TestEveryPluginOfVolcanoIsAcceptedInATier has the names of Volcano's pkg/scheduler/plugins/factory.go.
func TestEveryPluginOfVolcanoIsAcceptedInATier(t *testing.T) {
	factory := []string{
		"binpack", "capacity", "cdp", "conformance", "deviceshare", "drf", "extender", "gang", "network-topology-aware", "nodegroup",
		"nodeorder", "numa-aware", "overcommit", "pdb", "predicates", "priority", "proportion", "rescheduling", "resource-strategy-fit",
		"resourcequota", "sla", "task-topology", "tdm", "usage",
	}
	for _, name := range factory {
		// usage does nothing without a source of loads, which is an error.
		conf := fmt.Sprintf("tiers: [{plugins: [{name: %s}]}]\nmetrics: {type: prometheus, address: 'http://prometheus:9090'}", name)
		if _, err := profile.Read(name+".conf", []byte(conf), profile.Only); err != nil {
			t.Error(err)
		}
	}
	of := append(slices.Clone(factory), config.PluginReservation, config.PluginFragmentation)
	slices.Sort(of)
	if diff := cmp.Diff(of, arguments.Plugins()); diff != "" {
		t.Errorf("plugins of Volcano with reservation, and those that a tier may hold (-want,+got)\n%s", diff)
	}
}

// probe is a key that no map has: the error about it lists those that the map may have.
const probe = "?"

// opened are arguments of which others depend, with a probe in each of their maps; NAME stands for the name of a resource.
var opened = map[string]string{
	"binpack":                `{"binpack.resources": NAME}`,
	"network-topology-aware": `{"hypernode.binpack.resources": NAME}`,
	"resource-strategy-fit": `{resources: {NAME: {"?": 0}}, sra: {resources: NAME, resourceWeight: {"?": 0}, "?": 0},
		proportional: {resources: NAME, resourceProportion: {"?": 0}, "?": 0}}`,
	"rescheduling": `{strategies: [{name: lowNodeUtilization, params: {thresholds: {"?": 0}, targetThresholds: {"?": 0}, "?": 0}, "?": 0}]}`,
}

var (
	quoted = regexp.MustCompile(`"([^"]*)"`)
	index  = regexp.MustCompile(`\[\d+\]`)
)

// validKeys reads the keys that errors about probes list. Those of a map in a map have the keys of both, with a dot.
func validKeys(errs field.ErrorList) []string {
	var keys, maps []string
	for _, e := range errs {
		_, list, ok := strings.Cut(e.Detail, "unknown key; valid are ")
		if !ok {
			continue
		}
		_, at, _ := strings.Cut(index.ReplaceAllString(e.Field, ""), "arguments")
		at = strings.NewReplacer("[", "", "]", ".").Replace(strings.TrimSuffix(at, "["+probe+"]"))
		maps = append(maps, strings.TrimSuffix(at, "."))
		for _, key := range quoted.FindAllStringSubmatch(list, -1) {
			keys = append(keys, at+key[1])
		}
	}
	// A map is told by what is in it.
	keys = slices.DeleteFunc(keys, func(key string) bool {
		return slices.ContainsFunc(maps, func(m string) bool { return m == key || strings.HasPrefix(m, key+".") })
	})
	for i := range keys {
		keys[i] = strings.ReplaceAll(keys[i], "NAME", "<name>")
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// known are the keys that the scheduler accepts, by the plugin, the action, or the section of the file that they belong to.
func known(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{"metrics": arguments.MetricsKeys()}
	slices.Sort(all["metrics"])
	for _, name := range arguments.Plugins() {
		values := map[string]runtime.RawExtension{}
		if err := yaml.Unmarshal([]byte(opened[name]), &values); err != nil {
			t.Fatal(err)
		}
		values[probe] = runtime.RawExtension{Raw: []byte("0")}
		all[name] = validKeys(arguments.Check(&config.TierPlugin{Name: name, Arguments: values}, field.NewPath("plugin")))
	}
	for _, action := range config.Actions() {
		_, errs := arguments.DecodeAction(&config.ActionConfiguration{
			Name: action, Arguments: map[string]runtime.RawExtension{probe: {Raw: []byte("0")}},
		}, field.NewPath("action"))
		all["action "+string(action)] = validKeys(errs)
	}
	return all
}

// fate is what the report says of an argument, or of its owner if that has none.
func fate(owner, key string) profile.Fate {
	args := &config.BatchQueueArgs{}
	values := map[string]runtime.RawExtension{}
	if key != "" {
		// Of a map the report tells as a whole.
		for _, of := range []string{"resources.", "sra.", "proportional.", "strategies."} {
			if strings.HasPrefix(key, of) {
				key = strings.TrimSuffix(of, ".")
			}
		}
		values[key] = runtime.RawExtension{Raw: []byte("0")}
	}
	if action, ok := strings.CutPrefix(owner, "action "); ok {
		if key == "" {
			args.Actions = []config.Action{config.Action(action)}
		}
		args.Configurations = []config.ActionConfiguration{{Name: config.Action(action), Arguments: values}}
	} else {
		args.Tiers = []config.Tier{{Plugins: []config.TierPlugin{{Name: owner, Arguments: values}}}}
	}
	lines := profile.Report(args, nil)
	return lines[len(lines)-1].Fate
}

// row is a line of the table of arguments in docs/volcano-compat.md.
type row struct{ owner, key, state, test string }

func rows(t *testing.T) []row {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "volcano-compat.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Arguments\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var all []row
	for line := range strings.Lines(section) {
		if cells := strings.Split(line, " | "); len(cells) == 4 && strings.HasPrefix(line, "| `") {
			clean := func(cell string) string { return strings.Trim(cell, "`| \n") }
			all = append(all, row{clean(cells[0]), clean(cells[1]), clean(cells[2]), clean(cells[3])})
		}
	}
	return all
}

// TestTheTableOfArgumentsIsComplete compares docs/volcano-compat.md with what the scheduler accepts.
func TestTheTableOfArgumentsIsComplete(t *testing.T) {
	told := map[string][]string{}
	for _, r := range rows(t) {
		told[r.owner] = append(told[r.owner], r.key)
	}
	want := known(t)
	for owner, keys := range want {
		if len(keys) == 0 {
			want[owner] = []string{""}
		}
	}
	for owner := range told {
		slices.Sort(told[owner])
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("arguments that there are, and those of the table (-want,+got)\n%s", diff)
	}
}

// TestTheTableOfArgumentsIsTrue compares the states of the table with the report, and looks the keys up in the tests it names.
func TestTheTableOfArgumentsIsTrue(t *testing.T) {
	own := []string{
		"cooldown", "maxAge", "maxMovesPerHour", "maxPods", "extender.maxScore", "extender.tlsConfig", "fragmentation.halfLife", "fragmentation.modelLabel", "fragmentation.resource", "fragmentation.weight", "prometheus.nodeLabel", "reservation.after", "reservation.backfillWithin", "reservation.giveUpAfter", "reservation.holders",
		"reservation.trust", "timeout", "total", "usageHalfLife", "usageWeight",
	}
	for _, r := range rows(t) {
		want := string(fate(r.owner, r.key))
		switch {
		case slices.Contains(own, r.key):
			want = "new"
		case r.owner == "metrics":
			want = "same"
		}
		if r.state != want {
			t.Errorf("%s %s: the table says %q, want %q", r.owner, r.key, r.state, want)
		}
		test, err := os.ReadFile(filepath.Join("..", "..", "..", r.test))
		if err != nil {
			t.Errorf("%s %s: %v", r.owner, r.key, err)
			continue
		}
		// The end of a key in a map is what is written there; what begins with a name ends with one.
		word := strings.TrimPrefix(r.owner, "action ")
		if r.key != "" {
			word, _, _ = strings.Cut(r.key, "<")
			word = strings.TrimPrefix(word, "resources.")
		}
		if parts := strings.Split(r.key, "."); slices.Contains([]string{"resource-strategy-fit", "rescheduling"}, r.owner) && r.key != "" {
			word = strings.Trim(parts[len(parts)-1], "<name>")
		}
		if !strings.Contains(string(test), word) {
			t.Errorf("%s %s: %s does not have %q", r.owner, r.key, r.test, word)
		}
	}
}
