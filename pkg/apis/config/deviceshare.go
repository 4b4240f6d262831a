// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// DeviceShareArgs are the arguments of the plugin DeviceShare.
type DeviceShareArgs struct {
	metav1.TypeMeta

	// Mode is how cards are given to pods.
	Mode DeviceMode
	// SchedulePolicy is the order in which cards are tried, and what scores high. For VGPU only.
	SchedulePolicy DevicePolicy
	// NodeLock lets one pod after the other be bound to a node, each once the device plugin has seen to the one before. For
	// VGPU only.
	NodeLock bool
	// ExclusiveRules are sets of labels: pods that have all labels of one do not share cards with each other. For VGPU only.
	ExclusiveRules []map[string]string
}

// DeviceMode is a way of giving cards to pods.
type DeviceMode string

// The ways.
const (
	// DeviceGPUNumber gives pods whole cards, by volcano.sh/gpu-number.
	DeviceGPUNumber DeviceMode = "GPUNumber"
	// DeviceGPUSharing gives pods memory of one card, by volcano.sh/gpu-memory.
	DeviceGPUSharing DeviceMode = "GPUSharing"
	// DeviceVGPU gives containers memory and cores of cards, by volcano.sh/vgpu-number and others.
	DeviceVGPU DeviceMode = "VGPU"
)

// DeviceModes are all ways there are.
func DeviceModes() []DeviceMode { return []DeviceMode{DeviceGPUNumber, DeviceGPUSharing, DeviceVGPU} }

// DevicePolicy is an order of cards.
type DevicePolicy string

// The orders.
const (
	// DeviceBinpack fills cards one after the other.
	DeviceBinpack DevicePolicy = "binpack"
	// DeviceSpread uses all cards.
	DeviceSpread DevicePolicy = "spread"
)

// DevicePolicies are all orders there are.
func DevicePolicies() []DevicePolicy { return []DevicePolicy{DeviceBinpack, DeviceSpread} }
