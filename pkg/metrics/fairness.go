// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-base/metrics"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/queue/dispatch"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

const (
	queueLabel    = "queue"
	resourceLabel = "resource"

	// inLine stands for the reason of jobs that nothing is known to keep from starting.
	inLine = "InLine"
	// noQueue stands for all queues that do not exist. No queue can have that name.
	noQueue = "(none)"
)

// slotSizes are how many devices the pods ask for that slots are counted for.
var slotSizes = []int64{1, 2, 4, 8}

// What Caldera shows of queues that exist, and of nodes. Amounts are in cores, bytes and counts.
var (
	jobsWaiting = describeOwn("caldera_jobs_waiting",
		"Number of jobs that wait, by queue and by the reason that they were last told; InLine: nothing is known to be in their way. Jobs of queues that do not exist are those of the queue (none).", queueLabel, "reason")
	queueHeld = describeOwn("caldera_queue_held",
		"What the queue and all queues below it hold (cores, bytes, counts).", queueLabel, resourceLabel)
	queueDue = describeOwn("caldera_queue_due",
		"What the queue is due, with all queues below it (cores, bytes, counts). There is none where nothing divides the cluster, nor of resources of which it is due nothing.", queueLabel, resourceLabel)
	queueLimit = describeOwn("caldera_queue_limit",
		"What the queue may hold at most, with all queues below it (cores, bytes, counts). There is none where there is no limit.", queueLabel, resourceLabel)
	queueLeftOut = describeOwn("caldera_queue_left_out",
		"1 if the queue contradicts itself or the others, so that none of its jobs has turns, else 0.", queueLabel)
	belowDue = describeOwn("caldera_queue_below_due_seconds_total",
		"Seconds for which jobs of the queue waited that were let in, or have their pods, and that the queue could hold without holding more than it is due.", queueLabel)
	slots = describeOwn("caldera_slots",
		"Number of pods that would find room now, each with so many devices of the resource on one node that is ready and not cordoned.", resourceLabel, "size")
)

// fairness shows what is divided between queues, who waits, and what fits.
type fairness struct{ source Source }

func (f fairness) describe(out chan<- *metrics.Desc) {
	for _, d := range []*metrics.Desc{jobsWaiting, queueHeld, queueDue, queueLimit, queueLeftOut, belowDue, slots} {
		out <- d
	}
}

// collect shows all of it. Queues that are only named by jobs are none: users make them up.
func (f fairness) collect(queues []dispatch.QueueFigures, waiting []dispatch.Waiting, out chan<- metrics.Metric) {
	gauge := func(d *metrics.Desc, value float64, labels ...string) {
		out <- metrics.NewLazyConstMetric(d, metrics.GaugeValue, value, labels...)
	}
	exists := make(map[string]bool, len(queues))
	for i := range queues {
		q := &queues[i]
		if q.Spec == nil {
			continue
		}
		exists[q.Name] = true
		collectAmounts(q, gauge)
		gauge(queueLeftOut, indicator(q.Fault != (model.Reason{})), q.Name)
		out <- metrics.NewLazyConstMetric(belowDue, metrics.CounterValue, q.BelowDue, q.Name)
	}
	collectWaiting(exists, waiting, gauge)
	for name, counts := range f.source.Slots(slotSizes...) {
		for i, n := range counts {
			gauge(slots, float64(n), string(name), strconv.FormatInt(slotSizes[i], 10))
		}
	}
	waits.keep(exists)
	starts.keep(exists)
}

// collectAmounts shows what a queue holds, is due and may hold. Of what it is due, or may hold, and does not hold, it holds 0.
func collectAmounts(q *dispatch.QueueFigures, gauge func(*metrics.Desc, float64, ...string)) {
	held := q.Total.Allocated.Portion()
	for _, bounds := range []resource.Portion{q.Deserved, q.Real.Amounts} {
		for _, a := range bounds {
			if held.Get(a.Name) == 0 {
				held = held.Plus(resource.Portion{{Name: a.Name}})
			}
		}
	}
	for d, amounts := range map[*metrics.Desc]resource.Portion{queueHeld: held, queueDue: q.Deserved, queueLimit: q.Real.Amounts} {
		for _, a := range amounts {
			gauge(d, inUnits(a.Name, a.Value), q.Name, string(a.Name))
		}
	}
}

// collectWaiting counts the jobs that wait. Each queue has a series, so that one in which nobody waits is seen to be empty.
func collectWaiting(exists map[string]bool, waiting []dispatch.Waiting, gauge func(*metrics.Desc, float64, ...string)) {
	type group struct{ queue, reason string }
	count := make(map[group]int, len(exists))
	for queue := range exists {
		count[group{queue, inLine}] = 0
	}
	for _, w := range waiting {
		g := group{w.Queue, string(w.Reason.Kind)}
		if !exists[g.queue] {
			g.queue = noQueue
		}
		if g.reason == "" {
			g.reason = inLine
		}
		count[g]++
	}
	for g, n := range count {
		gauge(jobsWaiting, float64(n), g.queue, g.reason)
	}
}

// inUnits is an amount in cores, bytes or counts.
func inUnits(name corev1.ResourceName, value float64) float64 {
	if name == corev1.ResourceCPU {
		return value / 1000
	}
	return value
}

func indicator(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
