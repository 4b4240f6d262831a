// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/gang"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/policy"
)

// aged makes a gang so many minutes younger than those that do not say.
func aged(minutes int, g gangSpec) gangSpec {
	g.group.Created = g.group.Created.Add(time.Duration(minutes) * time.Minute)
	return g
}

// yield asks which broken gangs give way to a job. All jobs that are partial are broken.
func (w *fixture) yield(tb testing.TB, set *policy.Set, job *model.Job) gang.Statement {
	tb.Helper()
	broken := map[model.JobKey]time.Time{}
	for j := range w.state.Snapshot().Jobs {
		if j.Partial() {
			broken[j.Key] = now
		}
	}
	trial := set.Trial(config.Complete, job, policy.EvictionWorld{Now: now, Budgets: w.state.Budgets, Lapses: broken})
	st, err := w.planner.Evict(tb.Context(), w.search(set, trial, job))
	if err != nil {
		tb.Fatal(err)
	}
	return st
}

// TestBrokenGangsGiveWay: to one of which two members are on node-0, and that lacks others.
func TestBrokenGangsGiveWay(t *testing.T) {
	others := in("default", "high", run(gangOf("whole", 1, 2, "2"), "node-1"))
	for name, c := range map[string]struct {
		// running are the gangs on nodes of eight cores besides.
		running []gangSpec
		least   int
		budget  string
		want    []string
		why     string
	}{
		"the last one in the order of jobs, wherever it is": {
			running: []gangSpec{
				aged(1, in("default", "", run(gangOf("second", 3, 2, "2"), "node-0"))), aged(2, in("other", "", run(gangOf("last", 3, 2, "2"), "node-1"))),
			},
			least: 4, want: []string{"last-0", "last-1"},
		},
		"not one of higher priority, which is to be completed first": {
			running: []gangSpec{
				aged(1, in("default", "", run(gangOf("second", 3, 2, "2"), "node-0"))), aged(2, in("other", "low", run(gangOf("dear", 3, 2, "2"), "node-1"))),
			},
			least: 4, want: []string{"second-0", "second-1"},
		},
		"each as a whole": {
			running: []gangSpec{aged(1, in("default", "", run(gangOf("second", 5, 4, "2"), "node-0", "node-1")))},
			least:   3, want: []string{"second-0", "second-1", "second-2", "second-3"},
		},
		"as many as are needed": {
			running: []gangSpec{
				aged(1, in("default", "", run(gangOf("second", 3, 2, "2"), "node-0"))), aged(2, in("other", "", run(gangOf("last", 3, 2, "2"), "node-1"))),
			},
			least: 6, want: []string{"last-0", "last-1", "second-0", "second-1"},
		},
		"not one that leaves too little room": {
			running: []gangSpec{
				aged(1, in("default", "", run(gangOf("second", 3, 1, "3"), "node-0"))), aged(2, in("default", "", run(gangOf("last", 3, 1, "1"), "node-0"))),
				in("default", "high", run(gangOf("full", 1, 2, "2"), "node-1")),
			},
			least: 3, want: []string{"second-0"},
		},
		"not one that a budget protects": {
			running: []gangSpec{
				aged(1, in("default", "", run(gangOf("second", 3, 2, "2"), "node-0"))), aged(2, in("other", "", run(gangOf("last", 3, 2, "2"), "node-1"))),
			},
			least: 4, budget: "last", want: []string{"second-0", "second-1"},
		},
		"none that is to be completed before it": {
			running: []gangSpec{aged(-1, in("default", "", run(gangOf("older", 3, 2, "2"), "node-0"))), in("default", "high", run(gangOf("dear", 3, 2, "2"), "node-1"))},
			least:   4, why: "to be completed first",
		},
	} {
		t.Run(name, func(t *testing.T) {
			placed := in("default", "", gangOf("mine", c.least, 2, "2"))
			w := newBusy(t, nodeShapes{{count: 2, cpu: "8", memory: "64Gi"}}, append(slices.Clone(c.running), others, run(placed, "node-0"))...)
			w.state.UpsertBudget(&model.DisruptionBudget{
				Namespace: "default", Name: "none", Selector: labels.SelectorFromSet(labels.Set{"gang": c.budget}),
			})
			for _, p := range gangOf("mine", c.least, c.least, "2").pods[2:] {
				w.state.UpsertPod(p)
			}
			job := w.state.Job(model.JobKey{Source: model.FromVolcano, Namespace: "default", Name: "mine"})
			set := w.policies(t, tiers("preempt", "priority gang conformance pdb proportion"), queue("default", 1), queue("other", 1))
			st := w.yield(t, set, job)
			if got := victims(st); !slices.Equal(got, c.want) || (c.why == "") != (len(st.Placements) == c.least-2) {
				t.Errorf("%v give way, and %d are placed (%s), want %v", got, len(st.Placements), st.Why, c.want)
			}
			if !strings.Contains(st.Why, c.why) {
				t.Errorf("says %q, want something about %q", st.Why, c.why)
			}
		})
	}
}
