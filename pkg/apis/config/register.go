// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
)

// SchemeGroupVersion is the group and version of the internal types. Plugin args have to be in the scheduler's own
// group, else they are not decoded strictly, defaulted or validated when the configuration is loaded.
var SchemeGroupVersion = schema.GroupVersion{Group: schedulerconfig.GroupName, Version: runtime.APIVersionInternal}

// AddToScheme registers the internal types.
var AddToScheme = (&runtime.SchemeBuilder{addKnownTypes}).AddToScheme

func init() {
	// Upstream builds a second scheme, for defaults, from the same list.
	schedulerconfig.SchemeBuilder.Register(addKnownTypes)
}

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(SchemeGroupVersion,
		&BatchQueueArgs{}, &BinpackArgs{}, &DeviceShareArgs{}, &ExtenderArgs{}, &FragmentationArgs{}, &GangArgs{}, &GangPreemptionArgs{}, &NetworkTopologyArgs{}, &NodeGroupArgs{},
		&ReclaimArgs{},
		&ResourceStrategyFitArgs{}, &TDMArgs{},
		&UsageArgs{})
	return nil
}
