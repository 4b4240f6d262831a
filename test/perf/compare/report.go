// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/caldera-scheduler/caldera/test/perf/median"
)

// record is one run, as it is kept.
type record struct {
	Scenario  scenario `json:"scenario"`
	Contender string   `json:"contender"`
	Run       int      `json:"run"`
	Result    result   `json:"result"`
}

// keep writes all that was measured.
func keep(dir string, records []record) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("making the directory for the figures: %w", err)
	}
	data, err := json.MarshalIndent(records, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "runs.json"), append(data, '\n'), 0o644)
}

// of returns the results of one contender, in order.
func of(records []record, contender string) []result {
	var list []result
	for _, r := range records {
		if r.Contender == contender {
			list = append(list, r.Result)
		}
	}
	return list
}

// report prints the medians of each contender, and how ours stand to the others.
func report(out io.Writer, s scenario, contenders []contender, records []record) {
	fmt.Fprintf(out, "\n%s\n", s)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "scheduler\tpods/s\tleast\tmost\twith events\tCPU ms/pod\tserver CPU ms/pod\tpeak MB\tfirst bind\tgang p50\tgang p99\tspread\tevents after\t")
	for _, c := range contenders {
		rs := of(records, c.name)
		rates := values(rs, func(r result) float64 { return r.Rate })
		fmt.Fprintf(table, "%s\t%.0f\t%.0f\t%.0f\t%.0f\t%.2f\t%.2f\t%d\t%s\t%s\t%s\t%s\t%s\t\n", c.name,
			median.Of(rates), slices.Min(rates), slices.Max(rates),
			median.Of(values(rs, func(r result) float64 { return r.Done })),
			median.Of(values(rs, func(r result) float64 { return perPod(r.CPU, s) })),
			median.Of(values(rs, func(r result) float64 { return perPod(r.ServerCPU, s) })),
			median.Of(values(rs, func(r result) int64 { return r.Memory }))>>20,
			middle(rs, func(r result) time.Duration { return r.First }),
			middle(rs, func(r result) time.Duration { return r.P50 }),
			middle(rs, func(r result) time.Duration { return r.P99 }),
			middle(rs, func(r result) time.Duration { return r.Spread }),
			middle(rs, func(r result) time.Duration { return r.Told }))
	}
	table.Flush() //nolint:errcheck,gosec // the terminal is gone, and with it the reader
	for _, c := range contenders {
		fmt.Fprintf(out, "%s, writes of the last run: %s\n", c.name, requests(of(records, c.name)))
		if c.views > 0 {
			fmt.Fprintf(out, "%s, answers with views, run by run: %d\n", c.name, values(of(records, c.name), func(r result) int { return r.Views }))
		}
	}
	for _, one := range contenders {
		for _, other := range contenders {
			if !one.rival && one.name != other.name && (other.rival || other.name == "caldera") {
				relate(out, records, one.name, other.name)
			}
		}
	}
}

// requests lists the writes of the last of some runs, most first.
func requests(rs []result) string {
	counts := rs[len(rs)-1].Requests
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		if counts[a] != counts[b] {
			return counts[b] - counts[a]
		}
		return strings.Compare(a, b)
	})
	for i, name := range names {
		names[i] = fmt.Sprintf("%d %s", counts[name], name)
	}
	return strings.Join(names, ", ")
}

// relate prints how one contender stands to another.
func relate(out io.Writer, records []record, one, other string) {
	ours, theirs := of(records, one), of(records, other)
	ratio := func(of func(result) float64) float64 {
		var ratios []float64
		for i := range min(len(ours), len(theirs)) {
			ratios = append(ratios, of(ours[i])/of(theirs[i]))
		}
		return median.Of(ratios)
	}
	fmt.Fprintf(out, "%s/%s, median of run pairs: %.2fx the pods/s, %.2fx with events, %.2fx the CPU, %.2fx the memory\n", one, other,
		ratio(func(r result) float64 { return r.Rate }),
		ratio(func(r result) float64 { return r.Done }),
		ratio(func(r result) float64 { return r.CPU.Seconds() }),
		ratio(func(r result) float64 { return float64(r.Memory) }))
}

// perPod is a time in milliseconds for each pod that was bound.
func perPod(d time.Duration, s scenario) float64 { return d.Seconds() * 1000 / float64(s.pods()) }

func values[T any](rs []result, of func(result) T) []T {
	list := make([]T, len(rs))
	for i, r := range rs {
		list[i] = of(r)
	}
	return list
}

func middle(rs []result, of func(result) time.Duration) time.Duration {
	return median.Of(values(rs, of)).Round(time.Millisecond)
}
