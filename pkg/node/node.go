// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package node reads from the scheduler's snapshot what nodes have.
package node

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
)

// Amounts returns what a node has of a resource for pods, and what the pods on it have requested, in the units of
// resource.Vector: millicores, bytes, pods, or the units of a device. Both are 0 for a device that the node does not list.
func Amounts(info fwk.NodeInfo, name corev1.ResourceName) (allocatable, requested int64) {
	has, taken := info.GetAllocatable(), info.GetRequested()
	switch name {
	case corev1.ResourceCPU:
		return has.GetMilliCPU(), taken.GetMilliCPU()
	case corev1.ResourceMemory:
		return has.GetMemory(), taken.GetMemory()
	case corev1.ResourceEphemeralStorage:
		return has.GetEphemeralStorage(), taken.GetEphemeralStorage()
	case corev1.ResourcePods:
		return int64(has.GetAllowedPodNumber()), int64(len(info.GetPods()))
	}
	return has.GetScalarResources()[name], taken.GetScalarResources()[name]
}

// Earlier orders the pods of a node: by the time of their start, then of their creation, then by name; those that have not
// started come last.
func Earlier(a, b *corev1.Pod) int {
	started, other := a.Status.StartTime, b.Status.StartTime
	switch {
	case started != nil && other != nil && !started.Equal(other):
		return started.Compare(other.Time)
	case (started == nil) != (other == nil):
		if started == nil {
			return 1
		}
		return -1
	}
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
