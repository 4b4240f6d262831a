// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang

import (
	fwk "k8s.io/kube-scheduler/framework"
)

// overlay is the scheduler's snapshot with the pods planned so far. Only nodes that got a pod are copied.
type overlay struct {
	// nodes are the nodes of the snapshot, replaced by a copy once a pod is planned for them.
	nodes []fwk.NodeInfo
	// copied maps the nodes that have been replaced.
	copied map[int]bool
	// added are the planned pods and the nodes they went to, in the same order.
	added []planned
	byKey map[string]int
}

// planned is a pod on the overlay.
type planned struct {
	pod  fwk.PodInfo
	node int
}

func newOverlay(nodes []fwk.NodeInfo) *overlay {
	own := make([]fwk.NodeInfo, len(nodes))
	copy(own, nodes)
	return &overlay{nodes: own, copied: map[int]bool{}}
}

// add puts a pod on a node and returns the node as it is then.
func (o *overlay) add(node int, pod fwk.PodInfo) fwk.NodeInfo {
	if !o.copied[node] {
		o.copied[node] = true
		o.nodes[node] = o.nodes[node].Snapshot()
	}
	o.nodes[node].AddPodInfo(pod)
	o.added = append(o.added, planned{pod: pod, node: node})
	return o.nodes[node]
}

// index returns the position of a node by name, or -1.
func (o *overlay) index(name string) int {
	if o.byKey == nil {
		o.byKey = make(map[string]int, len(o.nodes))
		for i, n := range o.nodes {
			o.byKey[n.Node().Name] = i
		}
	}
	if i, ok := o.byKey[name]; ok {
		return i
	}
	return -1
}
