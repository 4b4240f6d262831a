// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package load_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/node/load"
)

// vector is an answer of Prometheus: a line "instance load time" for each node; "-" leaves a series out.
func vector(label string, lines ...string) string {
	var series []string
	add := func(instance, part, value string) {
		if value != "-" {
			series = append(series, fmt.Sprintf(`{"metric": {%q: %q, "part": %q}, "value": [1700000999, %q]}`, label, instance, part, value))
		}
	}
	for _, l := range lines {
		f := strings.Fields(l)
		add(f[0], "load", f[1])
		add(f[0], "time", f[2])
	}
	return `{"status": "success", "data": {"resultType": "vector", "result": [` + strings.Join(series, ",") + `]}}`
}

// prometheus serves answers to the two queries.
func prometheus(t *testing.T, cpu, memory string) string {
	t.Helper()
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch query := r.FormValue("query"); {
		case r.URL.Path != "/api/v1/query" || r.FormValue("time") != "":
			http.NotFound(w, r)
		case strings.Contains(query, "node_cpu_seconds_total"):
			fmt.Fprint(w, cpu)
		case strings.Contains(query, "node_memory_MemAvailable_bytes"):
			fmt.Fprint(w, memory)
		default:
			http.NotFound(w, r)
		}
	})
}

func TestPrometheus(t *testing.T) {
	const instance = "instance"
	for name, tc := range map[string]struct {
		cpu, memory string
		want        map[string]load.Load
		err         []string
	}{
		"loads with the times of their samples": {
			vector(instance, "a 30 1700000001", "b 60.5 1700000002"), vector(instance, "a 50 1700000003", "b 0 1700000004"),
			map[string]load.Load{
				"a": {CPU: load.Sample{Percent: 30, Time: at(1)}, Memory: load.Sample{Percent: 50, Time: at(3)}},
				"b": {CPU: load.Sample{Percent: 60.5, Time: at(2)}, Memory: load.Sample{Time: at(4)}},
			},
			nil,
		},
		"a node with a port": {
			vector(instance, "10.0.0.1:9100 30 1700000001", "[fd00::1]:9100 40 1700000001"), vector(instance, "10.0.0.1:9100 50 1700000001"),
			map[string]load.Load{
				"10.0.0.1": {CPU: load.Sample{Percent: 30, Time: at(1)}, Memory: load.Sample{Percent: 50, Time: at(1)}},
				"fd00::1":  {CPU: load.Sample{Percent: 40, Time: at(1)}},
			},
			nil,
		},
		"of two exporters the higher load counts": {
			vector(instance, "a:1 30 1700000001", "a:2 40 1700000000"), vector(instance, "a:1 50 1700000001", "a:2 40 1700000002"),
			map[string]load.Load{"a": {CPU: load.Sample{Percent: 40, Time: at(0)}, Memory: load.Sample{Percent: 50, Time: at(1)}}},
			nil,
		},
		"what is no number, infinite or negative is not 0": {
			vector(instance, "a NaN 1700000001", "b +Inf 1700000001", "c -1 1700000001", "d 7 1700000001"), vector(instance, "a 50 1700000001"),
			map[string]load.Load{"a": {Memory: load.Sample{Percent: 50, Time: at(1)}}, "d": {CPU: load.Sample{Percent: 7, Time: at(1)}}},
			[]string{"that of node a is NaN, want a number of at least 0 (3 such nodes)"},
		},
		"a node that is not scraped any more is not known": {
			vector(instance, "a 30 -", "b 30 NaN", "c 30 1700000001", "d - 1700000001"), vector(instance, "c 30 1700000001"),
			map[string]load.Load{"c": {CPU: load.Sample{Percent: 30, Time: at(1)}, Memory: load.Sample{Percent: 30, Time: at(1)}}},
			nil,
		},
		"no node at all": {
			vector(instance), vector(instance), none(),
			[]string{"no node has the series node_cpu_seconds_total and node_memory_MemAvailable_bytes of node_exporter with the label instance"},
		},
		"one query fails": {
			vector(instance, "a 30 1700000001"), `{"status": "error", "errorType": "timeout", "error": "query timed out"}`,
			map[string]load.Load{"a": {CPU: load.Sample{Percent: 30, Time: at(1)}}},
			[]string{"query timed out"},
		},
		"an answer of another type": {
			`{"status": "success", "data": {"resultType": "scalar", "result": [1700000999, "1"]}}`, vector(instance, "a 30 1700000001"),
			map[string]load.Load{"a": {Memory: load.Sample{Percent: 30, Time: at(1)}}},
			[]string{"the answer is a scalar, want a vector"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			loads, err := loadsFrom(t, metrics(config.MetricsPrometheus, prometheus(t, tc.cpu, tc.memory)))
			check(t, loads, err, tc.want, tc.err...)
		})
	}
}

func TestPrometheusWithAnotherLabel(t *testing.T) {
	m := metrics(config.MetricsPrometheus, prometheus(t, vector("node", "a 30 1700000001"), vector("node", "a 50 1700000001")))
	m.NodeLabel = "node"
	loads, err := loadsFrom(t, m)
	check(t, loads, err, map[string]load.Load{
		"a": {CPU: load.Sample{Percent: 30, Time: at(1)}, Memory: load.Sample{Percent: 50, Time: at(1)}},
	})
}
