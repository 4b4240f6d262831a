// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// BinpackArgs are the arguments of the plugin Binpack.
type BinpackArgs struct {
	metav1.TypeMeta `json:",inline"`

	// Resources are the weights of resources, from 0 to 1000000. Resources without one do not count.
	// +optional
	Resources map[string]int64 `json:"resources,omitempty"`
}

// SetDefaults_BinpackArgs fills what the user left out (Volcano pkg/scheduler/plugins/binpack/binpack.go).
func SetDefaults_BinpackArgs(args *BinpackArgs) { //nolint:revive // The defaulter generator prescribes the name.
	if args.Resources == nil {
		args.Resources = map[string]int64{"cpu": 1, "memory": 1}
	}
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ResourceStrategyFitArgs are the arguments of the plugin ResourceStrategyFit.
type ResourceStrategyFitArgs struct {
	metav1.TypeMeta `json:",inline"`

	// FitWeight is how much the allocation of resources counts; at least 0.
	// +optional
	FitWeight *int64 `json:"fitWeight,omitempty"`
	// ScarcityWeight is how much it counts that a node has no scarce resources; at least 0.
	// +optional
	ScarcityWeight int64 `json:"scarcityWeight,omitempty"`
	// Resources are how nodes are scored by a resource. A name may end in "*"; the longest that matches counts. Resources that match
	// none do not count.
	// +optional
	Resources map[string]ResourceStrategy `json:"resources,omitempty"`
	// ScarceResources are the weights of resources whose nodes are left to those who ask for them; at least 0.
	// +optional
	ScarceResources map[string]int64 `json:"scarceResources,omitempty"`
	// Proportions are what stays free on a node for each idle unit of a resource.
	// +optional
	Proportions map[string]Proportion `json:"proportions,omitempty"`
}

// ResourceStrategy is how nodes are scored by one resource.
type ResourceStrategy struct {
	// Type is which nodes score high: those where little of it is allocated, LeastAllocated, or much, MostAllocated.
	// +optional
	Type string `json:"type,omitempty"`
	// Weight is how much the resource counts; at least 1.
	// +optional
	Weight *int64 `json:"weight,omitempty"`
}

// Proportion is what stays free for one unit of a device.
type Proportion struct {
	// CPU is how many cores; at least 0.
	// +optional
	CPU *float64 `json:"cpu,omitempty"`
	// Memory is how many gigabytes of 10^9 bytes; at least 0.
	// +optional
	Memory *float64 `json:"memory,omitempty"`
}

// SetDefaults_ResourceStrategyFitArgs fills what the user left out (Volcano
// pkg/scheduler/plugins/resource-strategy-fit/resource_strategy_fit.go).
func SetDefaults_ResourceStrategyFitArgs(args *ResourceStrategyFitArgs) { //nolint:revive // The defaulter generator prescribes the name.
	if args.FitWeight == nil {
		args.FitWeight = ptr.To[int64](10)
	}
	if args.Resources == nil {
		args.Resources = map[string]ResourceStrategy{"cpu": {}, "memory": {}}
	}
	for name, strategy := range args.Resources {
		if strategy.Type == "" {
			strategy.Type = string(config.LeastAllocated)
		}
		if strategy.Weight == nil {
			strategy.Weight = ptr.To[int64](1)
		}
		args.Resources[name] = strategy
	}
	for name, proportion := range args.Proportions {
		if proportion.CPU == nil {
			proportion.CPU = new(1.0)
		}
		if proportion.Memory == nil {
			proportion.Memory = new(1.0)
		}
		args.Proportions[name] = proportion
	}
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// NodeGroupArgs are the arguments of the plugin NodeGroup.
type NodeGroupArgs struct {
	metav1.TypeMeta `json:",inline"`

	// Strict keeps queues that do not name node groups off all nodes; else they may use those outside all groups.
	// +optional
	Strict *bool `json:"strict,omitempty"`
	// EnablePreferredOrder scores the preferred groups of a queue by their order.
	// +optional
	EnablePreferredOrder bool `json:"enablePreferredOrder,omitempty"`
	// EnableHierarchy gives queues without an affinity that of the nearest queue above them which has one.
	// +optional
	EnableHierarchy bool `json:"enableHierarchy,omitempty"`
}

// SetDefaults_NodeGroupArgs fills what the user left out (Volcano pkg/scheduler/plugins/nodegroup/nodegroup.go).
func SetDefaults_NodeGroupArgs(args *NodeGroupArgs) { //nolint:revive // The defaulter generator prescribes the name.
	if args.Strict == nil {
		args.Strict = new(true)
	}
}
