// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// UsageArgs are the arguments of the plugin Usage.
type UsageArgs struct {
	metav1.TypeMeta `json:",inline"`

	// CPUWeight is how much the load of the cores counts; at least 0.
	// +optional
	CPUWeight *int64 `json:"cpuWeight,omitempty"`
	// MemoryWeight is how much the load of the memory counts; at least 0.
	// +optional
	MemoryWeight *int64 `json:"memoryWeight,omitempty"`
	// CPUThreshold is the load above which a node takes no more pods; 0 to 100 percent.
	// +optional
	CPUThreshold *float64 `json:"cpuThreshold,omitempty"`
	// MemoryThreshold is the same for memory.
	// +optional
	MemoryThreshold *float64 `json:"memoryThreshold,omitempty"`
	// Estimator estimates the load of pods that are too new to be measured.
	// +optional
	Estimator UsageEstimator `json:"estimator,omitzero"`
	// Metrics are where the loads come from.
	Metrics UsageMetrics `json:"metrics,omitzero"`
}

// UsageEstimator estimates what a pod will use, from what it requests and is limited to.
type UsageEstimator struct {
	// RequestRatio is the part of its request that a pod uses; 0 to 1.
	// +optional
	RequestRatio *float64 `json:"requestRatio,omitempty"`
	// BurstRatio is the part of what lies between its request and its limit that a pod uses; 0 to 1.
	// +optional
	BurstRatio float64 `json:"burstRatio,omitempty"`
	// RiskThreshold is the load of a node, as a fraction from 0 to 1, from which on estimates are multiplied by RiskFactor.
	// +optional
	RiskThreshold *float64 `json:"riskThreshold,omitempty"`
	// RiskFactor is by how much estimates are multiplied then; at least 1.
	// +optional
	RiskFactor *float64 `json:"riskFactor,omitempty"`
	// BestEffort is what a pod without requests uses.
	// +optional
	BestEffort corev1.ResourceList `json:"bestEffort,omitempty"`
}

// UsageMetrics is a source of the loads of nodes.
type UsageMetrics struct {
	// Type is the kind of source: prometheus, prometheus_adaptor (the custom metrics API) or elasticsearch.
	Type string `json:"type"`
	// Address is the URL of Prometheus or Elasticsearch.
	// +optional
	Address string `json:"address,omitempty"`
	// Interval is the time from one round of asking to the next. Pods that run for a shorter time are taken to be not measured yet; at
	// least 1s, less than 5m.
	// +optional
	Interval *metav1.Duration `json:"interval,omitempty"`
	// Timeout is how long a round may take; more than 0.
	// +optional
	Timeout *metav1.Duration `json:"timeout,omitempty"`
	// InsecureSkipVerify accepts any certificate of the source.
	// +optional
	InsecureSkipVerify bool `json:"insecureSkipVerify,omitempty"`
	// NodeLabel is the label of Prometheus's series that holds the name of the node, or one of its addresses.
	// +optional
	NodeLabel string `json:"nodeLabel,omitempty"`
	// Elasticsearch is how Metricbeat's documents are found.
	// +optional
	Elasticsearch ElasticsearchMetrics `json:"elasticsearch,omitzero"`
}

// ElasticsearchMetrics is how documents about nodes are found.
type ElasticsearchMetrics struct {
	// Index is the name of the index or a pattern.
	// +optional
	Index string `json:"index,omitempty"`
	// HostnameField is the field that holds the name of the node.
	// +optional
	HostnameField string `json:"hostnameField,omitempty"`
	// Username is for basic authentication; none if it is empty.
	// +optional
	Username string `json:"username,omitempty"`
	// Password goes with the user name.
	// +optional
	Password string `json:"password,omitempty"`
}

// SetDefaults_UsageArgs fills what the user left out (Volcano pkg/scheduler/plugins/usage/usage.go).
func SetDefaults_UsageArgs(args *UsageArgs) { //nolint:revive // The defaulter generator prescribes the name.
	for _, weight := range []**int64{&args.CPUWeight, &args.MemoryWeight} {
		if *weight == nil {
			*weight = new(int64(1))
		}
	}
	for _, threshold := range []**float64{&args.CPUThreshold, &args.MemoryThreshold} {
		if *threshold == nil {
			*threshold = new(80.0)
		}
	}
}

// SetDefaults_UsageEstimator fills what the user left out (Volcano pkg/scheduler/plugins/usage).
func SetDefaults_UsageEstimator(e *UsageEstimator) { //nolint:revive // The defaulter generator prescribes the name.
	for _, number := range []struct {
		field  **float64
		absent float64
	}{{&e.RequestRatio, 0.7}, {&e.RiskThreshold, 0.6}, {&e.RiskFactor, 1.2}} {
		if *number.field == nil {
			*number.field = new(number.absent)
		}
	}
	absent := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m"), corev1.ResourceMemory: resource.MustParse("200Mi")}
	for name := range e.BestEffort {
		absent[name] = e.BestEffort[name]
	}
	e.BestEffort = absent
}

// SetDefaults_UsageMetrics fills what the user left out (Volcano pkg/scheduler/metrics/source).
func SetDefaults_UsageMetrics(m *UsageMetrics) { //nolint:revive // The defaulter generator prescribes the name.
	if m.Interval == nil {
		m.Interval = &metav1.Duration{Duration: 30 * time.Second}
	}
	if m.Timeout == nil {
		m.Timeout = &metav1.Duration{Duration: time.Minute}
	}
	for field, absent := range map[*string]string{
		&m.NodeLabel: "instance", &m.Elasticsearch.Index: "metricbeat-*", &m.Elasticsearch.HostnameField: "host.hostname",
	} {
		if *field == "" {
			*field = absent
		}
	}
}
