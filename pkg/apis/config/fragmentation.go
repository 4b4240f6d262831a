// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// FragmentationArgs are the arguments of the plugin Fragmentation.
type FragmentationArgs struct {
	metav1.TypeMeta

	// Resource is the name of whole GPUs among the resources of nodes.
	Resource string
	// ModelLabel is the label of nodes with the model of their GPUs.
	ModelLabel string
	// HalfLife is after how long a pod counts half; at least a minute.
	HalfLife metav1.Duration
	// Cards are the arguments of the plugin DeviceShare, whose cards count in place of whole GPUs; nil: there is no such plugin.
	Cards *DeviceShareArgs
}

// What counts where nothing is said.
const (
	// DefaultGPUResource is the resource of NVIDIA's device plugin. DefaultGPUModelLabel is set by NVIDIA's feature discovery.
	DefaultGPUResource   = "nvidia.com/gpu"
	DefaultGPUModelLabel = "nvidia.com/gpu.product"
	// DefaultHalfLife is a week: what is asked for at weekends differs.
	DefaultHalfLife = 168 * time.Hour
	// ShortestHalfLife is less than which nothing is learned.
	ShortestHalfLife = time.Minute
)
