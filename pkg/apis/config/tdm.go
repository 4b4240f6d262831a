// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// TDMArgs are the arguments of the plugin TDM.
type TDMArgs struct {
	metav1.TypeMeta

	// RevocableZones are the times of day at which the nodes of a zone may be used, such as "22:00-6:30" in local time, by the
	// zone: the value of the node label volcano.sh/revocable-zone.
	RevocableZones map[string]string
}
