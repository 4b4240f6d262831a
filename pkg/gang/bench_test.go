// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// BenchmarkPlan plans whole gangs with the in-tree plugins of the default profile and reports microseconds a pod: of a
// class not seen before, and of one just like the job before it.
func BenchmarkPlan(b *testing.B) {
	for _, nodes := range []int{100, 1000, 5000} {
		for _, size := range []int{3, 100, 1000} {
			for _, class := range []string{"new", "known"} {
				b.Run(fmt.Sprintf("nodes=%d/gang=%d/class=%s", nodes, size, class), func(b *testing.B) {
					w := newWorld(b, nodeShapes{{count: nodes, cpu: "64", memory: "256Gi"}}, nil)
					job := w.job(gangOf("train", size, size, "1"))
					fresh := *w.planner
					b.ReportAllocs()
					for b.Loop() {
						if class == "new" {
							*w.planner = fresh
						}
						plan := w.plan(b, job)
						if len(plan.Placements) != size {
							b.Fatalf("%d of %d placed: %s", len(plan.Placements), size, plan.Reason.Message)
						}
					}
					perPod(b, size)
				})
			}
		}
	}
}

// BenchmarkPlanElastic plans one more task of a job that has started and has 10,000 waiting.
func BenchmarkPlanElastic(b *testing.B) {
	w := newWorld(b, nodeShapes{{count: 5000, cpu: "64", memory: "256Gi"}}, nil)
	job := w.job(gangOf("train", 0, 10000, "1"))
	for b.Loop() {
		if plan := w.plan(b, job); len(plan.Placements) != 1 {
			b.Fatal(plan.Reason.Text())
		}
	}
	perPod(b, 1)
}

// BenchmarkPlanRefused plans a gang that does not fit: on nodes that are full, and on nodes with room for all but one.
func BenchmarkPlanRefused(b *testing.B) {
	for name, size := range map[string]int{"full": 1, "oneshort": 10} {
		b.Run("nodes=5000/"+name, func(b *testing.B) {
			const nodes = 5000
			var running []*corev1.Pod
			// Every node has room for no pod of the gang, except size-1 of them.
			for i := size - 1; i < nodes; i++ {
				running = append(running, onNode(pod(fmt.Sprintf("old-%d", i), "60"), fmt.Sprintf("node-%d", i)))
			}
			w := newWorld(b, nodeShapes{{count: nodes, cpu: "64", memory: "256Gi"}}, running)
			job := w.job(gangOf("train", size, size, "40"))
			for b.Loop() {
				if plan := w.plan(b, job); plan.Reason.Kind != model.NotEnoughResources {
					b.Fatal("the gang fits")
				}
			}
		})
	}
}

func perPod(b *testing.B, size int) {
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*size), "us/pod")
}
