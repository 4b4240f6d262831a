// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/apis/config/validation"
)

func TestUsageArgs(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*config.UsageArgs)
		want   []string
	}{
		"valid":                 {func(*config.UsageArgs) {}, nil},
		"one weight is enough":  {func(a *config.UsageArgs) { a.CPUWeight = 0 }, nil},
		"the limits of numbers": {func(a *config.UsageArgs) { a.CPUThreshold, a.MemoryThreshold, a.Estimator.BurstRatio = 0, 100, 1 }, nil},
		"no weight": {
			func(a *config.UsageArgs) { a.CPUWeight, a.MemoryWeight = 0, 0 },
			[]string{"args.cpuWeight: Invalid value: 0: must be more than 0 if memoryWeight is 0; to filter only, disable the plugin at score"},
		},
		"numbers that are none": {
			func(a *config.UsageArgs) {
				a.CPUThreshold, a.MemoryThreshold, a.MemoryWeight = math.NaN(), 100.5, -1
				a.Estimator.RequestRatio, a.Estimator.BurstRatio, a.Estimator.RiskThreshold, a.Estimator.RiskFactor = -0.1, 1.1, math.Inf(1), math.NaN()
			},
			[]string{
				"args.cpuThreshold: Invalid value: NaN: must be from 0 to 100",
				"args.estimator.burstRatio: Invalid value: 1.1: must be from 0 to 1",
				"args.estimator.requestRatio: Invalid value: -0.1: must be from 0 to 1",
				"args.estimator.riskFactor: Invalid value: NaN: must be at least 1",
				"args.estimator.riskThreshold: Invalid value: +Inf: must be from 0 to 1",
				"args.memoryThreshold: Invalid value: 100.5: must be from 0 to 100",
				"args.memoryWeight: Invalid value: -1: must be from 0 to 1000000",
			},
		},
		"best effort": {
			func(a *config.UsageArgs) {
				a.Estimator.BestEffort = corev1.ResourceList{"cpus": resource.MustParse("1"), "memory": resource.MustParse("-1")}
			},
			[]string{
				`args.estimator.bestEffort[cpus]: Unsupported value: "cpus": did you mean "cpu"?`,
				`args.estimator.bestEffort[memory]: Invalid value: "-1": must be at least 0`,
			},
		},
		"no source": {
			func(a *config.UsageArgs) { a.Metrics.Type = "" },
			[]string{"args.metrics.type: Required value: write prometheus, prometheus_adaptor or elasticsearch"},
		},
		"an unknown source": {
			func(a *config.UsageArgs) { a.Metrics.Type = "prometeus" },
			[]string{`args.metrics.type: Unsupported value: "prometeus": did you mean "prometheus"?`},
		},
		"no address": {
			func(a *config.UsageArgs) { a.Metrics.Type, a.Metrics.Address = config.MetricsElasticsearch, "" },
			[]string{`args.metrics.address: Invalid value: "": must be a URL that begins with http:// or https://, such as "http://prometheus.monitoring:9090"`},
		},
		"no address is needed": {func(a *config.UsageArgs) { a.Metrics.Type, a.Metrics.Address = config.MetricsCustomAPI, "" }, nil},
		"times": {
			func(a *config.UsageArgs) {
				a.Metrics.Interval.Duration, a.Metrics.Timeout.Duration = 999*time.Millisecond, 0
			},
			[]string{
				`args.metrics.interval: Invalid value: "999ms": must be at least 1s, and less than 5m: older loads do not count`,
				`args.metrics.timeout: Invalid value: "0s": must be more than 0s`,
			},
		},
		"a label that would change the query": {
			func(a *config.UsageArgs) { a.Metrics.NodeLabel = "1a" },
			[]string{`args.metrics.nodeLabel: Invalid value: "1a": must be the name of a label in Prometheus: letters, digits and _, and no digit first`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			args := &config.UsageArgs{
				CPUWeight: 1, MemoryWeight: 1, CPUThreshold: 80, MemoryThreshold: 80,
				Estimator: config.UsageEstimator{RequestRatio: 0.7, RiskThreshold: 0.6, RiskFactor: 1.2},
				Metrics: config.UsageMetrics{
					Type: config.MetricsPrometheus, Address: "http://p:9090", NodeLabel: "_a1",
					Interval: metav1.Duration{Duration: time.Second}, Timeout: metav1.Duration{Duration: 1},
				},
			}
			tc.change(args)
			if diff := cmp.Diff(tc.want, messages(validation.ValidateUsageArgs(field.NewPath("args"), args))); diff != "" {
				t.Errorf("(-want,+got)\n%s", diff)
			}
		})
	}
}
