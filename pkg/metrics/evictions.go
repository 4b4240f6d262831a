// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"cmp"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/preemption/eviction"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// Volcano's metrics of preemption.
var (
	preemptionAttempts = metrics.NewCounter(&metrics.CounterOpts{
		Subsystem: "volcano", Name: "total_preemption_attempts", StabilityLevel: metrics.ALPHA,
		Help: "Number of times that the eviction of pods was weighed for a job.",
	})
	preemptionVictims = metrics.NewGauge(&metrics.GaugeOpts{
		Subsystem: "volcano", Name: "pod_preemption_victims", StabilityLevel: metrics.ALPHA,
		Help: "Number of victims chosen at the last attempt.",
	})
)

// describeOwn describes a metric by its whole name.
func describeOwn(name, help string, labels ...string) *metrics.Desc {
	return metrics.NewDesc(name, help, labels, nil, metrics.ALPHA, "")
}

// The metrics that are read off the ledger.
var (
	transactions = describeOwn("volcano_eviction_transactions_total", "Number of decisions to evict, by action.", "action")
	evictions    = describeOwn("caldera_evictions_total",
		"Number of pods evicted, by action, the queue that lost them and the queue that got the room. That is empty for shuffle.", "action", "from_queue", "for_queue")
	wastedEvictions = describeOwn("caldera_evictions_wasted_total", "Number of pods evicted for jobs that then did not start.")
	evictionCycles  = describeOwn("caldera_eviction_cycles_total",
		"Number of pods evicted for a job that had itself lost pods to theirs within the hour before; anything but 0 is a bug.")
	requestedByEvictions = describeOwn("caldera_evictions_requested_resources_total",
		"What the jobs that pods were evicted for asked for (cores, bytes, counts).", "resource")
	takenByEvictions = describeOwn("caldera_evictions_evicted_resources_total",
		"What the evicted pods had asked for (cores, bytes, counts).", "resource")
)

// RegisterEvictions adds the metrics of evictions to the registry that the scheduler serves.
func RegisterEvictions(ledger *eviction.Ledger) {
	legacyregistry.MustRegister(preemptionAttempts, preemptionVictims)
	legacyregistry.CustomMustRegister(&evictionCollector{ledger: ledger})
}

// PreemptionAttempt counts that an action weighed the eviction of pods for a job, how many victims were chosen, and how long that took.
func PreemptionAttempt(action config.Action, victims int, took time.Duration) {
	preemptionAttempts.Inc()
	preemptionVictims.Set(float64(victims))
	actionLatency.WithLabelValues(string(action)).Observe(milliseconds(took))
}

// evictionCollector reads the metrics off the ledger when they are asked for.
type evictionCollector struct {
	metrics.BaseStableCollector
	ledger *eviction.Ledger
}

// DescribeWithStability implements metrics.StableCollector.
func (c *evictionCollector) DescribeWithStability(out chan<- *metrics.Desc) {
	for _, d := range []*metrics.Desc{transactions, evictions, wastedEvictions, evictionCycles, requestedByEvictions, takenByEvictions} {
		out <- d
	}
}

// CollectWithStability implements metrics.StableCollector.
func (c *evictionCollector) CollectWithStability(out chan<- metrics.Metric) {
	count := func(d *metrics.Desc, value float64, labels ...string) {
		out <- metrics.NewLazyConstMetric(d, metrics.CounterValue, value, labels...)
	}
	f := c.ledger.Figures()
	for _, action := range slices.Sorted(maps.Keys(f.Decisions)) {
		count(transactions, float64(f.Decisions[action]), action)
	}
	for _, flow := range slices.SortedFunc(maps.Keys(f.Evictions), compareFlows) {
		count(evictions, float64(f.Evictions[flow]), flow.Action, flow.From, flow.For)
	}
	count(wastedEvictions, float64(f.Wasted))
	count(evictionCycles, float64(f.Cycles))
	amounts := func(d *metrics.Desc, v resource.Vector) {
		for _, a := range v {
			value := float64(a.Value)
			if a.Name == corev1.ResourceCPU {
				value /= 1000
			}
			count(d, value, string(a.Name))
		}
	}
	amounts(requestedByEvictions, f.Requested)
	amounts(takenByEvictions, f.Evicted)
}

func compareFlows(a, b eviction.Flow) int {
	return cmp.Or(cmp.Compare(a.Action, b.Action), cmp.Compare(a.From, b.From), cmp.Compare(a.For, b.For))
}
