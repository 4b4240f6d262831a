// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"

	"github.com/caldera-scheduler/caldera/test/perf/harness/workload"
	"github.com/caldera-scheduler/caldera/test/perf/median"
)

// table is what comes out, as Markdown: printed row by row, and kept.
type table struct {
	out   io.Writer
	lines []byte
}

const unknown = "-"

func newTable(out io.Writer, runs int) *table {
	t := &table{out: out}
	t.line("Medians of %d runs; ratios are medians of run pairs.\n", runs)
	t.line("| workload | scheduler | pods | pods/s | of stock | SchedulingThroughput | of stock | CPU ms/pod | of stock | first bind |")
	t.line("|---|---|---|---|---|---|---|---|---|---|")
	return t
}

func (t *table) line(format string, args ...any) {
	line := fmt.Appendf(nil, format+"\n", args...)
	fmt.Fprintf(t.out, "%s", line)
	t.lines = append(t.lines, line...)
}

// add adds the rows of a workload, one a scheduler.
func (t *table) add(w workload.Workload, runs map[workload.Scheduler][]workload.Figures) {
	rate := func(f workload.Figures) float64 { return f.Rate }
	throughput := func(f workload.Figures) float64 { return f.Throughput }
	cpu := func(f workload.Figures) float64 { return f.CPU }
	name := w.String()
	for _, s := range w.Schedulers {
		got := runs[s]
		if len(got) == 0 {
			t.line("| %s | %s | failed | | | | | | | |", name, s)
			name = ""
			continue
		}
		var stock []workload.Figures
		if s != workload.Stock {
			stock = runs[workload.Stock]
		}
		t.line("| %s | %s | %d | %s | %s | %s | %s | %.2f | %s | %.0f ms |", name, s, got[0].Bound,
			whole(medianOf(got, rate)), ratio(got, stock, rate), whole(medianOf(got, throughput)), ratio(got, stock, throughput),
			1000*medianOf(got, cpu), ratio(got, stock, cpu), 1000*medianOf(got, func(f workload.Figures) float64 { return f.FirstBind }))
		name = ""
	}
}

// write keeps the table in a file.
func (t *table) write(name string) error { return os.WriteFile(name, t.lines, 0o644) }

// whole is a number without digits after the point; 0 is none.
func whole(v float64) string {
	if v == 0 {
		return unknown
	}
	return fmt.Sprintf("%.0f", v)
}

// ratio is the median of how our runs stand to stock's of the same round.
func ratio(ours, stock []workload.Figures, of func(workload.Figures) float64) string {
	var pairs []float64
	for i := range min(len(ours), len(stock)) {
		if of(ours[i]) > 0 && of(stock[i]) > 0 {
			pairs = append(pairs, of(ours[i])/of(stock[i]))
		}
	}
	if len(pairs) == 0 {
		return unknown
	}
	return fmt.Sprintf("%.2f", median.Of(pairs))
}

func medianOf(runs []workload.Figures, of func(workload.Figures) float64) float64 {
	values := make([]float64, len(runs))
	for i, f := range runs {
		values[i] = of(f)
	}
	return median.Of(values)
}
