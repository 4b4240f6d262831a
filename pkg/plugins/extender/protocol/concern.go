// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Concerns reports whether an extender that manages these resources is asked about a pod: a container, or one that
// initialises, requests one of them or is limited by it. One that manages none is asked about all pods.
func Concerns(managed []string, pod *corev1.Pod) bool {
	if len(managed) == 0 {
		return true
	}
	names := func(list corev1.ResourceList) bool {
		for name := range list {
			if slices.Contains(managed, string(name)) {
				return true
			}
		}
		return false
	}
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			if r := &containers[i].Resources; names(r.Requests) || names(r.Limits) {
				return true
			}
		}
	}
	return false
}
