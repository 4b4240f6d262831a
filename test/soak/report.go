// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/caldera-scheduler/caldera/pkg/localcluster/schedulerprocess"
	"github.com/caldera-scheduler/caldera/pkg/resource"
	"github.com/caldera-scheduler/caldera/test/soak/monitor"
)

// shownViolations is how many violations of one kind are shown with their evidence.
const shownViolations = 5

// report tells how the run goes and what it showed.
type report struct {
	out     io.Writer
	options options
	conf    conf
	begun   time.Time
	log     string
	// told counts the violations that were told with their evidence, by kind; seen is how many were looked at.
	told map[monitor.Kind]int
	seen int
}

// progress prints one line.
func (r *report) progress(now time.Time, w *world, s own) {
	f := w.monitor.Figures()
	w.mu.Lock()
	jobs := len(w.jobs)
	w.mu.Unlock()
	heldCores, waitingCores := int64(0), int64(0)
	for _, q := range f.Queues {
		heldCores += q.Held.Get(corev1.ResourceCPU) / 1000
		waitingCores += q.Waits.Get(corev1.ResourceCPU) / 1000
	}
	fmt.Fprintf(r.out, "%6s  %d jobs, cores held %d and wanted %d of %d; pods: %d bound, %d evicted, %d lost; violations: %s; wasted %.0f and cycles %.0f by its own count; scheduler %.0f CPU s, %.0f MB\n",
		now.Sub(r.begun).Round(time.Second), jobs, heldCores, waitingCores, w.options.nodes*nodeCores, f.Bound, f.EvictedPods, f.Lost,
		kinds(w.monitor.Violations()), s.wasted, s.cycles, s.cpu, s.memory/(1<<20))
}

// evidence tells of violations that have not been told yet, the first few of each kind with what is known of them.
func (r *report) evidence(list []monitor.Violation, a *asker) {
	if r.told == nil {
		r.told = map[monitor.Kind]int{}
	}
	for _, v := range list[r.seen:] {
		r.seen++
		if r.told[v.Kind]++; r.told[v.Kind] <= shownViolations {
			fmt.Fprintf(r.out, "\nVIOLATION %s at %s: %s\n", v.Kind, v.At.Format("15:04:05.000"), strings.TrimRight(v.Text, "\n"))
			fmt.Fprintln(r.out, a.entries(v.Objects, v.At.Add(-2*time.Minute), v.At.Add(time.Minute)))
		}
	}
}

// kinds counts violations by kind.
func kinds(list []monitor.Violation) string {
	counts := map[monitor.Kind]int{}
	for _, v := range list {
		counts[v.Kind]++
	}
	if len(counts) == 0 {
		return "none"
	}
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[kind], kind))
	}
	return strings.Join(parts, ", ")
}

// final prints the table.
func (r *report) final(w *world, f monitor.Figures, s own) {
	lasted := w.options.duration.Minutes()
	table := tabwriter.NewWriter(r.out, 0, 0, 2, ' ', 0)
	row := func(name, format string, a ...any) { fmt.Fprintf(table, "%s\t%s\n", name, fmt.Sprintf(format, a...)) }
	w.mu.Lock()
	done := w.done
	w.mu.Unlock()
	fmt.Fprintf(table, "\nsoak of %s, %d nodes, %d queues, conf %s, seed %d\n", w.options.duration, w.options.nodes, w.options.queues, r.conf.name, w.options.seed)
	row("jobs", "%d arrived, %d completed, %d deleted in the middle", done.arrived, done.completed, done.cancelled)
	row("pods", "%d bound, %d lost with %d nodes, %d created again", f.Bound, f.Lost, done.nodesLost, done.recreated)
	row("queues changed", "%d times", done.queuesChanged)
	row("requests that failed", "%d", w.failed.Load())
	for _, kind := range monitor.Kinds {
		n := 0
		for _, v := range w.monitor.Violations() {
			if v.Kind == kind {
				n++
			}
		}
		row(string(kind), "%d", n)
	}
	row("above capability for a moment", "%d times, %s at most", f.OverMoments, f.OverLongest.Round(time.Millisecond))
	row("caldera_eviction_cycles_total", "%.0f", s.cycles)
	row("pods evicted", "%d (%.1f a minute); by the scheduler's ledger %d in %d decisions", f.EvictedPods, float64(f.EvictedPods)/lasted, s.totals.Evicted, s.totals.Decisions)
	for _, flow := range slices.SortedFunc(maps.Keys(f.Evicted), func(a, b monitor.Flow) int {
		return cmp.Or(cmp.Compare(a.Action, b.Action), cmp.Compare(a.From, b.From), cmp.Compare(a.For, b.For))
	}) {
		row("  "+flow.Action, "%s -> %s: %d", flow.From, flow.For, f.Evicted[flow])
	}
	row("beneficiaries", "%d started, %d ended by their users before, %d did not start", f.StartedBatches, f.EndedBatches, f.WastedBatches)
	row("evicted/started pods", "%s (%d for %d)", ratio(float64(f.StartedVictims), float64(f.StartedPods)), f.StartedVictims, f.StartedPods)
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		row("evicted/started "+string(name), "%s; by the scheduler's ledger %s", ratio(float64(f.StartedVictimResources.Get(name)), float64(f.StartedResources.Get(name))),
			ratio(float64(resource.FromList(s.totals.Taken).Get(name)), float64(resource.FromList(s.totals.Requested).Get(name))))
	}
	row("evicted for nothing", "%d pods, and %d whose beneficiaries were ended by their users; by the scheduler's count %.0f", f.WastedVictims, f.EndedVictims, s.wasted)
	for _, q := range w.queues {
		waits := slices.Sorted(slices.Values(f.Waits[q.Name]))
		row("arrival to start, "+q.Name, "%d jobs, median %s, p99 %s; %d wait", len(waits), quantile(waits, 0.5), quantile(waits, 0.99), f.Unstarted[q.Name])
	}
	table.Flush() //nolint:errcheck // It goes to the terminal.
	for i, text := range f.Wasted {
		if i == shownViolations {
			break
		}
		fmt.Fprintf(r.out, "evicted for nothing at %s\n", text)
	}
}

func ratio(a, b float64) string {
	if b == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", a/b)
}

// quantile is the value below which the part q of sorted values lies.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))].Round(100 * time.Millisecond)
}

// usage prints what the scheduler consumed from start to end.
func (r *report) usage(u schedulerprocess.Usage) {
	fmt.Fprintf(r.out, "scheduler: %s; log: %s\n", usageLine(u), r.log)
}

// verdict prints the evidence and returns an error if a promise was broken.
func (r *report) verdict(violations []monitor.Violation, a *asker) error {
	r.memory(a.samples)
	r.evidence(violations, a)
	if cycles := a.last().cycles; cycles > 0 {
		return fmt.Errorf("broken promises: %s; caldera_eviction_cycles_total is %.0f", kinds(violations), cycles)
	}
	if len(violations) > 0 {
		return fmt.Errorf("broken promises: %s", kinds(violations))
	}
	return nil
}

// memory prints whether the scheduler's memory grows: its means over the quarters of the run.
func (r *report) memory(samples []own) {
	if len(samples) < 4 {
		return
	}
	var parts []string
	for i := range 4 {
		quarter := samples[i*len(samples)/4 : (i+1)*len(samples)/4]
		memory, heap := 0.0, 0.0
		for _, s := range quarter {
			memory += s.memory / float64(len(quarter))
			heap += s.heap / float64(len(quarter))
		}
		parts = append(parts, fmt.Sprintf("%.0f (heap %.0f)", memory/(1<<20), heap/(1<<20)))
	}
	fmt.Fprintf(r.out, "scheduler's memory, means of the quarters of the run in MB: %s\n", strings.Join(parts, ", "))
}
