// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"pgregory.net/rapid"

	"github.com/caldera-scheduler/caldera/pkg/gang"
	"github.com/caldera-scheduler/caldera/pkg/model"
)

// straightforward plans a gang one pod after the other: all filters and all scores of all nodes for each pod, on nodes that have the
// pods planned before. It returns the nodes by pod, or nil when a pod fits nowhere.
func straightforward(ctx context.Context, f gang.Framework, pods []*corev1.Pod) (map[string]string, error) {
	listed, err := f.SnapshotSharedLister().NodeInfos().List()
	if err != nil {
		return nil, err
	}
	nodes := make([]fwk.NodeInfo, len(listed))
	for i, n := range listed {
		nodes[i] = n.Snapshot()
	}
	type placed struct {
		info fwk.PodInfo
		node int
	}
	var before []placed
	result := map[string]string{}
	for _, pod := range pods {
		state := framework.NewCycleState()
		allowed, status, _ := f.RunPreFilterPlugins(ctx, state, pod)
		if !status.IsSuccess() {
			return nil, status.AsError()
		}
		for _, p := range before {
			if status := f.RunPreFilterExtensionAddPod(ctx, state, pod, p.info, nodes[p.node]); !status.IsSuccess() {
				return nil, status.AsError()
			}
		}
		var feasible []fwk.NodeInfo
		var at []int
		for i, n := range nodes {
			if (allowed.AllNodes() || allowed.NodeNames.Has(n.Node().Name)) && f.RunFilterPlugins(ctx, state, pod, n).IsSuccess() {
				feasible, at = append(feasible, n), append(at, i)
			}
		}
		if len(feasible) == 0 {
			return nil, nil
		}
		best, err := bestOf(ctx, f, state, pod, feasible)
		if err != nil {
			return nil, err
		}
		info, err := framework.NewPodInfo(pod)
		if err != nil {
			return nil, err
		}
		nodes[at[best]].AddPodInfo(info)
		before = append(before, placed{info, at[best]})
		result[pod.Name] = feasible[best].Node().Name
	}
	return result, nil
}

// bestOf returns the position of the first node with the highest score.
func bestOf(ctx context.Context, f gang.Framework, state fwk.CycleState, pod *corev1.Pod, nodes []fwk.NodeInfo) (int, error) {
	if status := f.RunPreScorePlugins(ctx, state, pod, nodes); !status.IsSuccess() {
		return 0, status.AsError()
	}
	scores := make([]fwk.NodePluginScores, len(nodes))
	for i, n := range nodes {
		raw, status := f.RunRawScorePlugins(ctx, state, pod, n)
		if !status.IsSuccess() {
			return 0, status.AsError()
		}
		scores[i] = fwk.NodePluginScores{Name: n.Node().Name, RawScores: raw}
	}
	if status := f.NormalizeScores(ctx, state, pod, scores); !status.IsSuccess() {
		return 0, status.AsError()
	}
	best := 0
	for i := range scores {
		if scores[i].TotalScore > scores[best].TotalScore {
			best = i
		}
	}
	return best, nil
}

// TestPlansAreThoseOfTheStraightforwardPlanner: filtering and scoring a class once, and then only the node just used, changes no
// placement. Run it with -rapid.checks=10000 after changes of the planner.
func TestPlansAreThoseOfTheStraightforwardPlanner(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := newWorld(t, drawNodes(r), nil)
		w.planner.SampleSize = func(nodes int) int { return nodes }
		size := rapid.IntRange(1, 24).Draw(r, "size")
		job := w.job(gangOf("g", size, size, "1", drawPods(r)...))
		tasks := slices.SortedFunc(slices.Values(job.Tasks), func(a, b *model.Task) int {
			return cmp.Or(byPriority(a, b), cmp.Compare(a.UID, b.UID))
		})
		var pods []*corev1.Pod
		for _, task := range tasks {
			pods = append(pods, task.Pod)
		}
		want, err := straightforward(t.Context(), w.planner.Framework, pods)
		if err != nil {
			r.Fatal(err)
		}
		var got map[string]string
		plan := w.plan(t, job)
		for _, p := range plan.Placements {
			if got == nil {
				got = map[string]string{}
			}
			got[p.Task.Pod.Name] = p.Node
		}
		if diff := gocmp.Diff(want, got); diff != "" {
			r.Fatalf("placements differ, %q (-straightforward +plan):\n%s", plan.Reason.Text(), diff)
		}
	})
}

// drawNodes returns up to four kinds of nodes.
func drawNodes(r *rapid.T) nodeShapes {
	var shapes nodeShapes
	for i := range rapid.IntRange(1, 4).Draw(r, "kinds") {
		s := nodeShape{
			prefix:  fmt.Sprintf("k%d", i),
			count:   rapid.IntRange(1, 6).Draw(r, "nodes"),
			cpu:     fmt.Sprint(rapid.IntRange(1, 16).Draw(r, "cpu")),
			memory:  fmt.Sprintf("%dGi", rapid.IntRange(1, 16).Draw(r, "memory")),
			devices: rapid.SampledFrom([]string{"", "2", "8"}).Draw(r, "devices"),
			labels: map[string]string{
				"zone": rapid.SampledFrom([]string{"a", "b", "c"}).Draw(r, "zone"), "rack": rapid.SampledFrom([]string{"1", "2"}).Draw(r, "rack"),
			},
		}
		if effect := rapid.SampledFrom([]corev1.TaintEffect{"", "", corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule}).Draw(r, "taint"); effect != "" {
			s.taints = []corev1.Taint{{Key: "reserved", Effect: effect}}
		}
		shapes = append(shapes, s)
	}
	return shapes
}

// drawPods returns changes that make up to two kinds of pods of a gang's.
func drawPods(r *rapid.T) []func(int, *corev1.Pod) {
	split := rapid.IntRange(0, 24).Draw(r, "split")
	var changes []func(int, *corev1.Pod)
	for kind := range 2 {
		cpu := fmt.Sprint(rapid.IntRange(1, 6).Draw(r, "asks cpu"))
		priority := rapid.Int32Range(0, 2).Draw(r, "priority")
		tolerates := rapid.Bool().Draw(r, "tolerates")
		prefers := rapid.SampledFrom([]string{"", "a", "b"}).Draw(r, "prefers zone")
		devices := rapid.SampledFrom([]string{"", "", "1"}).Draw(r, "devices")
		changes = append(changes, func(i int, p *corev1.Pod) {
			if (i >= split) != (kind == 1) {
				return
			}
			p.Spec.Priority = &priority
			cpuOf(i, cpu)(i, p)
			if tolerates {
				p.Spec.Tolerations = []corev1.Toleration{{Key: "reserved", Operator: corev1.TolerationOpExists}}
			}
			if devices != "" {
				p.Spec.Containers[0].Resources.Requests["nvidia.com/gpu"] = resource.MustParse(devices)
			}
			if prefers != "" {
				p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
					PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{prefer(10, "zone", prefers), prefer(3, "rack", "1")},
				}}
			}
		})
	}
	return changes
}

func prefer(weight int32, label, value string) corev1.PreferredSchedulingTerm {
	return corev1.PreferredSchedulingTerm{Weight: weight, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
		{Key: label, Operator: corev1.NodeSelectorOpIn, Values: []string{value}},
	}}}
}
