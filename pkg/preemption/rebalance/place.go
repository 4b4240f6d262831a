// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package rebalance

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/resource"
	"github.com/caldera-scheduler/caldera/pkg/volcano/arguments"
)

// place is a node whose loads are known, with the pods that go and come so far.
type place struct {
	*Node
	// little: all loads were below the thresholds; much: one was above its target.
	little, much bool
	// load is the sum of both loads as measured, in percent.
	load  float64
	parts [2]part
	// free is what no pod asks for.
	free resource.Vector
}

// part is one resource of a place.
type part struct {
	name corev1.ResourceName
	// percent of the capacity is in use, and is not to be above the target.
	percent, target float64
	// capacity is in millicores or bytes; so is room, which is what may come until the target is reached.
	capacity, room float64
}

// placeOf returns the place that a node is; nil if its loads or its capacity are not known.
func placeOf(n *Node, by *arguments.LowNodeUtilization) *place {
	capacity, allocatable := resource.FromList(n.Status.Capacity), resource.FromList(n.Status.Allocatable)
	if n.Load == nil || capacity.Get(corev1.ResourceCPU) <= 0 || capacity.Get(corev1.ResourceMemory) <= 0 {
		return nil
	}
	p := &place{
		Node: n, free: allocatable.Clone(), load: n.Load.CPU + n.Load.Memory,
		little: n.Load.CPU < by.Low.CPU && n.Load.Memory < by.Low.Memory,
		much:   n.Load.CPU > by.Target.CPU || n.Load.Memory > by.Target.Memory,
		parts: [2]part{
			{name: corev1.ResourceCPU, percent: n.Load.CPU, target: by.Target.CPU},
			{name: corev1.ResourceMemory, percent: n.Load.Memory, target: by.Target.Memory},
		},
	}
	p.free.Sub(n.Used)
	for i := range p.parts {
		r := &p.parts[i]
		r.capacity = float64(capacity.Get(r.name))
		r.room = (r.target - r.percent) / 100 * float64(allocatable.Get(r.name))
	}
	return p
}

// shortOf says of what the node has too little that a task asks for; empty when there is nothing of that kind.
func (p *place) shortOf(t *model.Task) string {
	for i := range p.parts {
		if r := &p.parts[i]; r.percent >= r.target && t.Request.Get(r.name) > 0 {
			return fmt.Sprintf("rescheduling: %.0f%% of the %s of node %s is in use, and %g%% is the target", r.percent, r.name, p.Name, r.target)
		}
	}
	return ""
}

// takes reports whether a task of another node can run on this one without one of its loads passing its target. A task goes
// only where its node's taints, node group and revocable zone are the same, so that whatever let it run there lets it run here.
func (p *place) takes(t *model.Task, from *place) bool {
	for i := range p.parts {
		if r := &p.parts[i]; float64(t.Request.Get(r.name)) > r.room {
			return false
		}
	}
	if len(t.Request.Exceeding(p.free)) > 0 || !alike(from.NodeUse.Node, p.NodeUse.Node) {
		return false
	}
	match, err := nodeaffinity.GetRequiredNodeAffinity(t.Pod).Match(p.NodeUse.Node)
	return match && err == nil
}

// alike reports whether a pod that tolerates one node tolerates the other.
func alike(from, to *corev1.Node) bool {
	for _, key := range []string{model.NodeGroupLabel, model.RevocableZoneKey} {
		if from.Labels[key] != to.Labels[key] {
			return false
		}
	}
	return !slices.ContainsFunc(to.Spec.Taints, func(taint corev1.Taint) bool {
		return taint.Effect != corev1.TaintEffectPreferNoSchedule && !slices.ContainsFunc(from.Spec.Taints, func(o corev1.Taint) bool {
			return o.MatchTaint(&taint) && o.Value == taint.Value
		})
	})
}

// lose counts a task as gone, and gain counts one as come.
func (p *place) lose(t *model.Task) {
	for i := range p.parts {
		r := &p.parts[i]
		r.percent -= 100 * float64(t.Request.Get(r.name)) / r.capacity
	}
}

func (p *place) gain(t *model.Task) {
	p.free.Sub(t.Request)
	for i := range p.parts {
		r := &p.parts[i]
		r.room -= float64(t.Request.Get(r.name))
	}
}

// tied reports whether a task is not to be moved because nobody would create its pod again, or because nodes alone do not tell
// where the pod can run: it has volumes, resource claims, terms about other pods, or ports of the node.
func tied(t *model.Task) bool {
	return t.Traits != 0 || metav1.GetControllerOfNoCopy(t.Pod) == nil || t.Pod.Spec.HostNetwork ||
		slices.ContainsFunc(t.Pod.Spec.Containers, func(c corev1.Container) bool {
			return slices.ContainsFunc(c.Ports, func(port corev1.ContainerPort) bool { return port.HostPort > 0 })
		})
}

// service is the class of a pod's service, the lowest first.
func service(pod *corev1.Pod) int {
	switch pod.Status.QOSClass {
	case corev1.PodQOSBestEffort:
		return 0
	case corev1.PodQOSGuaranteed:
		return 2
	case corev1.PodQOSBurstable:
	}
	return 1
}
