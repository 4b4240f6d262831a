// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"cmp"
	"maps"
	"runtime"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// Slots returns, for each extended resource that some node has, how many more pods would find room for each of the sizes, in units of the
// resource: each pod on one node, and all pods of one size. It is the sum of what each node has left, divided by the size and rounded down.
//
// What is kept for tasks is not left. A node that is cordoned or not ready has nothing left. Nothing else is looked at: neither taints of
// the user's own, nor what else a pod asks for.
func (s *State) Slots(sizes ...int64) map[corev1.ResourceName][]int64 {
	slots := map[corev1.ResourceName][]int64{}
	s.eachDevices(func(d Devices) {
		counts := slots[d.Resource]
		if counts == nil {
			counts = make([]int64, len(sizes))
			slots[d.Resource] = counts
		}
		for i, size := range sizes {
			counts[i] += d.Slots(size)
		}
	})
	return slots
}

// Devices are those of one extended resource on one node.
type Devices struct {
	Node     string
	Resource corev1.ResourceName
	// All is how many pods can ask for, Left how many of them nobody has, in units of the resource.
	All, Left int64
	// Shut: the node is cordoned or not ready, so that none are left.
	Shut bool
}

// Slots is how many more pods would find room that ask for so much each.
func (d Devices) Slots(size int64) int64 { return d.Left / size }

// Devices returns the devices of all nodes, those of which Slots is the sum, by node and resource.
func (s *State) Devices() []Devices {
	var list []Devices
	s.eachDevices(func(d Devices) { list = append(list, d) })
	slices.SortFunc(list, func(a, b Devices) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Resource, b.Resource))
	})
	return list
}

// eachDevices yields the devices of all nodes. Each node is as it is when its turn comes, and the model is locked for some of them at a time.
func (s *State) eachDevices(yield func(Devices)) {
	s.mu.RLock()
	kept := s.keptByNode()
	nodes := slices.AppendSeq(make([]*node, 0, len(s.ledger.nodes)), maps.Values(s.ledger.nodes))
	s.mu.RUnlock()
	extended := map[corev1.ResourceName]bool{}
	for some := range slices.Chunk(nodes, few) {
		s.mu.RLock()
		for _, n := range some {
			if n.known {
				n.eachDevices(extended, kept[n.object.Name], yield)
			}
		}
		s.mu.RUnlock()
		runtime.Gosched()
	}
}

// eachDevices yields the devices of a node, of which some is kept. Extended is what is known already of which resources are.
func (n *node) eachDevices(extended map[corev1.ResourceName]bool, kept resource.Vector, yield func(Devices)) {
	shut := n.object.Spec.Unschedulable || !ready(n.object)
	for _, a := range n.allocatable {
		is, known := extended[a.Name]
		if !known {
			is = resource.IsExtended(a.Name)
			extended[a.Name] = is
		}
		if !is || a.Value <= 0 {
			continue
		}
		d := Devices{Node: n.object.Name, Resource: a.Name, All: a.Value, Shut: shut}
		if !shut {
			d.Left = max(0, a.Value-n.used.Get(a.Name)-kept.Get(a.Name))
		}
		yield(d)
	}
}

// keptByNode is what is kept for tasks on each node.
func (s *State) keptByNode() map[string]resource.Vector {
	kept := make(map[string]resource.Vector, len(s.nominated))
	for uid := range s.nominated {
		t := s.task(uid)
		sum := kept[t.Nominated]
		sum.Add(t.Request)
		kept[t.Nominated] = sum
	}
	return kept
}

// ready reports whether a node is ready, or does not say.
func ready(n *corev1.Node) bool {
	for i := range n.Status.Conditions {
		if c := &n.Status.Conditions[i]; c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return true
}
