// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// DeviceShareArgs are the arguments of the plugin DeviceShare.
type DeviceShareArgs struct {
	metav1.TypeMeta `json:",inline"`

	// Mode is how cards are given to pods: GPUNumber (whole cards, by volcano.sh/gpu-number), GPUSharing (memory of one card, by
	// volcano.sh/gpu-memory) or VGPU (memory and cores of cards, by volcano.sh/vgpu-number and others).
	Mode string `json:"mode"`
	// SchedulePolicy is how cards are filled: binpack, one after the other, or spread, all of them. Without one the card with the
	// highest index comes first, and nodes are not scored. For VGPU only.
	// +optional
	SchedulePolicy string `json:"schedulePolicy,omitempty"`
	// NodeLock lets one pod after the other be bound to a node, each once the device plugin has seen to the one before. For VGPU only.
	// +optional
	NodeLock bool `json:"nodeLock,omitempty"`
	// ExclusiveRules are sets of labels: pods that have all labels of one do not share cards with each other. For VGPU only.
	// +optional
	ExclusiveRules []map[string]string `json:"exclusiveRules,omitempty"`
}
