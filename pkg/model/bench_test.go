// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"fmt"
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/model"
	modelresource "github.com/caldera-scheduler/caldera/pkg/resource"
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

// BenchmarkPodEvent measures what one event costs of a PodGroup with 10,000 pods that all differ in a label, together with the
// look at the job that follows each event.
func BenchmarkPodEvent(b *testing.B) {
	const pods = 10_000
	pod := func(i, version int) *corev1.Pod {
		return newPod(fmt.Sprintf("p%d", i), in("train"), labelled("replica", fmt.Sprint(i)), func(p *corev1.Pod) {
			p.Generation = int64(version)
		})
	}
	look := func(s *model.State) {
		if s.Summary(train).Counts.Total() == 0 {
			b.Fatal("the job is gone")
		}
	}
	for name, event := range map[string]func(*model.State, int, int){
		"a pod that waits is changed":     func(s *model.State, i, n int) { s.UpsertPod(pod(i, n)) },
		"a pod that runs is changed":      func(s *model.State, i, n int) { p := pod(0, n); running(p); s.UpsertPod(p) },
		"a reservation, and it is undone": func(s *model.State, i, _ int) { uid := pod(i, 0).UID; s.Assume(uid, "n"); look(s); s.Forget(uid) },
		"looked at once, after 100 events": func(s *model.State, i, n int) {
			for k := range 50 {
				uid := types.UID(fmt.Sprintf("p%d", (i+k)%pods))
				s.Assume(uid, "n")
				s.Forget(uid)
			}
		},
	} {
		b.Run(name, func(b *testing.B) {
			s := watching()
			s.UpsertGroup(train, &model.Group{UID: "u", MinMember: pods})
			for i := range pods {
				s.UpsertPod(pod(i, 0))
			}
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				n++
				event(s, n%pods, n)
				look(s)
				look(s)
			}
		})
	}
}

// BenchmarkStart measures what the model does for a pod at the start, and what it keeps of it: pods in gangs of 100 on 10,000 nodes, and such that wait.
func BenchmarkStart(b *testing.B) {
	const nodes, pods = 10_000, 50_000
	requests := corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("1Gi")}
	pod := func(i int, bound bool) *corev1.Pod {
		p := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "ns", Name: fmt.Sprintf("pod-%06d", i), UID: types.UID(fmt.Sprintf("7f2c0000-0000-4000-8000-%012d", i)),
				Annotations: map[string]string{model.GroupNameAnnotation: fmt.Sprintf("job-%d", i/100)},
			},
			Spec: corev1.PodSpec{SchedulerName: batch, Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: requests}}}},
		}
		if bound {
			p.Spec.NodeName = fmt.Sprintf("node-%d", i%nodes)
		}
		return p
	}
	for name, bound := range map[string]bool{"on nodes": true, "waiting": false} {
		b.Run(name, func(b *testing.B) {
			list := make([]*corev1.Pod, pods)
			for i := range list {
				list[i] = pod(i, bound)
			}
			var before, after runtime.MemStats
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				s := watching()
				for i := range nodes {
					s.UpsertNode(&corev1.Node{
						ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%d", i)},
						Status:     corev1.NodeStatus{Allocatable: corev1.ResourceList{"cpu": resource.MustParse("64"), "pods": resource.MustParse("110")}},
					})
				}
				runtime.GC()
				runtime.ReadMemStats(&before)
				b.StartTimer()
				for _, p := range list {
					s.UpsertPod(p)
				}
				b.StopTimer()
				runtime.GC()
				runtime.ReadMemStats(&after)
				runtime.KeepAlive(s)
				b.StartTimer()
			}
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/pods, "kept-B/pod")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/pods, "ns/pod")
		})
	}
}

// BenchmarkLeastSum measures the least that a minimum of 10,000 tasks asks for, each of a class of its own.
func BenchmarkLeastSum(b *testing.B) {
	demands := make([]model.Demand, 10_000)
	for i := range demands {
		demands[i] = model.Demand{Class: model.Class{byte(i), byte(i >> 8)}, Count: 1, Charge: modelresource.FromList(amounts("cpu", "1", "memory", "1Gi"))}
	}
	b.ReportAllocs()
	for b.Loop() {
		model.LeastSum(demands, 10_000)
	}
}
