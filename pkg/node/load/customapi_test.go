// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package load_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/node/load"
)

// values is an answer of the custom metrics API: "node value second" for each node.
func values(version, metric string, nodes ...string) string {
	var items []string
	for _, n := range nodes {
		var name, value string
		var second int
		if _, err := fmt.Sscan(n, &name, &value, &second); err != nil {
			panic(err)
		}
		of := fmt.Sprintf(`"metric": {"name": %q}`, metric)
		if version == "v1beta1" {
			of = fmt.Sprintf(`"metricName": %q`, metric)
		}
		items = append(items, fmt.Sprintf(`{"describedObject": {"kind": "Node", "name": %q, "apiVersion": "/v1"}, %s, "timestamp": %q, "value": %q}`,
			name, of, at(second).Format(time.RFC3339), value))
	}
	return fmt.Sprintf(`{"kind": "MetricValueList", "apiVersion": "custom.metrics.k8s.io/%s", "metadata": {}, "items": [%s]}`, version, strings.Join(items, ","))
}

// adapter serves one version of the custom metrics API.
func adapter(t *testing.T, version, cpu, memory string) string {
	t.Helper()
	const api = "/apis/custom.metrics.k8s.io/"
	served := fmt.Sprintf(`{"groupVersion": "custom.metrics.k8s.io/%[1]s", "version": %[1]q}`, version)
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/api":
			fmt.Fprint(w, `{"kind": "APIVersions", "versions": ["v1"]}`)
		case "/apis":
			fmt.Fprintf(w, `{"kind": "APIGroupList", "groups": [{"name": "custom.metrics.k8s.io", "versions": [%s], "preferredVersion": %s}]}`, served, served)
		case api + version + "/nodes/*/node_cpu_usage_avg":
			fmt.Fprint(w, cpu)
		case api + version + "/nodes/*/node_memory_usage_avg":
			fmt.Fprint(w, memory)
		default:
			http.NotFound(w, r)
		}
	})
}

func TestCustomMetricsAPI(t *testing.T) {
	const c, m = "node_cpu_usage_avg", "node_memory_usage_avg"
	for name, tc := range map[string]struct {
		version, cpu, memory string
		want                 map[string]load.Load
		err                  []string
	}{
		"fractions become percents": {
			"v1beta2", values("v1beta2", c, "a 300m 1", "b 1 2"), values("v1beta2", m, "a 500m 3", "b 0 4"),
			map[string]load.Load{
				"a": {CPU: load.Sample{Percent: 30, Time: at(1)}, Memory: load.Sample{Percent: 50, Time: at(3)}},
				"b": {CPU: load.Sample{Percent: 100, Time: at(2)}, Memory: load.Sample{Time: at(4)}},
			},
			nil,
		},
		"an adapter of an older version": {
			"v1beta1", values("v1beta1", c, "a 300m 1"), values("v1beta1", m, "a 500m 3"),
			map[string]load.Load{"a": {CPU: load.Sample{Percent: 30, Time: at(1)}, Memory: load.Sample{Percent: 50, Time: at(3)}}},
			nil,
		},
		"a negative load is not 0": {
			"v1beta2", values("v1beta2", c, "a -300m 1"), values("v1beta2", m, "a 500m 3"),
			map[string]load.Load{"a": {Memory: load.Sample{Percent: 50, Time: at(3)}}},
			[]string{"that of node a is -30"},
		},
		"one metric that no node has": {
			"v1beta2", values("v1beta2", c, "a 300m 1"), values("v1beta2", m),
			map[string]load.Load{"a": {CPU: load.Sample{Percent: 30, Time: at(1)}}},
			[]string{"for node_memory_usage_avg: no node has it"},
		},
		"another API in the place of this one": {
			"v1", "", "", none(), []string{"asking the custom metrics API for node_cpu_usage_avg"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			loads, err := loadsFrom(t, metrics(config.MetricsCustomAPI, adapter(t, tc.version, tc.cpu, tc.memory)))
			check(t, loads, err, tc.want, tc.err...)
		})
	}
}
