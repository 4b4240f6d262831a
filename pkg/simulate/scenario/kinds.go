// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scenario reads the objects of a simulation from YAML files: nodes, queues, PodGroups, pods and what bears on
// them. It fills in what admission, controllers and kubelets would have, so that a scenario says only what matters.
package scenario

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	native "k8s.io/api/scheduling/v1beta1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	coscheduling "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"
	nodeinfo "volcano.sh/apis/pkg/apis/nodeinfo/v1alpha1"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
	topology "volcano.sh/apis/pkg/apis/topology/v1alpha1"
)

// Object is an object of a scenario.
type Object interface {
	runtime.Object
	metav1.Object
}

// kind is a kind that a scenario may hold.
type kind struct {
	version    schema.GroupVersion
	object     Object
	namespaced bool
}

// kinds are all kinds a scenario may hold, in the order in which they are listed to users. They are all that a scheduler decides by.
var kinds = []kind{
	{corev1.SchemeGroupVersion, &corev1.Namespace{}, false},
	{corev1.SchemeGroupVersion, &corev1.Node{}, false},
	{corev1.SchemeGroupVersion, &corev1.Pod{}, true},
	{corev1.SchemeGroupVersion, &corev1.ResourceQuota{}, true},
	{policyv1.SchemeGroupVersion, &policyv1.PodDisruptionBudget{}, true},
	{schedulingv1.SchemeGroupVersion, &schedulingv1.PriorityClass{}, false},
	{volcano.SchemeGroupVersion, &volcano.PodGroup{}, true},
	{volcano.SchemeGroupVersion, &volcano.Queue{}, false},
	{coscheduling.SchemeGroupVersion, &coscheduling.PodGroup{}, true},
	{native.SchemeGroupVersion, &native.PodGroup{}, true},
	{topology.SchemeGroupVersion, &topology.HyperNode{}, false},
	{nodeinfo.SchemeGroupVersion, &nodeinfo.Numatopology{}, false},
	{corev1.SchemeGroupVersion, &corev1.PersistentVolume{}, false},
	{corev1.SchemeGroupVersion, &corev1.PersistentVolumeClaim{}, true},
	{storagev1.SchemeGroupVersion, &storagev1.StorageClass{}, false},
	{storagev1.SchemeGroupVersion, &storagev1.CSINode{}, false},
	{storagev1.SchemeGroupVersion, &storagev1.CSIDriver{}, false},
	{storagev1.SchemeGroupVersion, &storagev1.CSIStorageCapacity{}, true},
	{resourcev1.SchemeGroupVersion, &resourcev1.DeviceClass{}, false},
	{resourcev1.SchemeGroupVersion, &resourcev1.ResourceSlice{}, false},
	{resourcev1.SchemeGroupVersion, &resourcev1.ResourceClaim{}, true},
	// Spreading by default looks at these, by which pods belong together.
	{corev1.SchemeGroupVersion, &corev1.Service{}, true},
	{corev1.SchemeGroupVersion, &corev1.ReplicationController{}, true},
	// These can make gangs of their pods. Nobody makes pods for them.
	{appsv1.SchemeGroupVersion, &appsv1.ReplicaSet{}, true},
	{appsv1.SchemeGroupVersion, &appsv1.StatefulSet{}, true},
	{batchv1.SchemeGroupVersion, &batchv1.Job{}, true},
}

// NewScheme returns the scheme of all kinds that a scheduler decides by.
func NewScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		kubescheme.AddToScheme, volcano.AddToScheme, coscheduling.AddToScheme, topology.AddToScheme, nodeinfo.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("building the scheme: %w", err)
		}
	}
	return scheme, nil
}

// ResourceOf is the resource of a kind, as it is in paths.
func ResourceOf(gvk schema.GroupVersionKind) schema.GroupVersionResource {
	gvr, _ := meta.UnsafeGuessKindToResource(gvk)
	return gvr
}

// Kinds are all kinds a scenario may hold.
func Kinds() []schema.GroupVersionKind {
	list := make([]schema.GroupVersionKind, len(kinds))
	for i, k := range kinds {
		list[i] = k.version.WithKind(k.name())
	}
	return list
}

// KindOf is the kind of an object that a scenario holds.
func KindOf(o Object) schema.GroupVersionKind {
	k := kindOfObject(o)
	return k.version.WithKind(k.name())
}

// name is the kind's name.
func (k kind) name() string {
	name := fmt.Sprintf("%T", k.object)
	return name[strings.LastIndex(name, ".")+1:]
}

// kindOf returns the kind of a version and name; false when a scenario cannot hold it.
func kindOf(apiVersion, name string) (kind, bool) {
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.version.String() == apiVersion && k.name() == name })
	if i < 0 {
		return kind{}, false
	}
	return kinds[i], true
}

// kindOfObject returns the kind of an object that a scenario holds.
func kindOfObject(o Object) kind {
	i := slices.IndexFunc(kinds, func(k kind) bool { return reflect.TypeOf(k.object) == reflect.TypeOf(o) })
	return kinds[i]
}

// allKinds lists the kinds for an error message.
func allKinds() string {
	var names []string
	for _, k := range kinds {
		names = append(names, fmt.Sprintf("%s (%s)", k.name(), k.version))
	}
	return strings.Join(names, ", ") + ", List (v1)"
}

// decoder reads the kinds strictly.
var decoder = func() runtime.Decoder {
	scheme := runtime.NewScheme()
	for _, k := range kinds {
		scheme.AddKnownTypes(k.version, k.object)
	}
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
}()
