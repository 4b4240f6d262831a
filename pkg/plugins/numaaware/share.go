// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package numaaware

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/apis/core/v1/helper/qos"
	"k8s.io/utils/cpuset"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/node"
	"github.com/caldera-scheduler/caldera/pkg/topology/numa"
)

// share is how many CPUs a container wants for itself.
type share struct {
	Container string
	CPUs      int
	// Kept: the container keeps them while the pod runs. Those of an init container are free again when it ends.
	Kept bool
}

// guaranteed reports whether the pod's requests equal its limits: containers of other pods get no CPUs for themselves.
func guaranteed(pod *corev1.Pod) bool { return qos.GetPodQOS(pod) == corev1.PodQOSGuaranteed }

// sharesOf are the shares of a guaranteed pod's containers, in the order in which the kubelet assigns them: those that request
// whole CPUs.
func sharesOf(pod *corev1.Pod) []share {
	var shares []share
	add := func(c *corev1.Container, kept bool) {
		if milli := c.Resources.Requests.Cpu().MilliValue(); milli > 0 && milli%1000 == 0 {
			shares = append(shares, share{Container: c.Name, CPUs: int(milli / 1000), Kept: kept})
		}
	}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		add(c, c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways)
	}
	for i := range pod.Spec.Containers {
		add(&pod.Spec.Containers[i], true)
	}
	return shares
}

// policyOf is the policy that a pod asks for; None when it asks for none.
func policyOf(pod *corev1.Pod) numa.Policy {
	if policy := pod.Annotations[model.NUMAPolicyAnnotation]; policy != "" {
		return numa.Policy(policy)
	}
	return numa.None
}

// assign gives each share its CPUs, one after the other, and returns what is free then and which NUMA nodes the CPUs are on. It
// returns the container that gets none if the policy does not admit it; what is free then does not matter.
func (l *layout) assign(policy numa.Policy, free cpuset.CPUSet, shares []share) (left cpuset.CPUSet, used numa.Mask, refused string) {
	for _, s := range shares {
		cpus, ok := l.cpus.Assign(policy, free, s.CPUs)
		if !ok {
			return free, 0, s.Container
		}
		used |= l.cpus.NUMANodes(cpus)
		if s.Kept {
			free = free.Difference(cpus)
		}
	}
	return free, used, ""
}

// holder is a pod on a node with the shares of its containers.
type holder struct {
	pod    *corev1.Pod
	shares []share
	// cpus is how many it keeps.
	cpus int
}

// left are the CPUs that no pod on the node has or will have for itself. The exporter says which ones are taken, but not yet for
// pods that have just been placed: as many as are missing in what it says belong to the pods that came last, and are assigned here
// as the kubelet will do. So nothing needs to be remembered of a pod from its reservation until the exporter knows it.
func (l *layout) left(pods []fwk.PodInfo) cpuset.CPUSet {
	var holders []holder
	missing := -l.exclusive
	for _, p := range pods {
		h := holder{pod: p.GetPod()}
		if !guaranteed(h.pod) {
			continue
		}
		h.shares = sharesOf(h.pod)
		for _, s := range h.shares {
			if s.Kept {
				h.cpus += s.CPUs
			}
		}
		if h.cpus > 0 {
			missing += h.cpus
			holders = append(holders, h)
		}
	}
	slices.SortFunc(holders, func(a, b holder) int { return node.Earlier(a.pod, b.pod) })
	next := len(holders)
	for next > 0 && missing > 0 {
		next--
		missing -= holders[next].cpus
	}
	free := l.free
	for _, h := range holders[next:] {
		left, _, refused := l.assign(l.policy, free, h.shares)
		if refused != "" {
			// It is on the node all the same.
			left, _, refused = l.assign(numa.None, free, h.shares)
		}
		if refused != "" {
			return cpuset.New()
		}
		free = left
	}
	return free
}
