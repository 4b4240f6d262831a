// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package usage_test runs the plugin Usage on a real Prometheus, which scrapes made-up nodes.
package usage_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/node/load"
	"github.com/caldera-scheduler/caldera/pkg/plugins/usage"
)

const (
	// patience is how long Prometheus may take to know the loads: its first mean is that of the first half minute of its
	// clock that passes.
	patience = 2 * time.Minute
	pause    = 200 * time.Millisecond
)

func arguments(address string) *config.UsageArgs {
	return &config.UsageArgs{
		CPUWeight: 1, MemoryWeight: 1, CPUThreshold: 80, MemoryThreshold: 80,
		Estimator: config.UsageEstimator{RequestRatio: 0.7, RiskThreshold: 0.6, RiskFactor: 1.2},
		Metrics: config.UsageMetrics{
			Type: config.MetricsPrometheus, Address: address, NodeLabel: "instance",
			Interval: metav1.Duration{Duration: time.Second}, Timeout: metav1.Duration{Duration: 10 * time.Second},
		},
	}
}

func node(name, address string) *framework.NodeInfo {
	info := framework.NewNodeInfo()
	info.SetNode(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: corev1.NodeStatus{
			Capacity:  corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourceMemory: resource.MustParse("16Gi")},
			Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}},
		},
	})
	return info
}

func TestLoadsOfPrometheusDecide(t *testing.T) {
	e := &exporter{start: time.Now(), nodes: map[string]made{
		"hot": {0.9, 0.3, 1e9}, "full": {0.3, 0.9, 1e9}, "idle": {0.2, 0.4, 1e9}, "plain": {0.4, 0.6, 1e9},
		"broken": {0.2, 0.2, 0}, "leaving": {0.2, 0.2, 1e9},
	}}
	address := startPrometheus(t, e)
	args := arguments(address)
	built, err := usage.New(model.NewState())(t.Context(), args, nil)
	if err != nil {
		t.Fatal(err)
	}
	pl := built.(*usage.Usage)
	nodes := []*framework.NodeInfo{
		node("hot", "10.0.0.1"), node("full", "10.0.0.2"), node("idle", "10.0.0.3"), node("broken", "10.0.0.4"),
		node("worker-7", "127.0.0.1"), node("strange", "10.0.0.6"),
	}
	want := map[string]string{
		"hot":      "the CPU load of the node exceeds the upper limit.",
		"full":     "the memory load of the node exceeds the upper limit.",
		"idle":     "scores 70",
		"broken":   "scores 0",
		"worker-7": "scores 50",
		"strange":  "scores 0",
	}
	eventually(t, func() string { return cmp.Diff(want, decide(t, pl, nodes)) })

	from, err := load.New(load.Options{Metrics: args.Metrics})
	if err != nil {
		t.Fatal(err)
	}
	told := func(want bool) func() string {
		return func() string {
			loads, err := from.Loads(t.Context())
			_, known := loads["leaving"]
			if _, others := loads["idle"]; known != want || !others {
				return fmt.Sprintf("known are %v, %v", loads, err)
			}
			return ""
		}
	}
	eventually(t, told(true))
	e.forget("leaving")
	eventually(t, told(false))
}

// decide filters and scores nodes.
func decide(t *testing.T, pl *usage.Usage, nodes []*framework.NodeInfo) map[string]string {
	t.Helper()
	got := map[string]string{}
	for _, info := range nodes {
		if status := pl.Filter(t.Context(), nil, &corev1.Pod{}, info); !status.IsSuccess() {
			got[info.Node().Name] = status.Message()
			continue
		}
		score, status := pl.Score(t.Context(), nil, &corev1.Pod{}, info)
		if !status.IsSuccess() {
			t.Fatal(status)
		}
		got[info.Node().Name] = fmt.Sprintf("scores %d", score)
	}
	return got
}

// eventually waits until nothing is wrong any more.
func eventually(t *testing.T, wrong func() string) {
	t.Helper()
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	for end := time.Now().Add(patience); ; <-ticker.C {
		text := wrong()
		if text == "" {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("after %s: %s", patience, text)
		}
	}
}
