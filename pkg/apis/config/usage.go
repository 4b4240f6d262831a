// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// UsageArgs are the arguments of the plugin Usage.
type UsageArgs struct {
	metav1.TypeMeta

	// CPUWeight and MemoryWeight are how much the two loads count against each other; at least 0, not both 0.
	CPUWeight, MemoryWeight int64
	// CPUThreshold and MemoryThreshold are the loads above which a node takes no more pods; 0 to 100 percent.
	CPUThreshold, MemoryThreshold float64
	// Estimator estimates the load of pods that are too new to be measured.
	Estimator UsageEstimator
	// Metrics are where the loads come from.
	Metrics UsageMetrics
}

// UsageEstimator estimates what a pod will use, from what it requests and is limited to.
type UsageEstimator struct {
	// RequestRatio is the part of its request that a pod uses; 0 to 1.
	RequestRatio float64
	// BurstRatio is the part of what lies between its request and its limit that a pod uses; 0 to 1.
	BurstRatio float64
	// RiskThreshold is the load of a node, as a fraction from 0 to 1, from which on estimates are multiplied by RiskFactor.
	RiskThreshold float64
	// RiskFactor is at least 1.
	RiskFactor float64
	// BestEffort is what a pod without requests uses: cpu and memory.
	BestEffort corev1.ResourceList
}

// UsageMetrics is a source of the loads of nodes.
type UsageMetrics struct {
	// Type is what the source is.
	Type MetricsType
	// Address is the URL of Prometheus or Elasticsearch.
	Address string
	// Interval is the time from one round of asking to the next. Pods that run for a shorter time are taken to be not
	// measured yet; at least 1s, less than 5m.
	Interval metav1.Duration
	// Timeout is how long a round may take; more than 0.
	Timeout metav1.Duration
	// InsecureSkipVerify accepts any certificate of the source.
	InsecureSkipVerify bool
	// NodeLabel is the label of Prometheus's series that holds the name of the node, or one of its addresses.
	NodeLabel string
	// Elasticsearch is how Metricbeat's documents are found.
	Elasticsearch ElasticsearchMetrics
}

// MetricsType is a kind of source of metrics, in Volcano's words.
type MetricsType string

// The kinds of sources (Volcano pkg/scheduler/metrics/source).
const (
	MetricsPrometheus    MetricsType = "prometheus"
	MetricsCustomAPI     MetricsType = "prometheus_adaptor"
	MetricsElasticsearch MetricsType = "elasticsearch"
)

// MetricsTypes are all kinds of sources there are.
func MetricsTypes() []MetricsType {
	return []MetricsType{MetricsPrometheus, MetricsCustomAPI, MetricsElasticsearch}
}

// ElasticsearchMetrics is how documents about nodes are found.
type ElasticsearchMetrics struct {
	// Index is the name of the index or a pattern.
	Index string
	// HostnameField is the field that holds the name of the node.
	HostnameField string
	// Username and Password are for basic authentication; none if Username is empty.
	Username, Password string
}
