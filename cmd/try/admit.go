// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	appsdefaults "k8s.io/kubernetes/pkg/apis/apps/v1"
	"k8s.io/kubernetes/pkg/apis/batch"
	batchdefaults "k8s.io/kubernetes/pkg/apis/batch/v1"
	coredefaults "k8s.io/kubernetes/pkg/apis/core/v1"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/simulate/scenario"
)

// newAdmission fills in what an API server would: its own defaults for the kinds of the examples, and what scheduler and controllers go by. Nothing is validated.
func newAdmission() (func(scenario.Object) error, error) {
	defaults := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(appsdefaults.RegisterDefaults, batchdefaults.RegisterDefaults, coredefaults.RegisterDefaults)
	if err := builder.AddToScheme(defaults); err != nil {
		return nil, err
	}
	return func(o scenario.Object) error {
		defaults.Default(o)
		admit(o)
		return nil
	}, nil
}

func admit(o scenario.Object) {
	switch o := o.(type) {
	case *batchv1.Job:
		admitJob(o)
	case *appsv1.Deployment:
		o.Generation = 1
	case *appsv1.ReplicaSet:
		o.Generation = 1
	case *corev1.Pod:
		admitPod(o)
	case *volcano.PodGroup:
		// The default of its CRD.
		o.Spec.Queue = cmp.Or(o.Spec.Queue, model.DefaultQueue)
	}
}

// admitJob gives a Job what its pods are known by, as the API server does for one whose selector is not its own. What does it there is beside the storage of Jobs,
// and would be built with all of etcd's client.
func admitJob(o *batchv1.Job) {
	o.UID, o.Generation = uuid.NewUUID(), 1
	labels := map[string]string{
		batchv1.JobNameLabel: o.Name, batch.LegacyJobNameLabel: o.Name,
		batchv1.ControllerUidLabel: string(o.UID), batch.LegacyControllerUidLabel: string(o.UID),
	}
	maps.Copy(labels, o.Spec.Template.Labels)
	o.Spec.Template.Labels = labels
	o.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{batchv1.ControllerUidLabel: string(o.UID)}}
}

// admitPod gives a pod the priority of one that names no class, where no class is the default: those of the examples name none.
func admitPod(o *corev1.Pod) {
	o.Status.Phase = corev1.PodPending
	if o.Spec.Priority == nil {
		o.Spec.Priority = new(int32(0))
	}
	if o.Spec.PreemptionPolicy == nil {
		o.Spec.PreemptionPolicy = new(corev1.PreemptLowerPriority)
	}
}
