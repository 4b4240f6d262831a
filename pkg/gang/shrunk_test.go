// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
)

// TestAClusterThatShrinks: the scan goes on where it ended among many nodes when there are few. One that was full and is not any more is found, wherever that was.
func TestAClusterThatShrinks(t *testing.T) {
	t.Parallel()
	const many, few = 64, 3
	for begun := range many {
		w := newFixture(t, nodeShapes{{count: many, cpu: "4", memory: "64Gi"}}, nil)
		w.planner.SampleSize = func(nodes int) int { return min(nodes, begun+1) }
		if placed := len(w.plan(t, w.job(gangOf("before", 1, 1, "1"))).Placements); placed != 1 {
			t.Fatalf("of many nodes, none is found for a pod: %d", placed)
		}
		nodes := w.nodes[:few]
		full := func(i int) *corev1.Pod { return onNode(pod("full", "4"), nodes[i].Name) }
		// All nodes but one are full, and then they are not.
		*w.snapshot = *cache.NewSnapshot([]*corev1.Pod{full(0), full(1)}, slices.Clone(nodes))
		placements := w.plan(t, w.job(gangOf("first", 1, 1, "1", labelledAlike))).Placements
		if len(placements) != 1 || placements[0].Node != nodes[2].Name {
			t.Fatalf("with two of three nodes full, a pod is placed by %v, want on the third", placements)
		}
		*w.snapshot = *cache.NewSnapshot([]*corev1.Pod{full(2)}, slices.Clone(nodes))
		placements = w.plan(t, w.job(gangOf("second", 2, 2, "3", labelledAlike))).Placements
		if len(placements) != 2 {
			t.Fatalf("with two of three nodes empty, a gang of two is placed by %v", placements)
		}
		placements = w.plan(t, w.job(gangOf("third", 1, 1, "1", labelledAlike))).Placements
		if len(placements) != 1 || placements[0].Node == nodes[2].Name {
			t.Fatalf("with the third of three nodes full, a pod is placed by %v", placements)
		}
	}
}
