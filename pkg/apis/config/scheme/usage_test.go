// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package scheme_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	v1 "github.com/caldera-scheduler/caldera/pkg/apis/config/v1"
)

func usageArgs(change func(*config.UsageArgs)) *config.UsageArgs {
	args := &config.UsageArgs{
		CPUWeight: 1, MemoryWeight: 1, CPUThreshold: 80, MemoryThreshold: 80,
		Estimator: config.UsageEstimator{RequestRatio: 0.7, RiskThreshold: 0.6, RiskFactor: 1.2, BestEffort: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("250m"), corev1.ResourceMemory: resource.MustParse("200Mi"),
		}},
		Metrics: config.UsageMetrics{
			Interval: metav1.Duration{Duration: 30 * time.Second}, Timeout: metav1.Duration{Duration: time.Minute}, NodeLabel: "instance",
			Elasticsearch: config.ElasticsearchMetrics{Index: "metricbeat-*", HostnameField: "host.hostname"},
		},
	}
	change(args)
	return args
}

func TestWhatKubeSchedulerReadsAboutUsage(t *testing.T) {
	testReads(t, "Usage", map[string]reads{
		"Usage without arguments": {"  pluginConfig: [{name: Usage, args: {}}]", usageArgs(func(*config.UsageArgs) {})},
		"Usage with zeros": {
			"  pluginConfig: [{name: Usage, args: {cpuWeight: 0, memoryThreshold: 0, estimator: {requestRatio: 0, bestEffort: {cpu: 0}}}}]",
			usageArgs(func(a *config.UsageArgs) {
				a.CPUWeight, a.MemoryThreshold, a.Estimator.RequestRatio = 0, 0, 0
				a.Estimator.BestEffort[corev1.ResourceCPU] = resource.MustParse("0")
			}),
		},
		"Usage with Elasticsearch": {
			"  pluginConfig: [{name: Usage, args: {metrics: {type: elasticsearch, address: 'https://e', interval: 1m, elasticsearch: {index: i, username: u, password: p}}}}]",
			usageArgs(func(a *config.UsageArgs) {
				a.Metrics.Type, a.Metrics.Address, a.Metrics.Interval.Duration = config.MetricsElasticsearch, "https://e", time.Minute
				a.Metrics.Elasticsearch = config.ElasticsearchMetrics{Index: "i", HostnameField: "host.hostname", Username: "u", Password: "p"}
			}),
		},
	})
}

func TestWhatKubeSchedulerRefusesAboutUsage(t *testing.T) {
	testRefuses(t, "Usage", map[string]refuses{
		"a key of Volcano's file": {"{thresholds.cpu: 80}", `unknown field "thresholds.cpu"`},
		"a mistyped field":        {"{metrics: {adress: a}}", `unknown field "metrics.adress"`},
	})
}

func TestArgsOfUsageSurviveConversion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := func(name string) float64 { return rapid.Float64Min(0).Draw(t, name) }
		survives(t, usageArgs(func(a *config.UsageArgs) {
			a.CPUWeight, a.MemoryWeight = rapid.Int64().Draw(t, "cpu weight"), rapid.Int64().Draw(t, "memory weight")
			a.CPUThreshold, a.MemoryThreshold = number("cpu threshold"), number("memory threshold")
			a.Estimator.RequestRatio, a.Estimator.BurstRatio = number("request"), number("burst")
			a.Estimator.RiskThreshold, a.Estimator.RiskFactor = number("threshold"), number("factor")
			a.Metrics.Type = rapid.SampledFrom(config.MetricsTypes()).Draw(t, "type")
			a.Metrics.Address = rapid.String().Draw(t, "address")
			a.Metrics.InsecureSkipVerify = rapid.Bool().Draw(t, "insecure")
			a.Metrics.Interval.Duration = time.Duration(rapid.Int64().Draw(t, "interval"))
		}), &v1.UsageArgs{}, &config.UsageArgs{})
	})
}
