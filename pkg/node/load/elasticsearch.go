// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"time"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
)

// The fields of Metricbeat's documents, which are fractions (Volcano pkg/scheduler/metrics/source/metrics_client_elasticsearch.go).
const (
	cpuField    = "host.cpu.usage"
	memoryField = "system.memory.actual.used.pct"
)

// mostNodes is how many nodes one search covers. Elasticsearch refuses more than 65,535 buckets by default, and a node takes
// three.
const mostNodes = 20000

// elasticsearch asks Elasticsearch, or what speaks its language, for what Metricbeat measures. It is one POST of one constant
// search, so that the official client would add a megabyte of code and nothing that is used, and refuse servers that only
// speak like Elasticsearch.
type elasticsearch struct {
	client             http.Client
	url                string
	search             []byte
	username, password string
}

func newElasticsearch(m *config.UsageMetrics) (Source, error) {
	base, err := url.Parse(m.Address)
	if err != nil {
		return nil, fmt.Errorf("building the client of Elasticsearch: %w", err)
	}
	search, err := json.Marshal(searchFor(m.Elasticsearch.HostnameField))
	if err != nil {
		return nil, fmt.Errorf("building the search for Elasticsearch: %w", err)
	}
	return &elasticsearch{
		client: http.Client{Transport: transport(m)}, url: base.JoinPath(url.PathEscape(m.Elasticsearch.Index), "_search").String(), search: search,
		username: m.Elasticsearch.Username, password: m.Elasticsearch.Password,
	}, nil
}

// object is a JSON object.
type object map[string]any

// searchFor is the search for the mean of both loads over 10 minutes, and the times of the newest documents, by node.
func searchFor(hostname string) object {
	mean := func(field string) object {
		return object{
			"filter": object{"exists": object{"field": field}},
			"aggs":   object{"mean": object{"avg": object{"field": field}}, "newest": object{"max": object{"field": "@timestamp"}}},
		}
	}
	return object{
		"size":  0,
		"query": object{"range": object{"@timestamp": object{"gte": "now-10m", "lt": "now"}}},
		"aggs": object{"nodes": object{
			"terms": object{"field": hostname, "size": mostNodes},
			"aggs":  object{"cpu": mean(cpuField), "memory": mean(memoryField)},
		}},
	}
}

// answer is what is read of the answer.
type answer struct {
	TimedOut     bool `json:"timed_out"`
	Aggregations struct {
		Nodes struct {
			Others  int `json:"sum_other_doc_count"`
			Buckets []struct {
				Key    string `json:"key"`
				CPU    bucket `json:"cpu"`
				Memory bucket `json:"memory"`
			} `json:"buckets"`
		} `json:"nodes"`
	} `json:"aggregations"`
}

// bucket are the documents of a node that have a field. Mean and newest are null when there are none.
type bucket struct {
	Mean struct {
		Value *float64 `json:"value"`
	} `json:"mean"`
	Newest struct {
		// Value is in milliseconds since 1970.
		Value *float64 `json:"value"`
	} `json:"newest"`
}

// Loads implements Source.
func (e *elasticsearch) Loads(ctx context.Context) (map[string]Load, error) {
	g := newGathering()
	a, err := e.ask(ctx)
	if err != nil {
		return g.finish(fmt.Errorf("asking Elasticsearch: %w", err))
	}
	nodes := &a.Aggregations.Nodes
	for i := range nodes.Buckets {
		n := &nodes.Buckets[i]
		for _, of := range []struct {
			into part
			from bucket
		}{{cpu, n.CPU}, {memory, n.Memory}} {
			if mean, newest := of.from.Mean.Value, of.from.Newest.Value; mean != nil && newest != nil && *newest > 0 && *newest < math.MaxInt64/1e6 {
				g.add(of.into, n.Key, Sample{Percent: 100 * *mean, Time: time.UnixMilli(int64(*newest))})
			}
		}
	}
	switch {
	case a.TimedOut:
		err = errors.New("asking Elasticsearch: it ran out of time, and some loads are missing")
	case nodes.Others > 0:
		err = fmt.Errorf("asking Elasticsearch: it knows more than the %d nodes that are looked at", mostNodes)
	case len(g.loads) == 0:
		err = fmt.Errorf("asking Elasticsearch: no document of the last 10 minutes has %s or %s and the name of a node", cpuField, memoryField)
	}
	return g.finish(err)
}

func (e *elasticsearch) ask(ctx context.Context) (*answer, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, bytes.NewReader(e.search))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	if e.username != "" {
		request.SetBasicAuth(e.username, e.password)
	}
	response, err := e.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close() //nolint:errcheck // It was only read.
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("reading the answer: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the answer is %s: %.300s", response.Status, body)
	}
	var a answer
	if err := json.Unmarshal(body, &a); err != nil {
		return nil, fmt.Errorf("reading the answer: %w", err)
	}
	return &a, nil
}
