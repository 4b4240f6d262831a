// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	custommetrics "k8s.io/metrics/pkg/client/custom_metrics"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
)

// The metrics of nodes, which are fractions (Volcano pkg/scheduler/metrics/source/metrics_client_prometheus_adapt.go).
const (
	cpuMetric    = "node_cpu_usage_avg"
	memoryMetric = "node_memory_usage_avg"
)

// customAPI asks the custom metrics API, which an adapter such as that of Prometheus serves.
type customAPI struct {
	versions custommetrics.AvailableAPIsGetter
	client   custommetrics.CustomMetricsClient
}

func newCustomAPI(cluster *rest.Config, m *config.UsageMetrics) (Source, error) {
	if cluster == nil {
		return nil, errors.New("building the client of the custom metrics API: there is no API server")
	}
	c := rest.CopyConfig(cluster)
	// The client takes no context. Its answers are JSON.
	c.Timeout, c.ContentType, c.AcceptContentTypes = m.Timeout.Duration, "", ""
	c.Wrap(func(next http.RoundTripper) http.RoundTripper { return limited{next} })
	found, err := discovery.NewDiscoveryClientForConfig(c)
	if err != nil {
		return nil, fmt.Errorf("building the client of the custom metrics API: %w", err)
	}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{corev1.SchemeGroupVersion})
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Node"), meta.RESTScopeRoot)
	versions := custommetrics.NewAvailableAPIsGetter(found)
	return &customAPI{versions: versions, client: custommetrics.NewForConfig(c, mapper, versions)}, nil
}

// Loads implements Source.
func (a *customAPI) Loads(ctx context.Context) (map[string]Load, error) {
	g := newGathering()
	return g.finish(a.query(ctx, g, cpu, cpuMetric), a.query(ctx, g, memory, memoryMetric))
}

func (a *customAPI) query(ctx context.Context, g *gathering, into part, metric string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("asking the custom metrics API for %s: %w", metric, err)
	}
	list, err := a.client.RootScopedMetrics().GetForObjects(schema.GroupKind{Kind: "Node"}, labels.Everything(), metric, labels.Everything())
	if err != nil {
		// The adapter may have come to serve another version.
		a.versions.Invalidate()
		return fmt.Errorf("asking the custom metrics API for %s: %w", metric, err)
	}
	if len(list.Items) == 0 {
		return fmt.Errorf("asking the custom metrics API for %s: no node has it; add a rule for it to the adapter", metric)
	}
	for i := range list.Items {
		item := &list.Items[i]
		g.add(into, item.DescribedObject.Name, Sample{Percent: 100 * item.Value.AsApproximateFloat64(), Time: item.Timestamp.Time})
	}
	return nil
}
