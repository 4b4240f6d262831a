// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// BinpackArgs are the arguments of the plugin Binpack.
type BinpackArgs struct {
	metav1.TypeMeta

	// Resources are the weights of resources; at least 0. Resources without one do not count.
	Resources map[string]int64
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ResourceStrategyFitArgs are the arguments of the plugin ResourceStrategyFit.
type ResourceStrategyFitArgs struct {
	metav1.TypeMeta

	// FitWeight and ScarcityWeight are how much the two parts of the score count against each other; at least 0, not both
	// 0 unless only proportions are wanted. The weight of the plugin in the profile should be their sum.
	FitWeight, ScarcityWeight int64
	// Resources are how nodes are scored by a resource. A name may end in "*"; the longest that matches counts. Resources
	// that match none do not count.
	Resources map[string]ResourceStrategy
	// ScarceResources are the weights of resources whose nodes are left to those who ask for them; at least 0.
	ScarceResources map[string]int64
	// Proportions are what stays free on a node for each idle unit of a resource.
	Proportions map[string]Proportion
}

// ResourceStrategy is how nodes are scored by one resource.
type ResourceStrategy struct {
	// Type tells whether much or little that is allocated scores high.
	Type StrategyType
	// Weight is how much the resource counts; at least 1.
	Weight int64
}

// StrategyType is the direction in which a resource is scored.
type StrategyType string

// The directions, in the words of kube-scheduler and Volcano.
const (
	LeastAllocated StrategyType = "LeastAllocated"
	MostAllocated  StrategyType = "MostAllocated"
)

// Proportion is what stays free for one unit of a device.
type Proportion struct {
	// CPU is in cores and Memory in gigabytes of 10^9 bytes; at least 0.
	CPU, Memory float64
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// NodeGroupArgs are the arguments of the plugin NodeGroup.
type NodeGroupArgs struct {
	metav1.TypeMeta

	// Strict keeps queues that do not name node groups off all nodes; else they may use those outside all groups.
	Strict bool
	// EnablePreferredOrder scores the preferred groups of a queue by their order.
	EnablePreferredOrder bool
	// EnableHierarchy gives queues without an affinity that of the nearest queue above them which has one.
	EnableHierarchy bool
}
