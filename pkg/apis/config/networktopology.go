// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// NetworkTopologyArgs are the arguments of the plugin NetworkTopology.
type NetworkTopologyArgs struct {
	metav1.TypeMeta

	// Gangs keeps gangs inside of the HyperNodes that their spec.networkTopology allows.
	Gangs bool
	// Resources are how much resources count when HyperNodes are compared; at least 0. Resources without a weight do not count.
	Resources map[string]int64
	// NormalPods has pods of jobs without a topology fill HyperNodes that are in use before others.
	NormalPods bool
	// Fading is how much a tier counts for them, as a part of what the tier below it does; at least 0. 0: the lowest alone counts.
	Fading float64
	// EvictingHyperNodes is in how many HyperNodes evictions for one job are tried; at least 1.
	EvictingHyperNodes int32
}
