// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// GangArgs are the arguments of the plugin Gang.
type GangArgs struct {
	metav1.TypeMeta

	// BindConcurrency is how many pods are bound at a time, over all gangs of the profile; at least 1.
	BindConcurrency int32
	// ReservationTimeout is how long members of a gang with volumes or resource claims wait for the rest of it to be
	// reserved; more than 0, at most 15 minutes, which is the scheduler framework's own limit.
	ReservationTimeout metav1.Duration
}
