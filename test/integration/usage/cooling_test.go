// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package usage_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/caldera-scheduler/caldera/pkg/localcluster"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/node/load"
	"github.com/caldera-scheduler/caldera/test/integration/env"
)

// keepingOff has pods keep off nodes with more than 80 percent of their memory in use.
const keepingOff = `
actions: "allocate"
tiers:
- plugins:
  - name: gang
  - name: predicates
  - name: nodeorder
  - name: usage
    arguments:
      thresholds: {cpu: 80, mem: 80}
metrics: {type: prometheus, address: %q, interval: 1s}
`

// TestAJobThatHotNodesKeptWaiting starts when one of them has cooled down, though nothing else happens in the cluster.
func TestAJobThatHotNodesKeptWaiting(t *testing.T) {
	e := env.New(t, localcluster.Options{Nodes: 1, Shapes: []string{"cpu=8,memory=16Gi"}})
	nodes, err := e.Kube.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	node := nodes.Items[0].Name
	monitored := &exporter{start: time.Now(), nodes: map[string]made{node: {0.1, 0.95, 1e9}, "plain": {0, 0, 1e9}}}
	address := startPrometheus(t, monitored)
	from, err := load.New(load.Options{Metrics: arguments(address).Metrics})
	if err != nil {
		t.Fatal(err)
	}
	env.Eventually(t, patience, func() string {
		if loads, err := from.Loads(t.Context()); err != nil || loads[node].Memory.Percent < 90 {
			return fmt.Sprintf("known are %v, %v", loads, err)
		}
		return ""
	})
	counted, asked := counting(t, address)
	e.StartSchedulerBy(t, fmt.Sprintf(keepingOff, counted))
	// Until the first round has come back the node takes pods. A round is two queries, and the next one begins when it is known.
	env.Eventually(t, patience, func() string {
		if n := asked.Load(); n < 3 {
			return fmt.Sprintf("the monitoring was asked %d times", n)
		}
		return ""
	})
	e.Create(t, env.Gang{Name: "train", Min: 2, Size: 2, CPU: "1"})
	env.Eventually(t, patience, e.Waits(t, "train", model.NotEnoughResources))
	env.Consistently(t, 3*time.Second, e.AllBound(t, "train", 0))
	monitored.make(node, made{0.1, 0.3, 1e9})
	env.Eventually(t, 30*time.Second, e.AllBound(t, "train", 2))
}

// counting returns the address of a proxy before a server, and how often it was asked.
func counting(t *testing.T, address string) (string, *atomic.Int64) {
	t.Helper()
	target, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	asked, proxy := &atomic.Int64{}, httputil.NewSingleHostReverseProxy(target)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL, asked
}
