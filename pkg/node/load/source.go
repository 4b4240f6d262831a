// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package load asks other systems how much of their cores and memory nodes use.
package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
)

// Window is how far back loads look: they are means of 10 minutes, with Prometheus of rates over 5 more.
const Window = 15 * time.Minute

// Sample is a load at a time.
type Sample struct {
	// Percent is at least 0.
	Percent float64
	// Time is when the newest of the values was measured that the load is the mean of; zero: nothing is known.
	Time time.Time
}

// Load is what is known of a node.
type Load struct {
	CPU, Memory Sample
}

// Source knows the loads of all nodes.
type Source interface {
	// Loads are the loads by what the source calls the nodes: their names or one of their addresses. What it does not know
	// is not there. An error tells what could not be found out; the loads that come with it hold nevertheless.
	Loads(ctx context.Context) (map[string]Load, error)
}

// Options are what a source needs.
type Options struct {
	// Metrics say which source it is; they are valid.
	Metrics config.UsageMetrics
	// Cluster is how the API server is reached, which serves the custom metrics API; it may be nil for others.
	Cluster *rest.Config
}

// New returns the source that the options name.
func New(o Options) (Source, error) {
	switch m := &o.Metrics; m.Type {
	case config.MetricsPrometheus:
		return newPrometheus(m)
	case config.MetricsElasticsearch:
		return newElasticsearch(m)
	case config.MetricsCustomAPI:
		return newCustomAPI(o.Cluster, m)
	}
	return nil, fmt.Errorf("building the source of metrics: %q is none", o.Metrics.Type)
}

// largestAnswer bounds what is read of one answer; the loads of 10,000 nodes have about 5 MB in Elasticsearch's form.
const largestAnswer = 16 << 20

var errTooLarge = fmt.Errorf("the answer has more than %d MiB: is the address that of a server of metrics?", largestAnswer>>20)

// limited is a transport whose answers end in an error when they are too large.
type limited struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (l limited) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := l.next.RoundTrip(r)
	if err == nil {
		response.Body = &bounded{ReadCloser: response.Body, left: largestAnswer}
	}
	return response, err
}

// bounded reads so much and no more.
type bounded struct {
	io.ReadCloser
	left int
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLarge
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// transport is that of Prometheus and Elasticsearch.
func transport(m *config.UsageMetrics) http.RoundTripper {
	t := http.DefaultTransport.(*http.Transport).Clone()
	if m.InsecureSkipVerify {
		t.TLSClientConfig.InsecureSkipVerify = true
	}
	return limited{t}
}

// gathering collects the values of a round.
type gathering struct {
	loads map[string]Load
	// wrong are values that are no load, by the name of the node.
	wrong map[string]float64
}

func newGathering() *gathering {
	return &gathering{loads: map[string]Load{}, wrong: map[string]float64{}}
}

// part is one of the two samples of a load.
type part func(*Load) *Sample

// cpu and memory are the parts.
func cpu(l *Load) *Sample    { return &l.CPU }
func memory(l *Load) *Sample { return &l.Memory }

// add takes a value in. Not a number, infinity and less than 0 mean that the load is not known; least of all are they 0.
// Of two values for one node, such as those of two exporters, the higher one counts.
func (g *gathering) add(p part, instance string, s Sample) {
	node := host(instance)
	if math.IsNaN(s.Percent) || math.IsInf(s.Percent, 0) || s.Percent < 0 {
		g.wrong[node] = s.Percent
		return
	}
	l := g.loads[node]
	if at := p(&l); at.Time.IsZero() || s.Percent > at.Percent {
		*at = s
	}
	g.loads[node] = l
}

// host is the name or address in what may have a port behind it.
func host(instance string) string {
	if name, _, err := net.SplitHostPort(instance); err == nil {
		return name
	}
	return strings.Trim(instance, "[]")
}

// finish returns what was collected.
func (g *gathering) finish(errs ...error) (map[string]Load, error) {
	if names := slices.Sorted(maps.Keys(g.wrong)); len(names) > 0 {
		errs = append(errs, fmt.Errorf("reading loads: that of node %s is %v, want a number of at least 0 (%d such nodes)", names[0], g.wrong[names[0]], len(names)))
	}
	return g.loads, errors.Join(errs...)
}
