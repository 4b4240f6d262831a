// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package builders begins the pods of tests, with upstream's builders, as jobs have them.
package builders

import (
	corev1 "k8s.io/api/core/v1"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
)

// Pod begins a pod of the batch profile, whose labels and annotations can be written to. Its UID is its name.
func Pod(namespace, name string) *st.PodWrapper {
	p := st.MakePod().Namespace(namespace).Name(name).UID(name).SchedulerName("volcano")
	p.Pod.Labels, p.Pod.Annotations = map[string]string{}, map[string]string{}
	return p
}

// Member begins a pod of a PodGroup that asks for so much CPU, for nothing if that is empty.
func Member(namespace, group, name, cpu string) *st.PodWrapper {
	p := Pod(namespace, name).Annotation(volcano.KubeGroupNameAnnotationKey, group)
	if cpu == "" {
		return p.Container("")
	}
	return p.Req(CPU(cpu))
}

// CPU is a request for so much CPU.
func CPU(amount string) map[corev1.ResourceName]string {
	return map[corev1.ResourceName]string{corev1.ResourceCPU: amount}
}
