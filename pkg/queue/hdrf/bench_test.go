// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package hdrf_test

import (
	"fmt"
	"testing"

	"github.com/caldera-scheduler/caldera/pkg/queue/hdrf"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// BenchmarkCompare has one of 10,000 running jobs change by a pod, and compares two queues. In "runs out" the change takes
// the last core or gives it back, so that all jobs become saturated or stop to be.
func BenchmarkCompare(b *testing.B) {
	const jobs = 10_000
	for _, bench := range []struct {
		name   string
		queues int
		spare  int64
	}{
		{"queues=100/some left", 100, 1000}, {"queues=100/runs out", 100, 1}, {"queues=2/some left", 2, 1000},
	} {
		b.Run(bench.name, func(b *testing.B) {
			queues := bench.queues
			tree := hdrf.New()
			tree.SetTotal(amount(4*jobs + bench.spare))
			paths := map[string]hdrf.Path{}
			for i := range queues {
				paths[fmt.Sprintf("q%d", i)] = hdrf.Path{
					Names: []string{"root", fmt.Sprintf("d%d", i/10), fmt.Sprintf("q%d", i)}, Weights: []float64{1, 2, 3},
				}
			}
			tree.SetPaths(paths)
			for i := range jobs {
				tree.SetJob(fmt.Sprintf("default/job-%d", i), fmt.Sprintf("q%d", i%queues), amount(4), amount(8))
			}
			tree.Compare("q0", "q1")
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				tree.SetJob("default/job-0", "q0", amount(4+int64(i%2)), amount(8))
				tree.Compare("q0", "q1")
			}
		})
	}
}

// amount is what n pods of one core hold.
func amount(n int64) resource.Vector {
	return resource.Vector{{Name: "cpu", Value: 1000 * n}, {Name: "memory", Value: n << 30}, {Name: "pods", Value: n}}
}
