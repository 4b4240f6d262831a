// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// BenchmarkSnapshot measures a snapshot of 5,000 nodes and 50,000 pods in jobs of 10 when one pod in a hundred changed
// since the last: those of whole jobs, or each one of another job.
func BenchmarkSnapshot(b *testing.B) {
	b.Run("changed=50-jobs", func(b *testing.B) { benchmarkSnapshot(b, func(i, round int) int { return i + 500*(round/2) }) })
	b.Run("changed=500-jobs", func(b *testing.B) { benchmarkSnapshot(b, func(i, round int) int { return 10*i + round/2%10 }) })
}

// benchmarkSnapshot changes 500 pods in each round, which choose picks.
func benchmarkSnapshot(b *testing.B, choose func(i, round int) int) {
	const nodes, pods, gang = 5000, 50_000, 10
	state := model.NewState()
	state.AddScheduler("volcano")
	for i := range nodes {
		state.UpsertNode(&corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%d", i)},
			Status:     corev1.NodeStatus{Allocatable: corev1.ResourceList{"cpu": resource.MustParse("64"), "pods": resource.MustParse("110")}},
		})
	}
	uid := func(i int) types.UID { return types.UID(fmt.Sprintf("pod-%d", i)) }
	for i := range pods {
		state.UpsertPod(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "ns", Name: string(uid(i)), UID: uid(i),
				Annotations: map[string]string{model.GroupNameAnnotation: fmt.Sprintf("job-%d", i/gang)},
			},
			Spec: corev1.PodSpec{SchedulerName: "volcano", Containers: []corev1.Container{{
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}},
			}}},
		})
	}
	state.Snapshot()
	b.ReportAllocs()
	round := 0
	for b.Loop() {
		b.StopTimer()
		for i := range pods / 100 {
			at := uid(choose(i, round) % pods)
			if round%2 == 0 {
				state.Assume(at, fmt.Sprintf("node-%d", i%nodes))
			} else {
				state.Forget(at)
			}
		}
		round++
		b.StartTimer()
		state.Snapshot()
	}
}
