// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package proportion_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/caldera-scheduler/caldera/pkg/queue/proportion"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// BenchmarkDivide divides a cluster with cpu, memory, pods and a device among queues that ask for twice what there is.
func BenchmarkDivide(b *testing.B) {
	for _, queues := range []int64{10, 100, 1000} {
		b.Run(fmt.Sprintf("queues=%d", queues), func(b *testing.B) {
			random := rand.New(rand.NewPCG(1, 2))
			amounts := func(n int64) resource.Vector {
				part := func(of int64) int64 { return random.Int64N(2*n*of) + 1 }
				return resource.Vector{
					{Name: "cpu", Value: part(1000)},
					{Name: "memory", Value: part(1 << 30)},
					{Name: "nvidia.com/gpu", Value: part(1)},
					{Name: "pods", Value: part(3)},
				}
			}
			total := resource.Vector{
				{Name: "cpu", Value: 32_000 * queues},
				{Name: "memory", Value: 32 << 30 * queues},
				{Name: "nvidia.com/gpu", Value: 32 * queues},
				{Name: "pods", Value: 110 * queues},
			}
			demands := make([]proportion.Demand, queues)
			for i := range demands {
				demands[i] = proportion.Demand{
					Weight: random.Int64N(10) + 1, Request: amounts(64), Guarantee: amounts(4),
					Limit: resource.Limit{Amounts: total.Portion(), Unnamed: resource.Nothing},
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				proportion.Divide(total, demands)
			}
		})
	}
}
