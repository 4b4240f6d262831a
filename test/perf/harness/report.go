// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"math"
	"os"

	"github.com/caldera-scheduler/caldera/test/perf/harness/workload"
	"github.com/caldera-scheduler/caldera/test/perf/median"
)

// table is what comes out, as Markdown: printed row by row, and kept.
type table struct {
	out   io.Writer
	lines []byte
	// ratios are those to stock of each workload.
	ratios map[workload.Scheduler][]ratios
}

// ratios say how one scheduler stands to stock in one workload, or on average; 0 is unknown.
type ratios struct{ rate, throughput, cpu float64 }

const unknown = "-"

func newTable(out io.Writer, runs int) *table {
	t := &table{out: out, ratios: map[workload.Scheduler][]ratios{}}
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
		var to ratios
		if s != workload.Stock {
			stock := runs[workload.Stock]
			to = ratios{ratio(got, stock, rate), ratio(got, stock, throughput), ratio(got, stock, cpu)}
			t.ratios[s] = append(t.ratios[s], to)
		}
		t.line("| %s | %s | %d | %s | %s | %s | %s | %.2f | %s | %.0f ms |", name, s, got[0].Bound,
			whole(medianOf(got, rate)), hundredths(to.rate), whole(medianOf(got, throughput)), hundredths(to.throughput),
			1000*medianOf(got, cpu), hundredths(to.cpu), 1000*medianOf(got, func(f workload.Figures) float64 { return f.FirstBind }))
		name = ""
	}
}

// average adds the geometric means of the ratios of all workloads, where there are several.
func (t *table) average() {
	for _, s := range []workload.Scheduler{workload.CompiledIn, workload.Batch} {
		all := t.ratios[s]
		if len(all) < 2 {
			continue
		}
		mean := func(of func(ratios) float64) string {
			sum, count := 0.0, 0
			for _, r := range all {
				if v := of(r); v > 0 {
					sum, count = sum+math.Log(v), count+1
				}
			}
			if count == 0 {
				return unknown
			}
			return hundredths(math.Exp(sum / float64(count)))
		}
		t.line("| geometric mean of %d | %s | | | %s | | %s | | %s | |", len(all), s, mean(func(r ratios) float64 { return r.rate }),
			mean(func(r ratios) float64 { return r.throughput }), mean(func(r ratios) float64 { return r.cpu }))
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

// hundredths is a ratio; 0 is none.
func hundredths(v float64) string {
	if v == 0 {
		return unknown
	}
	return fmt.Sprintf("%.2f", v)
}

// ratio is the median of how our runs stand to stock's of the same round; 0 if there are none.
func ratio(ours, stock []workload.Figures, of func(workload.Figures) float64) float64 {
	var pairs []float64
	for i := range min(len(ours), len(stock)) {
		if of(ours[i]) > 0 && of(stock[i]) > 0 {
			pairs = append(pairs, of(ours[i])/of(stock[i]))
		}
	}
	if len(pairs) == 0 {
		return 0
	}
	return median.Of(pairs)
}

func medianOf(runs []workload.Figures, of func(workload.Figures) float64) float64 {
	values := make([]float64, len(runs))
	for i, f := range runs {
		values[i] = of(f)
	}
	return median.Of(values)
}
