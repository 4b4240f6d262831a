// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	schedulerv1 "k8s.io/kube-scheduler/config/v1"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
)

// SchemeGroupVersion is the group and version of the types in configuration files.
var SchemeGroupVersion = schema.GroupVersion{Group: schedulerconfig.GroupName, Version: "v1"}

// localSchemeBuilder is what the generated files register with.
var localSchemeBuilder = &runtime.SchemeBuilder{addKnownTypes, RegisterDefaults}

// AddToScheme registers the types with their defaults and conversions.
func AddToScheme(scheme *runtime.Scheme) error { return localSchemeBuilder.AddToScheme(scheme) }

func init() {
	// Upstream builds a second scheme, for defaults, from the same list.
	schedulerv1.SchemeBuilder.Register(AddToScheme)
}

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(SchemeGroupVersion,
		&BatchQueueArgs{}, &BinpackArgs{}, &DeviceShareArgs{}, &ExtenderArgs{}, &FragmentationArgs{}, &GangArgs{}, &GangPreemptionArgs{}, &NetworkTopologyArgs{}, &NodeGroupArgs{},
		&ReclaimArgs{},
		&ResourceStrategyFitArgs{}, &TDMArgs{},
		&UsageArgs{})
	return nil
}
