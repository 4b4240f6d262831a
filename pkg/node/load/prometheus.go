// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/prometheus/client_golang/api"
	prometheusv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
)

// The loads of all nodes, over 10 minutes (Volcano pkg/scheduler/metrics/source/metrics_client_prometheus.go, which asks for
// each node alone). A mean over a time has no time of its own, so each query also returns when the newest of its series was
// scraped: a series "load" and a series "time" for each node. LABEL is the label with the name of the node. The time that cores
// idle is compared with all their time and not with that of the clock, as Volcano does: a node that is scraped for less than 5
// minutes would look busy.
const (
	cpuQuery = `label_replace(avg_over_time(clamp_min(100 - 100 * sum by (LABEL) (rate(node_cpu_seconds_total{mode="idle"}[5m])) / sum by (LABEL) (rate(node_cpu_seconds_total[5m])), 0)[10m:30s]), "part", "load", "", "")` +
		` or label_replace(max by (LABEL) (timestamp(node_cpu_seconds_total{mode="idle"})), "part", "time", "", "")`
	memoryQuery = `label_replace(100 * avg_over_time((1 - max by (LABEL) (node_memory_MemAvailable_bytes) / max by (LABEL) (node_memory_MemTotal_bytes))[10m:30s]), "part", "load", "", "")` +
		` or label_replace(max by (LABEL) (timestamp(node_memory_MemAvailable_bytes)), "part", "time", "", "")`
)

// prometheus asks Prometheus for what node_exporter measures.
type prometheus struct {
	api   prometheusv1.API
	label string
}

func newPrometheus(m *config.UsageMetrics) (Source, error) {
	client, err := api.NewClient(api.Config{Address: m.Address, RoundTripper: transport(m)})
	if err != nil {
		return nil, fmt.Errorf("building the client of Prometheus at %s: %w", m.Address, err)
	}
	return &prometheus{api: prometheusv1.NewAPI(client), label: m.NodeLabel}, nil
}

// Loads implements Source.
func (p *prometheus) Loads(ctx context.Context) (map[string]Load, error) {
	g := newGathering()
	return g.finish(p.query(ctx, g, cpu, cpuQuery), p.query(ctx, g, memory, memoryQuery))
}

func (p *prometheus) query(ctx context.Context, g *gathering, into part, query string) error {
	query = strings.ReplaceAll(query, "LABEL", p.label)
	// A zero time is Prometheus's own now: its clock need not agree with ours.
	value, _, err := p.api.Query(ctx, query, time.Time{})
	if err != nil {
		return fmt.Errorf("asking Prometheus: %w", err)
	}
	vector, ok := value.(model.Vector)
	if !ok {
		return fmt.Errorf("asking Prometheus: the answer is a %s, want a vector", value.Type())
	}
	times := map[model.LabelValue]time.Time{}
	for _, s := range vector {
		if seconds := float64(s.Value); s.Metric["part"] == "time" && seconds > 0 && seconds < math.MaxInt64/1e9 {
			times[s.Metric[model.LabelName(p.label)]] = time.UnixMilli(int64(seconds * 1000))
		}
	}
	found := false
	for _, s := range vector {
		instance := s.Metric[model.LabelName(p.label)]
		// Without a time the node is not scraped any more: what is left is the mean of a while ago.
		if at, scraped := times[instance]; scraped && instance != "" && s.Metric["part"] == "load" {
			found = true
			g.add(into, string(instance), Sample{Percent: float64(s.Value), Time: at})
		}
	}
	if !found {
		return errors.New("asking Prometheus: no node has the series node_cpu_seconds_total and node_memory_MemAvailable_bytes of node_exporter " +
			"with the label " + p.label)
	}
	return nil
}
