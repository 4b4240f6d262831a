// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package remedy_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/simulate/remedy"
	"github.com/caldera-scheduler/caldera/pkg/simulate/scenario"
)

// full is a cluster of nodes with eight GPUs each, all of which are held by gangs of 16 pods, and 50 gangs that wait.
func full(b *testing.B, nodes int) []scenario.Object {
	b.Helper()
	var objects []scenario.Sourced
	add := func(o scenario.Object) { objects = append(objects, scenario.Sourced{Object: o, Source: "benchmark"}) }
	pod := func(group string, i int, node, gpus string) {
		p := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", group, i), Namespace: "ml", Annotations: map[string]string{"scheduling.k8s.io/group-name": group}},
			Spec: corev1.PodSpec{SchedulerName: "volcano", NodeName: node, Containers: []corev1.Container{{Name: "c", Image: "i", Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), "nvidia.com/gpu": resource.MustParse(gpus)},
			}}}},
		}
		if node != "" {
			p.Status.Phase = corev1.PodRunning
		}
		add(p)
	}
	group := func(name string, least int32, phase volcano.PodGroupPhase) {
		add(&volcano.PodGroup{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ml"}, Spec: volcano.PodGroupSpec{MinMember: least}, Status: volcano.PodGroupStatus{Phase: phase},
		})
	}
	for i := range nodes {
		name := fmt.Sprintf("n%d", i)
		add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("256Gi"), "nvidia.com/gpu": resource.MustParse("8"),
		}}})
		runs := fmt.Sprintf("r%d", i/4)
		if i%4 == 0 {
			group(runs, 16, volcano.PodGroupRunning)
		}
		for p := range 4 {
			pod(runs, i%4*4+p, name, "2")
		}
	}
	for i := range 50 {
		waits := fmt.Sprintf("w%d", i)
		group(waits, 8, volcano.PodGroupInqueue)
		for p := range 8 {
			pod(waits, p, "", "8")
		}
	}
	complete, err := scenario.Complete(objects, noon)
	if err != nil {
		b.Fatal(err)
	}
	return complete
}

// BenchmarkFind is what it takes to find out what would have the fifth of 50 gangs start.
func BenchmarkFind(b *testing.B) {
	for _, nodes := range []int{1000, 5000} {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			objects, config := full(b, nodes), configOf(b, "shipped")
			for b.Loop() {
				result, err := remedy.Find(klog.NewContext(b.Context(), logr.Discard()), objects, func(k model.JobKey) bool { return k.Name == "w4" },
					remedy.Options{Config: config, Now: noon, Budget: time.Minute})
				if err != nil || len(result.Remedies) == 0 {
					b.Fatal(err)
				}
				b.ReportMetric(float64(result.Trials), "trials")
			}
		})
	}
}
