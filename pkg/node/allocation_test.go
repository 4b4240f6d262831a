// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package node_test

import (
	"math"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/caldera-scheduler/caldera/pkg/node"
)

// The numbers are those of Volcano's test of binpack (pkg/scheduler/plugins/binpack/binpack_test.go), by its weight of 10.
func TestAllocation(t *testing.T) {
	const cpu, memory, gpu, foo = corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceName("nvidia.com/gpu"), corev1.ResourceName("example.com/foo")
	type amounts map[corev1.ResourceName][2]int64
	n1 := amounts{cpu: {2000, 1000}, memory: {4, 1}}
	n2 := amounts{cpu: {4000, 0}, memory: {16, 0}, gpu: {4, 0}}
	n3 := amounts{cpu: {2000, 1500}, memory: {4, 0}, foo: {16, 0}}
	p1 := []node.Term{{Name: cpu, Request: 1000, Weight: 2}, {Name: memory, Request: 1, Weight: 3}}
	p4 := []node.Term{{Name: cpu, Request: 3000, Weight: 2}, {Name: memory, Request: 4, Weight: 3}, {Name: foo, Request: 3, Weight: 8}}
	for name, tc := range map[string]struct {
		terms []node.Term
		of    amounts
		want  float64
	}{
		"half full":                               {p1, n1, 700},
		"empty":                                   {p1, n2, 137.5},
		"one resource does not suffice":           {p1, n3, 0},
		"what the node lacks dilutes":             {p4, n2, 173.0769},
		"nothing counts":                          {nil, n1, 0},
		"all weights are 0":                       {[]node.Term{{Name: cpu, Request: 1000}}, n1, 0},
		"what has no weight need not suffice":     {[]node.Term{{Name: cpu, Request: 9000}, {Name: memory, Request: 1, Weight: 1}}, n1, 500},
		"what stays free counts":                  {[]node.Term{{Name: cpu, Request: 500, Weight: 2, Least: true}, {Name: memory, Request: 1, Weight: 1}}, n1, 333.3333},
		"exactly enough":                          {[]node.Term{{Name: cpu, Request: 1000, Weight: 1}}, n1, 1000},
		"exactly enough, and what is free counts": {[]node.Term{{Name: cpu, Request: 1000, Weight: 1, Least: true}}, n1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			got := 1000 * node.Allocation(tc.terms, func(name corev1.ResourceName) (int64, int64) { return tc.of[name][0], tc.of[name][1] })
			if math.Abs(got-tc.want) > 1e-3 {
				t.Errorf("score %g, want %g", got, tc.want)
			}
		})
	}
}
