// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// NetworkTopologyArgs are the arguments of the plugin NetworkTopology.
type NetworkTopologyArgs struct {
	metav1.TypeMeta `json:",inline"`

	// Gangs keeps gangs inside of the HyperNodes that their spec.networkTopology allows.
	// +optional
	Gangs *bool `json:"gangs,omitempty"`
	// Resources are how much resources count when HyperNodes are compared; at least 0. Resources without a weight do not count.
	// +optional
	Resources map[string]int64 `json:"resources,omitempty"`
	// NormalPods has pods of jobs without a topology fill HyperNodes that are in use before others.
	// +optional
	NormalPods *bool `json:"normalPods,omitempty"`
	// Fading is how much a tier counts for them, as a part of what the tier below it does; at least 0. 0: the lowest alone counts.
	// +optional
	Fading *float64 `json:"fading,omitempty"`
	// EvictingHyperNodes is in how many HyperNodes evictions for one job are tried; at least 1.
	// +optional
	EvictingHyperNodes *int32 `json:"evictingHyperNodes,omitempty"`
}

// The defaults of Volcano (pkg/scheduler/plugins/network-topology-aware).
const (
	defaultFading             = 0.8
	defaultEvictingHyperNodes = 8
)

// SetDefaults_NetworkTopologyArgs fills what the user left out.
func SetDefaults_NetworkTopologyArgs(args *NetworkTopologyArgs) { //nolint:revive // The defaulter generator prescribes the name.
	if args.Gangs == nil {
		args.Gangs = new(true)
	}
	if args.Resources == nil {
		args.Resources = map[string]int64{"cpu": 1, "memory": 1}
	}
	if args.NormalPods == nil {
		args.NormalPods = new(true)
	}
	if args.Fading == nil {
		args.Fading = new(defaultFading)
	}
	if args.EvictingHyperNodes == nil {
		args.EvictingHyperNodes = new(int32(defaultEvictingHyperNodes))
	}
}
