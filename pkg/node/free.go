// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// Free is what a node has idle, with what pods hold that terminate, of the resources that v names. Source: Idle + Releasing in
// Volcano's NodeInfo.
func Free(info fwk.NodeInfo, v resource.Vector) resource.Vector {
	free := v.Clone()
	for i := range free {
		allocatable, requested := Amounts(info, free[i].Name)
		free[i].Value = allocatable - requested
	}
	for _, p := range info.GetPods() {
		if pod := p.GetPod(); pod.DeletionTimestamp != nil {
			held := resource.OfPod(pod)
			for i := range free {
				free[i].Value += held.Get(free[i].Name)
			}
		}
	}
	return free
}
