// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/caldera-scheduler/caldera/pkg/volcano/profile"
)

const twoCases = `
- name: Other
  workloads: [{name: Small}]
- name: Basic
  workloadTemplate: [{opcode: createNodes, countParam: $nodes}]
  workloads:
  - {name: Small, params: {nodes: 5}}
  - {name: Large, threshold: 680, labels: [performance], params: {nodes: 10000000}}
- name: Configured
  schedulerConfigPath: own.yaml
  workloads: [{name: Small}]
`

func TestAWorkloadIsMadeAloneInItsFile(t *testing.T) {
	for name, tc := range map[string]struct {
		workload Workload
		config   string
		want     string
		wantErr  string
	}{
		"with the default configuration and without upstream's threshold": {
			workload: Workload{Case: "Basic", Name: "Large"},
			want: `[{"name":"Basic","workloadTemplate":[{"countParam":"$nodes","opcode":"createNodes"}],` +
				`"workloads":[{"labels":["performance"],"name":"Large","params":{"nodes":10000000}}]}]`,
		},
		"with a configuration": {
			workload: Workload{Case: "Other", Name: "Small"}, config: "/tmp/c.yaml",
			want: `[{"name":"Other","schedulerConfigPath":"/tmp/c.yaml","workloads":[{"name":"Small"}]}]`,
		},
		"with the case's own configuration": {
			workload: Workload{Case: "Configured", Name: "Small"},
			want:     `[{"name":"Configured","schedulerConfigPath":"own.yaml","workloads":[{"name":"Small"}]}]`,
		},
		"not with two configurations": {
			workload: Workload{Case: "Configured", Name: "Small"}, config: "/tmp/c.yaml",
			wantErr: `it has a configuration of its own, "own.yaml", and can only be run with stock`,
		},
		"not if the case has no such workload": {
			workload: Workload{Case: "Basic", Name: "Huge"}, wantErr: `Basic has no workload "Huge"`,
		},
		"not if there is no such case": {
			workload: Workload{Case: "None", Name: "Small"}, wantErr: `there is no case "None"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := tc.workload.alone([]byte(twoCases), tc.config)
			if tc.wantErr != "" {
				if err == nil || err.Error() != tc.wantErr {
					t.Fatalf("got error %v, want %q", err, tc.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(decoded(t, []byte(tc.want)), decoded(t, got)); diff != "" {
				t.Errorf("(-want,+got)\n%s", diff)
			}
			if strings.Contains(string(got), "e+") {
				t.Errorf("got %s: the harness does not read such numbers as counts", got)
			}
		})
	}
}

func decoded(t *testing.T, data []byte) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestTheListNamesWorkloadsThatExist(t *testing.T) {
	var r Runner
	if err := r.find(t.Context()); err != nil {
		t.Fatal(err)
	}
	workloads, err := List()
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range workloads {
		t.Run(w.String(), func(t *testing.T) {
			if len(w.Schedulers) == 0 || w.Conf != "" && !slices.Contains(w.Schedulers, Batch) {
				t.Errorf("schedulers are %v, want some, and %s if there is a conf for it", w.Schedulers, Batch)
			}
			for _, s := range w.Schedulers {
				if err := w.writeTo(t.TempDir(), r.home(w), s); err != nil {
					t.Error(err)
				}
			}
			for _, other := range []Workload{w.Smallest(), w.Shorter()} {
				if other.Name == "" {
					continue
				}
				if err := other.writeTo(t.TempDir(), r.home(w), Stock); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestControlRunsWhatStockRuns(t *testing.T) {
	both := Workload{Schedulers: []Scheduler{Stock, Batch}}
	for name, tc := range map[string]struct {
		of     Workload
		chosen []string
		want   []Scheduler
	}{
		"asked for":       {both, []string{"control", "stock"}, []Scheduler{Stock, Control}},
		"not asked for":   {both, []string{"stock", "compiled-in"}, []Scheduler{Stock}},
		"no run of stock": {Workload{Schedulers: []Scheduler{Batch}}, []string{"batch", "control"}, []Scheduler{Batch}},
		"nothing is left": {both, []string{"compiled-in"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.of.By(tc.chosen).Schedulers, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want,+got)\n%s", diff)
			}
		})
	}
}

func TestSchedulersPlaceThePodsThatUpstreamCreates(t *testing.T) {
	for s, want := range map[Scheduler][]string{CompiledIn: {"volcano", "default-scheduler"}, Batch: {"default-scheduler"}} {
		data, err := Workload{}.configuration(s)
		if err != nil {
			t.Fatal(err)
		}
		c, err := profile.Decode(string(s), data)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range c.Profiles {
			got = append(got, p.SchedulerName)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("profiles of %s (-want,+got)\n%s", s, diff)
		}
	}
	if _, err := (Workload{}).configuration("other"); err == nil {
		t.Error("a scheduler that there is not was accepted")
	}
}

func TestFiguresAreReadFromTheNamespaceThatIsMeasured(t *testing.T) {
	const (
		binds  = `{"setup": {"created": 5, "bound": 5, "lastBind": 1}, "measured": {"created": 30, "bound": 20, "firstBind": 0.5, "lastBind": 4, "cpu": 8}}`
		inTime = `{"dataItems": [{"labels": {"Name": "Basic/Small/measured", "Metric": "SchedulingThroughput"}, "data": {"Average": 7}}]}`
		short  = `{"dataItems": [{"labels": {"Name": "Basic/Small/measured", "Metric": "SchedulingDuration"}, "data": {"Duration": 1}}]}`
		both   = `{"dataItems": [{"labels": {"Name": "Basic/Small/measured"}}, {"labels": {"Name": "Basic/Small/setup"}}]}`
		none   = `{"dataItems": [{"labels": {"Name": "Basic/Small/other"}}]}`
	)
	for name, tc := range map[string]struct {
		items   string
		want    Figures
		wantErr string
	}{
		"with upstream's average":                  {inTime, Figures{Created: 30, Bound: 20, Rate: 5, CPU: 0.4, FirstBind: 0.5, Throughput: 7}, ""},
		"too short for upstream's average":         {short, Figures{Created: 30, Bound: 20, Rate: 5, CPU: 0.4, FirstBind: 0.5}, ""},
		"not if it measures in two namespaces":     {both, Figures{}, "it measures in the namespaces measured and setup, want one"},
		"not if nothing was bound where it counts": {none, Figures{}, "no pod was bound while it was measured"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, content := range map[string]string{bindsFile: binds, "Benchmark_1.json": tc.items} {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got, err := read(dir)
			if tc.wantErr != "" && (err == nil || err.Error() != tc.wantErr) || tc.wantErr == "" && err != nil {
				t.Fatalf("got error %v, want %q", err, tc.wantErr)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want,+got)\n%s", diff)
			}
		})
	}
}

func TestTheFailureIsFoundInTheLog(t *testing.T) {
	for name, tc := range map[string]struct{ log, want string }{
		"what the harness calls an error": {"starting\n    x.go:1: FATAL ERROR:\n    no pods\nstopping\n", "    x.go:1: FATAL ERROR:\n    no pods\nstopping"},
		"a panic":                         {"starting\npanic: no\nstack\n", "panic: no\nstack"},
		"else the last lines":             {strings.Repeat("a\n", 30) + "killed\n", strings.Repeat("a\n", 14) + "killed"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), logFile)
			if err := os.WriteFile(file, []byte(tc.log), 0o600); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, failure(file)); diff != "" {
				t.Errorf("(-want,+got)\n%s", diff)
			}
		})
	}
}
