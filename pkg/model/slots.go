// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// Slots returns, for each extended resource that some node has, how many more pods would find room for each of the sizes, in units of the
// resource: each pod on one node, and all pods of one size. It is the sum of what each node has left, divided by the size and rounded down.
//
// What is kept for tasks is not left. A node that is cordoned or not ready has nothing left. Nothing else is looked at: neither taints of
// the user's own, nor what else a pod asks for.
func (s *State) Slots(sizes ...int64) map[corev1.ResourceName][]int64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	kept := s.keptByNode()
	slots := map[corev1.ResourceName][]int64{}
	// others are the resources that are not extended.
	others := map[corev1.ResourceName]bool{}
	for name, n := range s.ledger.nodes {
		if !n.known {
			continue
		}
		shut := n.object.Spec.Unschedulable || !ready(n.object)
		for _, a := range n.allocatable {
			if a.Value <= 0 || others[a.Name] {
				continue
			}
			counts := slots[a.Name]
			if counts == nil {
				if others[a.Name] = !resource.IsExtended(a.Name); others[a.Name] {
					continue
				}
				counts = make([]int64, len(sizes))
				slots[a.Name] = counts
			}
			left := a.Value - n.used.Get(a.Name) - kept[name].Get(a.Name)
			if shut || left <= 0 {
				continue
			}
			for i, size := range sizes {
				counts[i] += left / size
			}
		}
	}
	return slots
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
