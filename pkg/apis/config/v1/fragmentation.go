// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// FragmentationArgs are the arguments of the plugin Fragmentation.
type FragmentationArgs struct {
	metav1.TypeMeta `json:",inline"`

	// Resource is the name of whole GPUs among the resources of nodes.
	// +optional
	Resource string `json:"resource,omitempty"`
	// ModelLabel is the label of nodes with the model of their GPUs.
	// +optional
	ModelLabel string `json:"modelLabel,omitempty"`
	// HalfLife is after how long a pod counts half; at least 1m.
	// +optional
	HalfLife metav1.Duration `json:"halfLife,omitzero"`
	// Cards are the arguments of the plugin DeviceShare, if the profile has it: its cards count in place of whole GPUs.
	// +optional
	Cards *DeviceShareArgs `json:"cards,omitempty"`
}

// SetDefaults_FragmentationArgs fills what the user left out.
func SetDefaults_FragmentationArgs(args *FragmentationArgs) { //nolint:revive // The defaulter generator prescribes the name.
	if args.Resource == "" {
		args.Resource = config.DefaultGPUResource
	}
	if args.ModelLabel == "" {
		args.ModelLabel = config.DefaultGPUModelLabel
	}
	if args.HalfLife.Duration == time.Duration(0) {
		args.HalfLife.Duration = config.DefaultHalfLife
	}
}
