// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// report prints the medians of each scheduler, and how Caldera stands to stock.
func report(out io.Writer, contenders []contender, results map[string][]result) {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "scheduler\tpods/s\tCPU s\tpeak MB\tfirst bind\tgang p50\tgang p99\tspread\tevents after\t")
	for _, c := range contenders {
		rs := results[c.name]
		fmt.Fprintf(table, "%s\t%.0f\t%.1f\t%d\t%s\t%s\t%s\t%s\t%s\t\n", c.name,
			median(rs, func(r result) float64 { return r.rate }),
			median(rs, func(r result) float64 { return r.usage.CPU.Seconds() }),
			int64(median(rs, func(r result) float64 { return float64(r.usage.PeakMemory) }))>>20,
			middle(rs, func(r result) time.Duration { return r.first }),
			middle(rs, func(r result) time.Duration { return r.p50 }),
			middle(rs, func(r result) time.Duration { return r.p99 }),
			middle(rs, func(r result) time.Duration { return r.spread }),
			middle(rs, func(r result) time.Duration { return r.told }))
	}
	table.Flush() //nolint:errcheck,gosec // the terminal is gone, and with it the reader
	relate(out, results, "caldera", "stock")
	relate(out, results, "queues", "caldera")
	relate(out, results, "tiers", "caldera")
}

// relate prints how one scheduler stands to another.
func relate(out io.Writer, results map[string][]result, one, other string) {
	ours, theirs := results[one], results[other]
	if len(ours) == 0 || len(theirs) == 0 {
		return
	}
	ratio := func(of func(result) float64) float64 {
		var ratios []result
		for i := range ours {
			ratios = append(ratios, result{rate: of(ours[i]) / of(theirs[i])})
		}
		return median(ratios, func(r result) float64 { return r.rate })
	}
	fmt.Fprintf(out, "%s/%s, median of run pairs: %.2fx the pods/s, %.2fx the CPU seconds, %.2fx the memory\n", one, other,
		ratio(func(r result) float64 { return r.rate }),
		ratio(func(r result) float64 { return r.usage.CPU.Seconds() }),
		ratio(func(r result) float64 { return float64(r.usage.PeakMemory) }))
}

func median(rs []result, of func(result) float64) float64 {
	values := make([]float64, len(rs))
	for i, r := range rs {
		values[i] = of(r)
	}
	return quantile(values, 0.5)
}

func middle(rs []result, of func(result) time.Duration) time.Duration {
	return time.Duration(median(rs, func(r result) float64 { return float64(of(r)) })).Round(time.Millisecond)
}
