// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package profile_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caldera-scheduler/caldera/internal/testing/keys"
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

// test is a line of testdata/tested.txt.
type test struct{ owner, key, file string }

func tested(t *testing.T) []test {
	t.Helper()
	text, err := os.ReadFile("testdata/tested.txt")
	if err != nil {
		t.Fatal(err)
	}
	var all []test
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		switch {
		case strings.HasPrefix(line, "#"):
		case len(cells) != 3:
			t.Errorf("testdata/tested.txt: %q has not three parts", line)
		default:
			all = append(all, test{strings.TrimSpace(cells[0]), strings.TrimSpace(cells[1]), strings.TrimSpace(cells[2])})
		}
	}
	return all
}

// TestEveryArgumentIsTested compares testdata/tested.txt with what is accepted, and looks the keys up in the files that it names. What becomes of each
// is in docs/reference/volcano-arguments.md, which is generated.
func TestEveryArgumentIsTested(t *testing.T) {
	listed := map[string][]string{}
	for _, at := range tested(t) {
		listed[at.owner] = append(listed[at.owner], at.key)
		file, err := os.ReadFile(filepath.Join("..", "..", "..", at.file))
		if err != nil {
			t.Errorf("%s %s: %v", at.owner, at.key, err)
			continue
		}
		if word := at.word(); !strings.Contains(string(file), word) {
			t.Errorf("%s %s: %s does not have %q", at.owner, at.key, at.file, word)
		}
	}
	want, err := keys.All()
	if err != nil {
		t.Fatal(err)
	}
	for owner, all := range want {
		if len(all) == 0 {
			want[owner] = []string{""}
		}
	}
	for owner := range listed {
		slices.Sort(listed[owner])
	}
	if diff := cmp.Diff(want, listed); diff != "" {
		t.Errorf("arguments that there are, and those of testdata/tested.txt (-want,+got)\n%s", diff)
	}
}

// word is what the file has to have: the end of a key in a map is what is written there, and what begins with a name ends with one.
func (at test) word() string {
	if at.key == "" {
		return strings.TrimPrefix(at.owner, keys.Action)
	}
	if parts := strings.Split(at.key, "."); slices.Contains([]string{"resource-strategy-fit", "rescheduling"}, at.owner) || strings.HasPrefix(at.key, "extender.tlsConfig.") {
		return strings.Trim(parts[len(parts)-1], "<name>")
	}
	word, _, _ := strings.Cut(at.key, "<")
	return strings.TrimPrefix(word, "resources.")
}
