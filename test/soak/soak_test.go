// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/caldera-scheduler/caldera/test/soak/monitor"
)

// TestShort has queues live for a minute on a small cluster, where jobs come and go twelve times as fast.
func TestShort(t *testing.T) {
	seen, err := soak(t.Context(), options{duration: time.Minute, nodes: 40, queues: 5, seed: 1, conf: "shares", logs: t.TempDir()}, t.Output())
	if err != nil {
		t.Error(err)
	}
	if seen.Bound < 100 || seen.EvictedPods == 0 || seen.StartedBatches == 0 || seen.Lost == 0 {
		t.Errorf("%d pods bound, %d evicted, %d beneficiaries started, %d pods lost: too little happened to judge by",
			seen.Bound, seen.EvictedPods, seen.StartedBatches, seen.Lost)
	}
	// On a slow machine a minute may be too short for queues to take from each other, too.
	t.Logf("%d pods were reclaimed", reclaims(seen))
}

func reclaims(f monitor.Figures) int {
	n := 0
	for flow, pods := range f.Evicted {
		if flow.Action == "reclaim" {
			n += pods
		}
	}
	return n
}

func TestConf(t *testing.T) {
	for name, byObject := range map[string]bool{"shares": false, "capacity": true} {
		c, err := readConf(name)
		if err != nil || c.byObject != byObject {
			t.Errorf("%s: queues deserve what their objects say: %t, want %t (%v)", name, c.byObject, byObject, err)
		}
		if n := strings.Count(string(c.scheduler), "kind: BatchQueueArgs"); n != 2 {
			t.Errorf("%s: %d profiles have arguments of BatchQueue, want 2", name, n)
		}
	}
}

func TestReadMetrics(t *testing.T) {
	sums, err := readMetrics(strings.NewReader(`# HELP x_total What x counts.
# TYPE x_total counter
x_total{from="a b",to="c"} 3
x_total{from="d",to="e"} 4
y 1.5e+06
`))
	if err != nil || sums["x_total"] != 7 || sums["y"] != 1.5e6 {
		t.Errorf("metrics are %v (%v), want x_total 7 and y 1.5e6", sums, err)
	}
}

func TestWavesLeaveAndClaimRoom(t *testing.T) {
	p := paceOf(30 * time.Minute)
	least, most := 10.0, 0.0
	for since := time.Duration(0); since < p.period; since += time.Second {
		wanted := p.wanted(2, 5, since)
		least, most = min(least, wanted), max(most, wanted)
	}
	if least > 0.3 || most < 2 {
		t.Errorf("a queue asks for %.1f to %.1f of its share: nobody has to borrow or to take back", least, most)
	}
}
