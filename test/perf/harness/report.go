// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"math"
	"os"

	"gonum.org/v1/gonum/stat"

	"github.com/caldera-scheduler/caldera/test/perf/harness/workload"
	"github.com/caldera-scheduler/caldera/test/perf/median"
)

// table is what comes out, as Markdown: printed row by row, and kept.
type table struct {
	out   io.Writer
	lines []byte
	// pairs are, by scheduler and column, the ratios of all pairs of runs to stock's.
	pairs map[workload.Scheduler]*[columns][]float64
}

// The columns that are compared.
const (
	rate = iota
	throughput
	cpu
	columns
)

// measured is what a run has in the columns that are compared; 0 is unknown.
func measured(f workload.Figures) [columns]float64 {
	return [columns]float64{rate: f.Rate, throughput: f.Throughput, cpu: f.CPU}
}

const unknown = "-"

func newTable(out io.Writer, runs int) *table {
	t := &table{out: out, pairs: map[workload.Scheduler]*[columns][]float64{}}
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
	name := w.String()
	for _, s := range w.Schedulers {
		got := runs[s]
		if len(got) == 0 {
			t.line("| %s | %s | failed | | | | | | | |", name, s)
			name = ""
			continue
		}
		var to, middle [columns]float64
		for column := range columns {
			of := func(f workload.Figures) float64 { return measured(f)[column] }
			middle[column] = medianOf(got, of)
			if s != workload.Stock {
				to[column] = t.compare(s, column, pairs(got, runs[workload.Stock], of))
			}
		}
		t.line("| %s | %s | %d | %s | %s | %s | %s | %.2f | %s | %.0f ms |", name, s, got[0].Bound,
			whole(middle[rate]), hundredths(to[rate]), whole(middle[throughput]), hundredths(to[throughput]),
			1000*middle[cpu], hundredths(to[cpu]), 1000*medianOf(got, func(f workload.Figures) float64 { return f.FirstBind }))
		name = ""
	}
}

// compare keeps how a workload's runs stand to stock's, and returns the median of that; 0 if there are none.
func (t *table) compare(s workload.Scheduler, column int, ratios []float64) float64 {
	if len(ratios) == 0 {
		return 0
	}
	if t.pairs[s] == nil {
		t.pairs[s] = new([columns][]float64)
	}
	t.pairs[s][column] = append(t.pairs[s][column], ratios...)
	return median.Of(ratios)
}

// average adds the geometric means of the pairs of all workloads, with their standard errors.
func (t *table) average() {
	for _, s := range workload.Schedulers {
		all := t.pairs[s]
		if all == nil || len(all[rate]) < 2 {
			continue
		}
		t.line("| geometric mean of %d pairs | %s | | | %s | | %s | | %s | |", len(all[rate]), s, mean(all[rate]), mean(all[throughput]), mean(all[cpu]))
	}
}

// mean is the geometric mean of ratios and its standard error.
func mean(ratios []float64) string {
	if len(ratios) < 2 {
		return unknown
	}
	logs := make([]float64, len(ratios))
	for i, r := range ratios {
		logs[i] = math.Log(r)
	}
	middle, deviation := stat.MeanStdDev(logs, nil)
	middle = math.Exp(middle)
	return fmt.Sprintf("%.3f ± %.3f", middle, middle*stat.StdErr(deviation, float64(len(logs))))
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

// pairs are how our runs stand to stock's of the same round.
func pairs(ours, stock []workload.Figures, of func(workload.Figures) float64) []float64 {
	var ratios []float64
	for i := range min(len(ours), len(stock)) {
		if of(ours[i]) > 0 && of(stock[i]) > 0 {
			ratios = append(ratios, of(ours[i])/of(stock[i]))
		}
	}
	return ratios
}

func medianOf(runs []workload.Figures, of func(workload.Figures) float64) float64 {
	values := make([]float64, len(runs))
	for i, f := range runs {
		values[i] = of(f)
	}
	return median.Of(values)
}
