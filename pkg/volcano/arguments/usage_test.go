// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package arguments_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/volcano/arguments"
)

func TestDecodeUsage(t *testing.T) {
	with := func(change func(*arguments.Usage)) arguments.Usage {
		u := arguments.Usage{Weight: 5, Args: config.UsageArgs{
			CPUWeight: 1, MemoryWeight: 1, CPUThreshold: 80, MemoryThreshold: 80,
			Estimator: config.UsageEstimator{RequestRatio: 0.7, RiskThreshold: 0.6, RiskFactor: 1.2, BestEffort: amounts("250m", "200Mi")},
		}}
		if change != nil {
			change(&u)
		}
		return u
	}
	run(t, "usage", arguments.DecodeUsage, map[string]decodes[arguments.Usage]{
		"nothing given": {"{}", with(nil), nil},
		"all given": {
			"{usage.weight: 3, cpu.weight: '2', memory.weight: 8, thresholds.cpu: 90, thresholds.mem: 80.5, estimator.request_ratio: 1, " +
				"estimator.burst_ratio: 0.5, estimator.risk_threshold: 0, estimator.risk_factor: 2, estimator.be_cpu: 500, estimator.be_mem: 300}",
			with(func(u *arguments.Usage) {
				u.Weight, u.Args.CPUWeight, u.Args.MemoryWeight, u.Args.CPUThreshold, u.Args.MemoryThreshold = 3, 2, 8, 90, 80.5
				u.Args.Estimator = config.UsageEstimator{RequestRatio: 1, BurstRatio: 0.5, RiskFactor: 2, BestEffort: amounts("500m", "300Mi")}
			}), nil,
		},
		"sections": {
			"{thresholds: {cpu: 70, mem: 60}, estimator: {be_cpu: '1', be_mem: 1Gi}}",
			with(func(u *arguments.Usage) {
				u.Args.CPUThreshold, u.Args.MemoryThreshold, u.Args.Estimator.BestEffort = 70, 60, amounts("1", "1Gi")
			}), nil,
		},
		"everything is wrong": {
			"{usage.weight: -1, thresholds: {cpu: 101, CPUUsageAvg.5m: 90}, thresholds.cpu: 80, estimator: 4, estimator.request_ratio: 1.1, " +
				"estimator.risk_factor: 0.8, estimator.be_cpu: -1, estimator.be_mem: lots, cpu.weight: 0, memory.weight: 0}",
			with(func(u *arguments.Usage) { u.Args.MemoryWeight = 0 }),
			[]string{
				`plugins[0].arguments[thresholds]: Invalid value: {"CPUUsageAvg.5m":90,"cpu":101}: contradicts thresholds.cpu; keep one of them`,
				`plugins[0].arguments[estimator]: Invalid value: 4: must be a map`,
				`plugins[0].arguments[usage.weight]: Invalid value: -1: must be a whole number from 0 to 1000000`,
				`plugins[0].arguments[thresholds.cpu]: Invalid value: 101: must be a number from 0 to 100`,
				`plugins[0].arguments[estimator.request_ratio]: Invalid value: 1.1: must be a number from 0 to 1`,
				`plugins[0].arguments[estimator.risk_factor]: Invalid value: 0.8: must be a number of at least 1`,
				`plugins[0].arguments[estimator.be_cpu]: Invalid value: -1: must be a whole number of millicores, or a quantity of at least 0 such as "250m"`,
				`plugins[0].arguments[estimator.be_mem]: Invalid value: "lots": must be a whole number of mebibytes, or a quantity of at least 0 such as "200Mi"`,
				`plugins[0].arguments[cpu.weight]: Invalid value: 0: must be more than 0 if memory.weight is 0; to filter only, write usage.weight: 0`,
				`plugins[0].arguments[thresholds.CPUUsageAvg.5m]: Forbidden: unknown key; did you mean "thresholds.cpu"?`,
			},
		},
	})
}

func amounts(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
}

func TestDecodeMetrics(t *testing.T) {
	with := func(change func(*config.UsageMetrics)) config.UsageMetrics {
		m := config.UsageMetrics{
			Interval: metav1.Duration{Duration: 30 * time.Second}, Timeout: metav1.Duration{Duration: time.Minute}, NodeLabel: "instance",
			Elasticsearch: config.ElasticsearchMetrics{Index: "metricbeat-*", HostnameField: "host.hostname"},
		}
		if change != nil {
			change(&m)
		}
		return m
	}
	for name, tc := range map[string]struct {
		section map[string]string
		want    config.UsageMetrics
		errs    []string
	}{
		"no section": {nil, with(nil), nil},
		"prometheus": {
			map[string]string{"type": "prometheus", "address": "http://p:9090/prefix", "interval": "1m", "timeout": "5s", "tls.insecureSkipVerify": "true", "prometheus.nodeLabel": "node"},
			with(func(m *config.UsageMetrics) {
				m.Type, m.Address, m.InsecureSkipVerify, m.NodeLabel = config.MetricsPrometheus, "http://p:9090/prefix", true, "node"
				m.Interval.Duration, m.Timeout.Duration = time.Minute, 5*time.Second
			}), nil,
		},
		"the custom metrics API needs no address": {
			map[string]string{"type": "prometheus_adaptor"}, with(func(m *config.UsageMetrics) { m.Type = config.MetricsCustomAPI }), nil,
		},
		"elasticsearch": {
			map[string]string{
				"type": "elasticsearch", "address": "https://e:9200", "elasticsearch.index": "i", "elasticsearch.hostnameFieldName": "h",
				"elasticsearch.username": "u", "elasticsearch.password": "p",
			},
			with(func(m *config.UsageMetrics) {
				m.Type, m.Address = config.MetricsElasticsearch, "https://e:9200"
				m.Elasticsearch = config.ElasticsearchMetrics{Index: "i", HostnameField: "h", Username: "u", Password: "p"}
			}), nil,
		},
		"no type": {
			map[string]string{"address": "http://p"},
			with(func(m *config.UsageMetrics) { m.Address = "http://p" }),
			[]string{"metrics[type]: Required value: write prometheus, prometheus_adaptor or elasticsearch, or remove the section"},
		},
		"no address": {
			map[string]string{"type": "prometheus"},
			with(func(m *config.UsageMetrics) { m.Type = config.MetricsPrometheus }),
			[]string{`metrics[address]: Required value: write a URL such as "http://prometheus.monitoring:9090"`},
		},
		"everything is wrong": {
			map[string]string{
				"type": "prometheus_adapter", "address": "prometheus:9090", "interval": "30", "timeout": "0s", "tls.insecureSkipVerify": "maybe",
				"prometheus.nodeLabel": `a"} or x{`, "elasticsearch.index": "",
			},
			with(nil),
			[]string{
				`metrics[type]: Invalid value: "prometheus_adapter": must be prometheus, prometheus_adaptor or elasticsearch`,
				`metrics[address]: Invalid value: "prometheus:9090": must be a URL that begins with http:// or https://, such as "http://prometheus.monitoring:9090"`,
				`metrics[interval]: Invalid value: "30": must be a duration with its unit, such as "10m"`,
				`metrics[timeout]: Invalid value: "0s": must be more than 0s`,
				`metrics[tls.insecureSkipVerify]: Invalid value: "maybe": must be true or false`,
				`metrics[prometheus.nodeLabel]: Invalid value: "a\"} or x{": must be the name of a label in Prometheus: letters, digits and _, and no digit first`,
				`metrics[elasticsearch.index]: Invalid value: "": must not be empty; remove it to have the default`,
			},
		},
		"rounds that are too far apart": {
			map[string]string{"type": "prometheus_adaptor", "interval": "5m"},
			with(func(m *config.UsageMetrics) { m.Type = config.MetricsCustomAPI }),
			[]string{`metrics[interval]: Invalid value: "5m": must be at least 1s, and less than 5m: older loads do not count`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, errs := arguments.DecodeMetrics(tc.section, field.NewPath("metrics"))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("decoded (-want,+got)\n%s", diff)
			}
			if diff := cmp.Diff(tc.errs, messages(errs)); diff != "" {
				t.Errorf("errors (-want,+got)\n%s", diff)
			}
		})
	}
}
