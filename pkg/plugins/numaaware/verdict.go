// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package numaaware

import (
	"fmt"

	fwk "k8s.io/kube-scheduler/framework"

	"github.com/caldera-scheduler/caldera/pkg/topology/numa"
)

// Why a node does not take a pod, in Volcano's words (pkg/scheduler/plugins/numaaware/numaaware.go).
const (
	noInfo      = "numa info is empty"
	notStatic   = "cpu manager policy isn't static"
	otherPolicy = "task topology policy[%s] is different with node[%s]"
	noTopology  = "no topo information"
	noCPUs      = "cpu allocatable map is empty"
	noFit       = "container %s cannot be assigned by numa"
)

// static is the policy of the kubelet's CPU manager that gives containers CPUs of their own.
const static = "static"

// on tells on which NUMA nodes of a node the pod's CPUs would be, none if nobody decides about that, or why the node does not
// take the pod. The layout is nil when nothing is known of the node.
func (d *demand) on(l *layout, pods []fwk.PodInfo) (used numa.Mask, reason string) {
	if d.Policy == numa.None {
		if l == nil || l.problem != "" || l.cpuManager != static || l.policy == numa.None {
			return 0, ""
		}
	} else if reason = d.mismatch(l); reason != "" {
		return 0, reason
	}
	free := l.left(pods)
	if d.Policy != numa.None && free.IsEmpty() {
		return 0, noCPUs
	}
	_, used, refused := l.assign(l.policy, free, d.Shares)
	if refused != "" {
		return 0, fmt.Sprintf(noFit, refused)
	}
	return used, ""
}

// mismatch is why a node is not for pods with a policy like this one; empty when it is.
func (d *demand) mismatch(l *layout) string {
	switch {
	case l == nil:
		return noInfo
	case l.problem != "":
		return l.problem
	case l.cpuManager != static:
		return notStatic
	case l.policy != d.Policy:
		return fmt.Sprintf(otherPolicy, d.Policy, l.policy)
	case len(l.cpus) == 0:
		return noTopology
	}
	return ""
}
