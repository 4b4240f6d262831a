// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	// The kinds of the examples, with the API server's own defaults.
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	"k8s.io/kubernetes/pkg/apis/batch"
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	"k8s.io/kubernetes/pkg/registry/batch/job"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/simulate/scenario"
)

// admit fills in what an API server would: its own defaults, and what scheduler and controllers go by. Nothing is validated.
func admit(o scenario.Object) error {
	legacyscheme.Scheme.Default(o)
	switch o := o.(type) {
	case *batchv1.Job:
		return admitJob(o)
	case *appsv1.Deployment:
		o.Generation = 1
	case *appsv1.ReplicaSet:
		o.Generation = 1
	case *corev1.Pod:
		admitPod(o)
	case *volcano.PodGroup:
		// The default of its CRD.
		if o.Spec.Queue == "" {
			o.Spec.Queue = model.DefaultQueue
		}
	}
	return nil
}

// admitJob gives a Job what its pods are known by.
func admitJob(o *batchv1.Job) error {
	o.UID = uuid.NewUUID()
	var internal batch.Job
	if err := legacyscheme.Scheme.Convert(o, &internal, nil); err != nil {
		return fmt.Errorf("converting Job %s: %w", o.Name, err)
	}
	job.Strategy.PrepareForCreate(context.Background(), &internal)
	if err := legacyscheme.Scheme.Convert(&internal, o, nil); err != nil {
		return fmt.Errorf("converting Job %s: %w", o.Name, err)
	}
	return nil
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
