// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workload has the list of what is measured with upstream's scheduler_perf, and measures it: each time in a process
// of its own.
package workload

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/caldera-scheduler/caldera/pkg/volcano/profile"
)

// Scheduler is one of those that are compared.
type Scheduler string

const (
	// Stock is kube-scheduler with its default profile.
	Stock Scheduler = "stock"
	// CompiledIn is Caldera's shipped configuration, whose profile default-scheduler places the pods: what it costs pods that
	// have nothing to do with Caldera that it is there.
	CompiledIn Scheduler = "compiled-in"
	// Batch is Caldera's batch profile, under the name that pods have from upstream.
	Batch Scheduler = "batch"
	// Control is stock kube-scheduler once more: what it differs by from Stock is by chance.
	Control Scheduler = "control"
)

// Schedulers are all there are. Control is measured only where it is asked for.
var Schedulers = []Scheduler{Stock, CompiledIn, Batch, Control}

// Workload is one row of the list.
type Workload struct {
	// Upstream is the directory of scheduler_perf that has it; empty: it is one of ours.
	Upstream string `json:"upstream,omitempty"`
	Case     string `json:"case"`
	Name     string `json:"workload"`
	// Tiny is the workload of the case that takes a second; empty if there is none.
	Tiny string `json:"tiny,omitempty"`
	// Short is the workload of the case that takes some seconds; empty if there is none.
	Short string `json:"short,omitempty"`
	// Schedulers run it one after the other.
	Schedulers []Scheduler `json:"schedulers"`
	// Conf is the volcano-scheduler.conf by which Batch is run; empty: the tiers and actions that it has by default.
	Conf string `json:"conf,omitempty"`
	// Kubelets has pods run when they are bound, as they must to be evicted.
	Kubelets bool `json:"kubelets,omitempty"`
}

//go:embed list.yaml
var list []byte

// List returns what is measured, in order.
func List() ([]Workload, error) {
	var workloads []Workload
	if err := yaml.UnmarshalStrict(list, &workloads); err != nil {
		return nil, fmt.Errorf("reading the list of workloads: %w", err)
	}
	return workloads, nil
}

// String names the workload as the harness does.
func (w Workload) String() string { return w.Case + "/" + w.Name }

// Smallest returns the tiny workload of the case in the place of this one.
func (w Workload) Smallest() Workload {
	w.Name = w.Tiny
	return w
}

// Shorter returns the short workload of the case in the place of this one.
func (w Workload) Shorter() Workload {
	w.Name = w.Short
	return w
}

// By returns the workload for no schedulers but those chosen. Control runs what Stock runs.
func (w Workload) By(chosen []string) Workload {
	may := w.Schedulers
	if slices.Contains(may, Stock) {
		may = append(slices.Clone(may), Control)
	}
	w.Schedulers = slices.DeleteFunc(slices.Clone(may), func(s Scheduler) bool { return !slices.Contains(chosen, string(s)) })
	return w
}

// directory is a name of the workload that can be that of a directory.
func (w Workload) directory() string { return strings.ReplaceAll(w.String(), "/", "_") }

// configuration is the scheduler's KubeSchedulerConfiguration; nil: upstream's default.
func (w Workload) configuration(s Scheduler) ([]byte, error) {
	switch s {
	case Stock, Control:
		return nil, nil
	case CompiledIn:
		c, err := profile.Only.Config()
		if err != nil {
			return nil, err
		}
		return profile.Encode(c)
	case Batch:
		c, err := profile.Second.Config()
		if w.Conf != "" {
			c, err = profile.Read("the conf of "+w.String(), []byte(w.Conf), profile.Second)
		}
		if err != nil {
			return nil, err
		}
		c.Profiles[0].SchedulerName = "default-scheduler"
		return profile.Encode(c)
	default:
		return nil, fmt.Errorf("there is no scheduler %q: use one of %v", s, Schedulers)
	}
}

// alone makes a file of scheduler_perf's kind with nothing but this workload, for a scheduler with a configuration of its
// own if the file is given. What upstream would have the numbers be at least is left out: that is for its own machines.
func (w Workload) alone(all []byte, configFile string) ([]byte, error) {
	var cases []map[string]json.RawMessage
	if err := yaml.Unmarshal(all, &cases); err != nil {
		return nil, err
	}
	for _, testCase := range cases {
		if !is(testCase["name"], w.Case) {
			continue
		}
		var workloads []map[string]json.RawMessage
		if err := json.Unmarshal(testCase["workloads"], &workloads); err != nil {
			return nil, fmt.Errorf("reading the workloads of %s: %w", w.Case, err)
		}
		for _, one := range workloads {
			if is(one["name"], w.Name) {
				delete(one, "threshold")
				return encode(testCase, one, configFile)
			}
		}
		return nil, fmt.Errorf("%s has no workload %q", w.Case, w.Name)
	}
	return nil, fmt.Errorf("there is no case %q", w.Case)
}

// encode writes one case with one workload.
func encode(testCase, one map[string]json.RawMessage, configFile string) ([]byte, error) {
	if configFile != "" {
		if own := testCase["schedulerConfigPath"]; own != nil {
			return nil, fmt.Errorf("it has a configuration of its own, %s, and can only be run with %s", own, Stock)
		}
		path, err := json.Marshal(configFile)
		if err != nil {
			return nil, err
		}
		testCase["schedulerConfigPath"] = path
	}
	workloads, err := json.Marshal([]map[string]json.RawMessage{one})
	if err != nil {
		return nil, err
	}
	testCase["workloads"] = workloads
	return json.Marshal([]map[string]json.RawMessage{testCase})
}

// is reports whether a value is this text.
func is(value json.RawMessage, text string) bool {
	var got string
	return json.Unmarshal(value, &got) == nil && got == text
}
