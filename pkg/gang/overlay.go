// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// overlay is the scheduler's snapshot with the pods planned so far. Only nodes that got a pod are copied.
type overlay struct {
	nodes []fwk.NodeInfo
	// copies are the nodes that got a pod, by position.
	copies map[int]fwk.NodeInfo
	// added are the planned pods and the nodes they went to, in order.
	added []planned
	// repelling are required anti-affinity terms of planned pods.
	repelling []repelling
	// attracting: a planned pod has affinity by which upstream scores nodes for others.
	attracting bool
	byName     map[string]int
	// gone are the pods taken off their nodes.
	gone []removed
}

// planned is a pod on the overlay: that of the task, or of another task of its class.
type planned struct {
	pod  fwk.PodInfo
	node int
	task *model.Task
}

// repelling is a term that keeps the pods it matches off the nodes with a label value.
type repelling struct {
	term  fwk.AffinityTerm
	value string
}

func newOverlay(nodes []fwk.NodeInfo) *overlay {
	return &overlay{nodes: nodes, copies: map[int]fwk.NodeInfo{}}
}

// at returns a node with the pods planned on it.
func (o *overlay) at(node int) fwk.NodeInfo {
	if len(o.copies) == 0 {
		return o.nodes[node]
	}
	if info, ok := o.copies[node]; ok {
		return info
	}
	return o.nodes[node]
}

// own returns a copy of a node that may be changed.
func (o *overlay) own(node int) fwk.NodeInfo {
	info, ok := o.copies[node]
	if !ok {
		info = o.nodes[node].Snapshot()
		// Upstream's copy of a node of a snapshot has forgotten how many nodes have its images.
		maps.Copy(info.GetImageStates(), o.nodes[node].GetImageStates())
		o.copies[node] = info
	}
	return info
}

// remove takes a pod off its node.
func (o *overlay) remove(p *Planner, r removed) error {
	if err := p.RemovePod(o.own(r.node), r.pod.GetPod()); err != nil {
		return fmt.Errorf("taking pod %s/%s off its node in the plan: %w", r.pod.GetPod().Namespace, r.pod.GetPod().Name, err)
	}
	o.gone = append(o.gone, r)
	return nil
}

// restore puts a pod back that was removed, and returns its node as it is then.
func (o *overlay) restore(r removed) fwk.NodeInfo {
	info := o.own(r.node)
	info.AddPodInfo(r.pod)
	o.gone = slices.DeleteFunc(o.gone, func(g removed) bool { return g.pod == r.pod })
	return info
}

// add puts the pod of a task on a node and returns the node as it is then.
func (o *overlay) add(node int, pod fwk.PodInfo, t *model.Task) fwk.NodeInfo {
	info := o.own(node)
	info.AddPodInfo(pod)
	o.added = append(o.added, planned{pod: pod, node: node, task: t})
	o.attracting = o.attracting || attracts(pod)
	for _, term := range pod.GetRequiredAntiAffinityTerms() {
		if value, ok := info.Node().Labels[term.TopologyKey]; ok {
			o.repelling = append(o.repelling, repelling{term: term, value: value})
		}
	}
	return info
}

// attracts reports whether upstream scores nodes for other pods by affinity terms of this one (InterPodAffinity's PreScore).
func attracts(pod fwk.PodInfo) bool {
	return len(pod.GetRequiredAffinityTerms())+len(pod.GetPreferredAffinityTerms())+len(pod.GetPreferredAntiAffinityTerms()) > 0
}

// repels reports whether a planned pod's anti-affinity keeps a pod off a node. InterPodAffinity decides in PreFilter,
// by the pods of the snapshot, whether it has anything to filter; it does not ask again when pods are added.
func (o *overlay) repels(pod *corev1.Pod, info fwk.NodeInfo) bool {
	for i := range o.repelling {
		r := &o.repelling[i]
		if value, ok := info.Node().Labels[r.term.TopologyKey]; ok && value == r.value && r.term.Matches(pod, nil) {
			return true
		}
	}
	return false
}

// index returns the position of a node by name, or -1.
func (o *overlay) index(name string) int {
	if o.byName == nil {
		o.byName = make(map[string]int, len(o.nodes))
		for i, n := range o.nodes {
			o.byName[n.Node().Name] = i
		}
	}
	if i, ok := o.byName[name]; ok {
		return i
	}
	return -1
}
