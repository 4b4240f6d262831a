// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caldera-scheduler/caldera/test/perf/harness/workload"
)

func TestTheTableHasMediansAndTheMiddleOfRatios(t *testing.T) {
	run := func(rate, throughput, first float64) workload.Figures {
		return workload.Figures{Bound: 100, Rate: rate, Throughput: throughput, CPU: 1 / rate, FirstBind: first}
	}
	all := []workload.Scheduler{workload.Stock, workload.CompiledIn, workload.Batch}
	for name, tc := range map[string]struct {
		runs map[workload.Scheduler][]workload.Figures
		want string
	}{
		"the ratio is of runs of the same round, and not of medians": {
			map[workload.Scheduler][]workload.Figures{
				workload.Stock:      {run(100, 90, 0.1), run(200, 180, 0.3), run(400, 360, 0.2)},
				workload.CompiledIn: {run(99, 81, 0.1), run(300, 180, 0.1), run(200, 180, 0.1)},
				workload.Batch:      {run(200, 0, 0.1), run(600, 0, 0.2), run(800, 0, 0.4)},
			}, `
| Basic/Small | stock | 100 | 200 | - | 180 | - | 5.00 | - | 200 ms |
|  | compiled-in | 100 | 200 | 0.99 | 180 | 0.90 | 5.00 | 1.01 | 100 ms |
|  | batch | 100 | 600 | 2.00 | - | - | 1.67 | 0.50 | 200 ms |
`,
		},
		"the median of two runs is between them": {
			map[workload.Scheduler][]workload.Figures{workload.Stock: {run(100, 0, 0), run(200, 0, 0)}}, `
| Basic/Small | stock | 100 | 150 | - | - | - | 7.50 | - | 0 ms |
|  | compiled-in | failed | | | | | | | |
|  | batch | failed | | | | | | | |
`,
		},
		"without stock there is no ratio": {
			map[workload.Scheduler][]workload.Figures{workload.CompiledIn: {run(100, 90, 0)}, workload.Batch: {run(100, 90, 0)}}, `
| Basic/Small | stock | failed | | | | | | | |
|  | compiled-in | 100 | 100 | - | 90 | - | 10.00 | - | 0 ms |
|  | batch | 100 | 100 | - | 90 | - | 10.00 | - | 0 ms |
`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			table := newTable(&out, 3)
			heading := out.Len()
			table.add(workload.Workload{Case: "Basic", Name: "Small", Schedulers: all}, tc.runs)
			if diff := cmp.Diff(tc.want[1:], out.String()[heading:]); diff != "" {
				t.Errorf("(-want,+got)\n%s", diff)
			}
		})
	}
}

func TestTheTableEndsInTheMeansOfAllPairs(t *testing.T) {
	runs := func(stock, compiled float64) map[workload.Scheduler][]workload.Figures {
		return map[workload.Scheduler][]workload.Figures{
			workload.Stock:      {{Bound: 1, Rate: stock, CPU: 1}},
			workload.CompiledIn: {{Bound: 1, Rate: compiled, CPU: 1.1}},
		}
	}
	w := workload.Workload{Case: "Basic", Name: "Small", Schedulers: []workload.Scheduler{workload.Stock, workload.CompiledIn, workload.Batch}}
	for name, tc := range map[string]struct {
		runs []map[workload.Scheduler][]workload.Figures
		want string
	}{
		"of several": {
			[]map[workload.Scheduler][]workload.Figures{runs(100, 50), runs(100, 200), runs(100, 100)},
			"| geometric mean of 3 pairs | compiled-in | | | 1.000 ± 0.400 | | - | | 1.100 ± 0.000 | |\n",
		},
		"not of one": {[]map[workload.Scheduler][]workload.Figures{runs(100, 50)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			table := newTable(&out, 1)
			for _, r := range tc.runs {
				table.add(w, r)
			}
			before := out.Len()
			table.average()
			if got := out.String()[before:]; got != tc.want {
				t.Errorf("it ends in %q, want %q", got, tc.want)
			}
		})
	}
}
