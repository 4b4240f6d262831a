// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-base/metrics"
	kubetestutil "k8s.io/component-base/metrics/testutil"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/preemption/eviction"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

func TestEvictionsAreReadOffTheLedger(t *testing.T) {
	ledger := eviction.NewLedger(1, time.Minute)
	now := time.Date(2026, time.August, 15, 12, 0, 0, 0, time.UTC)
	x, a := model.JobKey{Source: model.FromVolcano, Namespace: "team", Name: "x"}, model.JobKey{Source: model.FromVolcano, Namespace: "team", Name: "a"}
	evict := func(action string, taker, loser model.JobKey, to, from string, gpus int64) {
		victim := &eviction.Victim{UID: "victim", Pod: &corev1.Pod{}, Job: loser, Queue: from, Request: resource.Vector{{Name: "cpu", Value: 2500}}}
		d := ledger.Begin(now, eviction.Decision{
			Action: action, Beneficiary: taker, Queue: to, Victims: []*eviction.Victim{victim},
			Members: []eviction.Member{{Request: resource.Vector{{Name: "nvidia.com/gpu", Value: gpus}}}},
		})
		ledger.Sent(d.ID, victim.UID)
		ledger.Leaving(victim.UID, now.Add(time.Minute))
		ledger.Cancel(taker, now)
	}
	evict(eviction.Reclaim, x, a, "b", "a", 2)
	evict(eviction.Reclaim, a, x, "a", "b", 3)
	evict(eviction.Preempt, x, model.JobKey{Name: "c"}, "b", "b", 1)
	registry := metrics.NewKubeRegistry()
	registry.CustomMustRegister(&evictionCollector{ledger: ledger})
	if err := testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP caldera_eviction_cycles_total [ALPHA] Number of pods evicted for a job that had itself lost pods to theirs within the hour before; anything but 0 is a bug.
# TYPE caldera_eviction_cycles_total counter
caldera_eviction_cycles_total 1
# HELP caldera_evictions_evicted_resources_total [ALPHA] What the evicted pods had asked for (cores, bytes, counts).
# TYPE caldera_evictions_evicted_resources_total counter
caldera_evictions_evicted_resources_total{resource="cpu"} 7.5
# HELP caldera_evictions_requested_resources_total [ALPHA] What the jobs that pods were evicted for asked for (cores, bytes, counts).
# TYPE caldera_evictions_requested_resources_total counter
caldera_evictions_requested_resources_total{resource="nvidia.com/gpu"} 6
# HELP caldera_evictions_total [ALPHA] Number of pods evicted, by action, the queue that lost them and the queue that got the room. That is empty for shuffle.
# TYPE caldera_evictions_total counter
caldera_evictions_total{action="preempt",for_queue="b",from_queue="b"} 1
caldera_evictions_total{action="reclaim",for_queue="a",from_queue="b"} 1
caldera_evictions_total{action="reclaim",for_queue="b",from_queue="a"} 1
# HELP caldera_evictions_wasted_total [ALPHA] Number of pods evicted for jobs that then did not start.
# TYPE caldera_evictions_wasted_total counter
caldera_evictions_wasted_total 3
# HELP volcano_eviction_transactions_total [ALPHA] Number of decisions to evict, by action.
# TYPE volcano_eviction_transactions_total counter
volcano_eviction_transactions_total{action="preempt"} 1
volcano_eviction_transactions_total{action="reclaim"} 2
`)); err != nil {
		t.Error(err)
	}
}

func TestAttemptsAreCounted(t *testing.T) {
	registry := metrics.NewKubeRegistry()
	registry.MustRegister(preemptionAttempts, preemptionVictims)
	before, err := kubetestutil.GetCounterMetricValue(preemptionAttempts)
	if err != nil {
		t.Fatal(err)
	}
	PreemptionAttempt(config.Reclaim, 4, time.Second)
	PreemptionAttempt(config.Reclaim, 2, time.Second)
	after, errAfter := kubetestutil.GetCounterMetricValue(preemptionAttempts)
	victims, errVictims := kubetestutil.GetGaugeMetricValue(preemptionVictims)
	if err := errors.Join(errAfter, errVictims); err != nil {
		t.Fatal(err)
	}
	if after-before != 2 || victims != 2 {
		t.Errorf("%v attempts, %v victims at the last one; want 2 and 2", after-before, victims)
	}
}
