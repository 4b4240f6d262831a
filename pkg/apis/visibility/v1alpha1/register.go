// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the name of the API group.
const GroupName = "visibility.caldera.dev"

// The resources, as in paths and roles.
const (
	JobViews          = "jobviews"
	QueueViews        = "queueviews"
	LocalQueueViews   = "localqueueviews"
	EvictionDecisions = "evictiondecisions"
	ClusterViews      = "clusterviews"
	QueueHistories    = "queuehistories"
)

// SchemeGroupVersion is the group with this version.
var SchemeGroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1alpha1"}

var (
	// SchemeBuilder collects what AddToScheme adds.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)
	// AddToScheme adds the types of this version to a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(SchemeGroupVersion,
		&JobView{}, &JobViewList{},
		&QueueView{}, &QueueViewList{},
		&LocalQueueView{}, &LocalQueueViewList{},
		&EvictionDecision{}, &EvictionDecisionList{},
		&ClusterView{}, &ClusterViewList{},
		&QueueHistory{}, &QueueHistoryList{},
	)
	metav1.AddToGroupVersion(scheme, SchemeGroupVersion)
	return nil
}
