// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package numa_test

import (
	"testing"

	"github.com/caldera-scheduler/caldera/pkg/topology/numa"
)

// BenchmarkAssign gives 16 of 128 CPUs on 8 NUMA nodes to a container.
func BenchmarkAssign(b *testing.B) {
	cpus := numa.CPUs{}
	for id := range 128 {
		cpus[id] = numa.CPU{NUMA: id % 64 / 8, Socket: id % 64 / 32, Core: id % 64}
	}
	free := cpus.All()
	for b.Loop() {
		if _, ok := cpus.Assign(numa.SingleNUMANode, free, 16); !ok {
			b.Fatal("not assigned")
		}
	}
}
