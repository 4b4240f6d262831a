// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"
	"time"
)

// record is one run.
type record struct {
	Contender string `json:"contender"`
	Kind      string `json:"kind"`
	Run       int    `json:"run"`
	Result    result `json:"result"`
}

// report prints what was measured: every run as JSON, or a line for all runs of a kind with a contender.
func report(out io.Writer, p plan, records []record) error {
	if p.json {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(map[string]any{"scenario": p.scenario, "runs": records})
	}
	fmt.Fprintf(out, "%s, %d runs; CPU is of one core\n", p.scenario, p.Runs)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "kind\tscheduler\tprobes bound\tp50 ms\tp99 ms\tmax ms\tCPU %\tMB\tothers replaced\tp50 ms\tp99 ms\tturned\tmax ms\t")
	for _, k := range p.kinds {
		for _, c := range p.contenders {
			if r, ok := pool(records, k.name, c.name); ok {
				fmt.Fprintf(table, "%s\t%s\t%s\n", k.name, c.name, cells(r))
			}
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, r := range records {
		if r.Result.Escaped > 0 {
			fmt.Fprintf(out, "%s, %s, run %d: %d hopeless pods were bound; its figures say little\n", r.Kind, r.Contender, r.Run, r.Result.Escaped)
		}
	}
	return nil
}

// cells is the part of a line that is measured.
func cells(r result) string {
	turned, longest := "-", "-"
	if r.Turns > 0 {
		turned, longest = share(len(r.Turned), r.Turns), millis(quantile(r.Turned, 1))
	}
	return fmt.Sprintf("%s\t%s\t%s\t%s\t%.1f\t%d\t%s\t%s\t%s\t%s\t%s\t", share(len(r.Latencies), r.Probes), millis(quantile(r.Latencies, 0.5)),
		millis(quantile(r.Latencies, 0.99)), millis(quantile(r.Latencies, 1)), 100*r.load(), r.Memory>>20,
		share(len(r.Replaced), len(r.Replaced)+r.Waiting), millis(quantile(r.Replaced, 0.5)), millis(quantile(r.Replaced, 0.99)), turned, longest)
}

// pool joins all runs of a kind with a contender: what was counted is summed, memory is the most.
func pool(records []record, kind, contender string) (all result, ok bool) {
	for _, r := range records {
		if r.Kind != kind || r.Contender != contender {
			continue
		}
		ok = true
		all.Probes += r.Result.Probes
		all.CPU += r.Result.CPU
		all.Window += r.Result.Window
		all.Waiting += r.Result.Waiting
		all.Turns += r.Result.Turns
		all.Memory = max(all.Memory, r.Result.Memory)
		all.Latencies = append(all.Latencies, r.Result.Latencies...)
		all.Replaced = append(all.Replaced, r.Result.Replaced...)
		all.Turned = append(all.Turned, r.Result.Turned...)
	}
	for _, list := range [][]time.Duration{all.Latencies, all.Replaced, all.Turned} {
		slices.Sort(list)
	}
	return all, ok
}

func share(part, all int) string { return fmt.Sprintf("%d/%d", part, all) }

// none is what a quantile of no values is.
const none time.Duration = -1

// quantile returns the smallest of some sorted values that at least the share q of them, 0-1, do not exceed.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return none
	}
	return sorted[min(max(int(math.Ceil(q*float64(len(sorted))))-1, 0), len(sorted)-1)]
}

func millis(d time.Duration) string {
	if d == none {
		return "-"
	}
	return fmt.Sprintf("%.1f", d.Seconds()*1000)
}
