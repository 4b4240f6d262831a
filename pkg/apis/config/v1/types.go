// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// GangArgs are the arguments of the plugin Gang.
type GangArgs struct {
	metav1.TypeMeta `json:",inline"`

	// BindConcurrency is how many pods are bound at a time, over all gangs of the profile; at least 1, default 64.
	// +optional
	BindConcurrency *int32 `json:"bindConcurrency,omitempty"`
	// ReservationTimeout is how long members of a gang with volumes or resource claims wait for the rest of it to be
	// reserved; more than 0, at most 15m, default 5m.
	// +optional
	ReservationTimeout *metav1.Duration `json:"reservationTimeout,omitempty"`
}
