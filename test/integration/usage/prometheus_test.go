// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package usage_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caldera-scheduler/caldera/test/integration/prometheus"
)

// exporter serves what node_exporter does, for nodes whose loads a test makes up.
type exporter struct {
	mu    sync.Mutex
	nodes map[string]made
	start time.Time
}

// made is what a node is made to use, as fractions. A total of 0 makes the part in use 0/0.
type made struct{ cpu, memory, total float64 }

func (e *exporter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	n, ok := e.nodes[strings.TrimPrefix(r.URL.Path, "/")]
	if !ok {
		http.NotFound(w, r)
		return
	}
	busy := time.Since(e.start).Seconds() * n.cpu
	idle := time.Since(e.start).Seconds() * (1 - n.cpu)
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	fmt.Fprint(w, "# TYPE node_cpu_seconds_total counter\n")
	for core := range 2 {
		fmt.Fprintf(w, "node_cpu_seconds_total{cpu=\"%d\",mode=\"idle\"} %f\nnode_cpu_seconds_total{cpu=\"%d\",mode=\"user\"} %f\n", core, idle, core, busy)
	}
	fmt.Fprintf(w, "# TYPE node_memory_MemTotal_bytes gauge\nnode_memory_MemTotal_bytes %f\n", n.total)
	fmt.Fprintf(w, "# TYPE node_memory_MemAvailable_bytes gauge\nnode_memory_MemAvailable_bytes %f\n", n.total*(1-n.memory))
}

// make has a node use something else.
func (e *exporter) make(node string, uses made) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.nodes[node] = uses
}

// forget lets a node be down.
func (e *exporter) forget(node string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.nodes, node)
}

// The nodes of the first job have their names for instances; the node "plain" of the second keeps its address.
const scraping = `
global: {scrape_interval: 500ms, scrape_timeout: 400ms}
scrape_configs:
- job_name: named
  static_configs: [{targets: [%[2]s]}]
  relabel_configs:
  - {source_labels: [__address__], target_label: instance}
  - {source_labels: [__address__], target_label: __metrics_path__, replacement: /$1}
  - {target_label: __address__, replacement: "%[1]s"}
- job_name: plain
  metrics_path: /plain
  static_configs: [{targets: ["%[1]s"]}]
`

// startPrometheus runs Prometheus on the exporter until the test ends, and returns its URL.
func startPrometheus(t *testing.T, e *exporter) string {
	t.Helper()
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	target, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	targets := strings.Join(slices.Sorted(maps.Keys(e.nodes)), ", ")
	return prometheus.Start(t, fmt.Sprintf(scraping, target.Host, targets)).URL
}
