// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package load_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/node/load"
)

// The answer of Elasticsearch to a search, with these nodes. Times are in milliseconds.
const found = `{"took": 3, "timed_out": %t, "hits": {"hits": []}, "aggregations": {"nodes": {"sum_other_doc_count": %d, "buckets": [%s]}}}`

const (
	both    = `{"key": "a", "doc_count": 20, "cpu": {"mean": {"value": 0.3}, "newest": {"value": 1.700000001E12}}, "memory": {"mean": {"value": 0.5}, "newest": {"value": 1.700000002E12}}}`
	cpuOnly = `{"key": "b", "doc_count": 20, "cpu": {"mean": {"value": 0.25}, "newest": {"value": 1.700000001E12}}, "memory": {"mean": {"value": null}, "newest": {"value": null}}}`
	wrong   = `{"key": "c", "doc_count": 20, "cpu": {"mean": {"value": -0.25}, "newest": {"value": 1.700000001E12}}, "memory": {"mean": {"value": 0.5}, "newest": {"value": -1}}}`
)

func TestElasticsearch(t *testing.T) {
	a := load.Load{CPU: load.Sample{Percent: 30, Time: at(1)}, Memory: load.Sample{Percent: 50, Time: at(2)}}
	for name, tc := range map[string]struct {
		answer string
		want   map[string]load.Load
		err    []string
	}{
		"loads with the times of their documents": {fmt.Sprintf(found, false, 0, both), map[string]load.Load{"a": a}, nil},
		"a field that no document of the node has": {
			fmt.Sprintf(found, false, 0, both+","+cpuOnly),
			map[string]load.Load{"a": a, "b": {CPU: load.Sample{Percent: 25, Time: at(1)}}},
			nil,
		},
		"what is negative is not 0, and what has no time is not known": {
			fmt.Sprintf(found, false, 0, both+","+wrong), map[string]load.Load{"a": a}, []string{"that of node c is -25"},
		},
		"a search that ran out of time": {fmt.Sprintf(found, true, 0, both), map[string]load.Load{"a": a}, []string{"it ran out of time"}},
		"too many nodes":                {fmt.Sprintf(found, false, 7, both), map[string]load.Load{"a": a}, []string{"it knows more than the 20000 nodes"}},
		"no node":                       {fmt.Sprintf(found, false, 0, ""), none(), []string{"no document of the last 10 minutes has host.cpu.usage or system.memory.actual.used.pct"}},
	} {
		t.Run(name, func(t *testing.T) {
			loads, err := loadsFrom(t, metrics(config.MetricsElasticsearch, serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, tc.answer) })))
			check(t, loads, err, tc.want, tc.err...)
		})
	}
}

func TestElasticsearchIsAskedOnceForAllNodes(t *testing.T) {
	type request struct {
		method, path, user, password string
		search                       map[string]any
	}
	var got []request
	m := metrics(config.MetricsElasticsearch, serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked := request{method: r.Method, path: r.URL.Path}
		asked.user, asked.password, _ = r.BasicAuth()
		if err := json.NewDecoder(r.Body).Decode(&asked.search); err != nil {
			t.Error(err)
		}
		got = append(got, asked)
		fmt.Fprintf(w, found, false, 0, both)
	})+"/es/")
	m.Elasticsearch.HostnameField = "host.name"
	if _, err := loadsFrom(t, m); err != nil {
		t.Fatal(err)
	}
	part := func(field string) string {
		return fmt.Sprintf(`{"filter": {"exists": {"field": %[1]q}}, "aggs": {"mean": {"avg": {"field": %[1]q}}, "newest": {"max": {"field": "@timestamp"}}}}`, field)
	}
	var search map[string]any
	if err := json.Unmarshal(fmt.Appendf(nil, `{"size": 0, "query": {"range": {"@timestamp": {"gte": "now-10m", "lt": "now"}}}, "aggs": {"nodes": {
		"terms": {"field": "host.name", "size": 20000}, "aggs": {"cpu": %s, "memory": %s}}}}`,
		part("host.cpu.usage"), part("system.memory.actual.used.pct")), &search); err != nil {
		t.Fatal(err)
	}
	want := []request{{"POST", "/es/metricbeat-*/_search", "u", "p", search}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(request{})); diff != "" {
		t.Errorf("asked (-want,+got)\n%s", diff)
	}
}
