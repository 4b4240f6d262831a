// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package load_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/node/load"
)

// metrics are valid, of a source at an address.
func metrics(kind config.MetricsType, address string) config.UsageMetrics {
	return config.UsageMetrics{
		Type: kind, Address: address, NodeLabel: "instance", Timeout: metav1.Duration{Duration: 10 * time.Second},
		Elasticsearch: config.ElasticsearchMetrics{Index: "metricbeat-*", HostnameField: "host.hostname", Username: "u", Password: "p"},
	}
}

// loadsFrom asks a source at an address once.
func loadsFrom(t *testing.T, m config.UsageMetrics) (map[string]load.Load, error) {
	t.Helper()
	s, err := load.New(load.Options{Metrics: m, Cluster: &rest.Config{Host: m.Address}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), m.Timeout.Duration)
	defer cancel()
	return s.Loads(ctx)
}

func serve(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

// at is a time of the samples below.
func at(second int) time.Time { return time.Unix(1_700_000_000+int64(second), 0).UTC() }

func utc(loads map[string]load.Load) map[string]load.Load {
	for name, l := range loads {
		if !l.CPU.Time.IsZero() {
			l.CPU.Time = l.CPU.Time.UTC()
		}
		if !l.Memory.Time.IsZero() {
			l.Memory.Time = l.Memory.Time.UTC()
		}
		loads[name] = l
	}
	return loads
}

// check compares what a source told; wants are parts of the error, none: there is none.
func check(t *testing.T, loads map[string]load.Load, err error, want map[string]load.Load, wants ...string) {
	t.Helper()
	if diff := cmp.Diff(want, utc(loads)); diff != "" {
		t.Errorf("loads (-want,+got)\n%s", diff)
	}
	if len(wants) == 0 && err != nil {
		t.Errorf("error %v", err)
	}
	for _, part := range wants {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("error is %v, want one that says %q", err, part)
		}
	}
}

// none are no loads.
func none() map[string]load.Load { return map[string]load.Load{} }

// everyKind runs a test for each kind of source.
func everyKind(t *testing.T, test func(t *testing.T, kind config.MetricsType)) {
	t.Helper()
	for _, kind := range config.MetricsTypes() {
		t.Run(string(kind), func(t *testing.T) { test(t, kind) })
	}
}

func TestAServerThatIsDownIsAnError(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	everyKind(t, func(t *testing.T, kind config.MetricsType) {
		loads, err := loadsFrom(t, metrics(kind, server.URL))
		check(t, loads, err, none(), "asking ", "connection refused")
	})
}

func TestASlowServerIsAnErrorAfterTheTimeout(t *testing.T) {
	everyKind(t, func(t *testing.T, kind config.MetricsType) {
		m := metrics(kind, serve(t, func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // Only then the server notices that the client hung up.
			<-r.Context().Done()
		}))
		m.Timeout.Duration = 50 * time.Millisecond
		loads, err := loadsFrom(t, m)
		check(t, loads, err, none(), "asking ")
		if err != nil && !strings.Contains(err.Error(), "deadline exceeded") && !strings.Contains(err.Error(), "Timeout") {
			t.Errorf("error is %v, want one that says that it took too long", err)
		}
	})
}

func TestWhatIsNoAnswerIsAnError(t *testing.T) {
	for name, write := range map[string]func(http.ResponseWriter){
		"a page":               func(w http.ResponseWriter) { fmt.Fprint(w, "<html>Welcome</html>") },
		"nothing":              func(http.ResponseWriter) {},
		"JSON of another kind": func(w http.ResponseWriter) { fmt.Fprint(w, `[{"a": 1}]`) },
		"a refusal":            func(w http.ResponseWriter) { w.WriteHeader(http.StatusUnauthorized) },
		"a failure":            func(w http.ResponseWriter) { w.WriteHeader(http.StatusInternalServerError) },
		"half an answer":       func(w http.ResponseWriter) { fmt.Fprint(w, `{"status": "success", "data": {"result`) },
	} {
		t.Run(name, func(t *testing.T) {
			everyKind(t, func(t *testing.T, kind config.MetricsType) {
				loads, err := loadsFrom(t, metrics(kind, serve(t, func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Type", "application/json")
					write(w)
				})))
				check(t, loads, err, none(), "asking ")
			})
		})
	}
}

func TestAnAnswerOf20MBIsNotRead(t *testing.T) {
	blanks := []byte(strings.Repeat(" ", 1<<20))
	everyKind(t, func(t *testing.T, kind config.MetricsType) {
		loads, err := loadsFrom(t, metrics(kind, serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			for range 20 {
				if _, err := w.Write(blanks); err != nil {
					return
				}
			}
		})))
		check(t, loads, err, none(), "the answer has more than 16 MiB")
	})
}

func TestTheCustomMetricsAPINeedsAnAPIServer(t *testing.T) {
	if _, err := load.New(load.Options{Metrics: metrics(config.MetricsCustomAPI, "")}); err == nil {
		t.Error("there is a source, want an error")
	}
}

func TestCertificatesAreVerifiedUnlessTheyAreNotToBe(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"status": "success", "data": {"resultType": "vector", "result": []}}`)
	}))
	t.Cleanup(server.Close)
	m := metrics(config.MetricsPrometheus, server.URL)
	loads, err := loadsFrom(t, m)
	check(t, loads, err, none(), "certificate")
	m.InsecureSkipVerify = true
	loads, err = loadsFrom(t, m)
	check(t, loads, err, none(), "no node has the series")
}
