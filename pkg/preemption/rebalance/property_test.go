// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package rebalance_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/preemption/rebalance"
	"github.com/caldera-scheduler/caldera/pkg/volcano/arguments"
)

// percent draws a load or a threshold.
func percent(t *rapid.T, name string, most int) float64 {
	return float64(rapid.IntRange(0, most).Draw(t, name))
}

// drawn is a cluster of up to six nodes, of some of which the loads are not known, with pods of several sizes.
func drawn(t *rapid.T) *world {
	w := newWorld()
	for i := range rapid.IntRange(1, 6).Draw(t, "nodes") {
		name := fmt.Sprintf("n%d", i)
		if rapid.IntRange(0, 4).Draw(t, "known") == 0 {
			w.node(name)
		} else {
			w.loaded(name, percent(t, "cpu", 110), percent(t, "memory", 110))
		}
		for k := range rapid.IntRange(0, 3).Draw(t, "jobs") {
			size := rapid.IntRange(1, 3).Draw(t, "size")
			w.pods(fmt.Sprintf("j%d%d", i, k), name, rapid.IntRange(0, size).Draw(t, "least"), size,
				asking(rapid.SampledFrom([]string{"0", "300m", "1", "2"}).Draw(t, "cores"), rapid.SampledFrom([]string{"0", "500Mi", "2Gi"}).Draw(t, "memory")),
				priority(int32(rapid.IntRange(0, 2).Draw(t, "priority"))))
		}
	}
	return w
}

// TestNobodyIsMovedInVain checks, whatever the cluster: nodes whose loads are not known lose nobody; no node loses a pod once
// its loads are below the targets, or a pod that does not relieve it; what is moved fits on the nodes with little use, within
// their targets; no gang falls below its minimum; and the same cluster always has the same answer.
func TestNobodyIsMovedInVain(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := drawn(t)
		target := arguments.Utilization{CPU: percent(t, "target of cpu", 100), Memory: percent(t, "target of memory", 100)}
		by := &arguments.LowNodeUtilization{Target: target, Low: arguments.Utilization{
			CPU: percent(t, "low cpu", int(target.CPU)), Memory: percent(t, "low memory", int(target.Memory)),
		}}
		nodes := w.nodes()
		chosen := rebalance.Spread(by, nodes, w.protection(guards()...))
		left := map[string]arguments.Utilization{}
		ready := map[model.JobKey]int{}
		var cores, memory float64
		for _, c := range chosen {
			load, known := w.loads[c.Task.Node]
			if !known {
				t.Fatalf("%s goes from %s, of which no load is known", c.Task.Pod.Name, c.Task.Node)
			}
			if before, moved := left[c.Task.Node]; moved {
				load = before
			}
			cpu, mem := percentOf(c.Task)
			if !(load.CPU >= target.CPU && cpu > 0 || load.Memory >= target.Memory && mem > 0) {
				t.Fatalf("%s, which uses %g and %g, goes from %s, whose loads are %+v, for targets of %+v", c.Task.Pod.Name, cpu, mem, c.Task.Node, load, target)
			}
			left[c.Task.Node] = arguments.Utilization{CPU: load.CPU - cpu, Memory: load.Memory - mem}
			cores, memory = cores+cpu, memory+mem
			if ready[c.Job.Key]++; c.Job.Counts.Total() > 1 && c.Job.Counts.Ready()-ready[c.Job.Key] < c.Job.Min() {
				t.Fatalf("job %s falls below its minimum of %d", c.Job.Key, c.Job.Min())
			}
		}
		var room arguments.Utilization
		for _, load := range w.loads {
			if load.CPU < by.Low.CPU && load.Memory < by.Low.Memory {
				room.CPU += target.CPU - load.CPU
				room.Memory += target.Memory - load.Memory
			}
		}
		const slack = 1e-6 // Sums of fractions.
		if cores > room.CPU+slack || memory > room.Memory+slack {
			t.Fatalf("%g percent of cores and %g of memory are moved, and there is room for %+v", cores, memory, room)
		}
		if again := rebalance.Spread(by, w.nodes(), w.protection(guards()...)); !slices.Equal(names(again), names(chosen)) {
			t.Fatalf("moved %v, and then %v", names(chosen), names(again))
		}
	})
}

// percentOf is what a task asks for, in percent of a node.
func percentOf(t *model.Task) (cpu, memory float64) {
	return float64(t.Request.Get(corev1.ResourceCPU)) / 100, 100 * float64(t.Request.Get(corev1.ResourceMemory)) / (10 << 30)
}

// TestNoMoreLeaveThanTheirJobsAllow checks, whatever the cluster: only pods of nodes whose window is closed go, of no job more than
// may be missing, and of no budget more than it allows.
func TestNoMoreLeaveThanTheirJobsAllow(t *testing.T) {
	t.Parallel()
	zones := map[string]arguments.Window{"open": {Start: 11 * time.Hour, End: 13 * time.Hour}, "closed": {Start: 22 * time.Hour, End: 6 * time.Hour}}
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		zoneOf := map[string]string{}
		for _, name := range []string{"n0", "n1", "n2"} {
			zoneOf[name] = rapid.SampledFrom([]string{"", "open", "closed", "unknown"}).Draw(t, "zone")
			w.node(name, labelled(model.RevocableZoneKey, zoneOf[name]))
		}
		budgets := map[string]int{}
		for i := range rapid.IntRange(0, 5).Draw(t, "jobs") {
			job := fmt.Sprintf("j%d", i)
			w.pods(job, rapid.SampledFrom([]string{"n0", "n1", "n2"}).Draw(t, "node"), 1, rapid.IntRange(1, 4).Draw(t, "size"))
			if key := rapid.SampledFrom([]string{"", model.MinAvailableAnnotation, model.MaxUnavailableAnnotation}).Draw(t, "says"); key != "" {
				w.says(job, 1, key, rapid.SampledFrom([]string{"0", "1", "3", "50%"}).Draw(t, "how many"))
			}
			if rapid.Bool().Draw(t, "budgeted") {
				budgets[job] = rapid.IntRange(0, 2).Draw(t, "allowed")
				w.budget(job, int32(budgets[job]))
			}
		}
		gone := map[string]int{}
		for _, c := range rebalance.Vacate(zones, now, w.nodes(), w.protection(guards()...)) {
			if zoneOf[c.Task.Node] != "closed" {
				t.Fatalf("%s goes from %s, which is in zone %q", c.Task.Pod.Name, c.Task.Node, zoneOf[c.Task.Node])
			}
			if gone[c.Job.Key.Name]++; gone[c.Job.Key.Name] > c.Job.EvictableAtOnce() {
				t.Fatalf("%d pods of %s go, and %d may be missing", gone[c.Job.Key.Name], c.Job.Key, c.Job.EvictableAtOnce())
			}
			if allowed, budgeted := budgets[c.Job.Key.Name]; budgeted && gone[c.Job.Key.Name] > allowed {
				t.Fatalf("%d pods of %s go, and its budget allows %d", gone[c.Job.Key.Name], c.Job.Key, allowed)
			}
		}
	})
}
