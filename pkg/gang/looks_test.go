// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang_test

import (
	"cmp"
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/caldera-scheduler/caldera/pkg/gang"
)

// tallying is a profile that counts the nodes that its plugins are asked about.
type tallying struct {
	gang.Framework
	filtered, scored atomic.Int64
}

func (c *tallying) RunFilterPlugins(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node fwk.NodeInfo) *fwk.Status {
	c.filtered.Add(1)
	return c.Framework.RunFilterPlugins(ctx, state, pod, node)
}

func (c *tallying) RunRawScorePlugins(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node fwk.NodeInfo) ([]fwk.PluginScore, *fwk.Status) {
	c.scored.Add(1)
	return c.Framework.RunRawScorePlugins(ctx, state, pod, node)
}

// TestNodesThatLookAlikeAreAskedOnce: 300 nodes are of three kinds. Plugins are asked about each kind once, and about each node if one plugin is not known.
func TestNodesThatLookAlikeAreAskedOnce(t *testing.T) {
	const each = 100
	shapes := nodeShapes{
		{prefix: "small", count: each, cpu: "8", memory: "64Gi"},
		{prefix: "large", count: each, cpu: "16", memory: "64Gi"},
		{prefix: "cordoned", count: each, cpu: "16", memory: "64Gi", change: func(_ int, n *corev1.Node) { n.Spec.Unschedulable = true }},
	}
	for name, tc := range map[string]struct {
		further          []fwk.Plugin
		filtered, scored int64
	}{
		"plugins go by looks":   {nil, 3, 2},
		"a plugin goes by more": {[]fwk.Plugin{&strange{}}, 3 * each, 2 * each},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, shapes, nil, tc.further...)
			w.planner.SampleSize = func(nodes int) int { return nodes }
			asked := &tallying{Framework: w.planner.Framework}
			w.planner.Framework = asked
			if plan := w.plan(t, w.job(gangOf("g", 1, 1, "1"))); len(plan.Placements) != 1 {
				t.Fatal(plan.Reason.Text())
			}
			if f, s := asked.filtered.Load(), asked.scored.Load(); f != tc.filtered || s != tc.scored {
				t.Errorf("filters ran %d times and scores %d times, want %d and %d", f, s, tc.filtered, tc.scored)
			}
		})
	}
}

// strange is a filter from outside. The planner does not know what it reads.
type strange struct{}

func (*strange) Name() string { return "Strange" }

func (*strange) Filter(context.Context, fwk.CycleState, *corev1.Pod, fwk.NodeInfo) *fwk.Status {
	return nil
}

// TestNodesThatDifferAreAskedEach: plugins are asked about both of two nodes if these differ in one thing that plugins read.
func TestNodesThatDifferAreAskedEach(t *testing.T) {
	t.Parallel()
	has := func(name corev1.ResourceName, amount string) func(*corev1.Node) {
		return func(n *corev1.Node) { n.Status.Allocatable[name] = resource.MustParse(amount) }
	}
	holds := func(requests ...corev1.ResourceList) []*corev1.Pod {
		var pods []*corev1.Pod
		for i, list := range requests {
			p := onNode(pod(fmt.Sprintf("running-%d", i), ""), fmt.Sprintf("node-%d", i))
			p.Spec.Containers[0].Resources.Requests = list
			pods = append(pods, p)
		}
		return pods
	}
	of := func(name corev1.ResourceName, amount string) corev1.ResourceList {
		return corev1.ResourceList{name: resource.MustParse(amount)}
	}
	nothing := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("0"), corev1.ResourceMemory: resource.MustParse("0")}
	image := func(n *corev1.Node) {
		n.Status.Images = []corev1.ContainerImage{{Names: []string{trainer + ":latest"}, SizeBytes: 1 << 30}}
	}
	for name, tc := range map[string]struct {
		// second changes the second node.
		second  func(*corev1.Node)
		running []*corev1.Pod
		// filtered and scored are how often plugins are asked, 2 if it is not given.
		filtered, scored int64
	}{
		"nothing":  {filtered: 1, scored: 1},
		"cordoned": {second: func(n *corev1.Node) { n.Spec.Unschedulable = true }, scored: 1},
		"a taint": {second: func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectPreferNoSchedule}}
		}},
		"cores":                  {second: has(corev1.ResourceCPU, "9")},
		"memory":                 {second: has(corev1.ResourceMemory, "65Gi")},
		"storage":                {second: has(corev1.ResourceEphemeralStorage, "1Gi")},
		"how many pods it takes": {second: has(corev1.ResourcePods, "111")},
		"devices":                {second: has("nvidia.com/gpu", "3")},
		"other devices":          {second: has("example.com/nic", "1")},
		"the image":              {second: image, filtered: 1},
		"another image": {second: func(n *corev1.Node) {
			n.Status.Images = []corev1.ContainerImage{{Names: []string{"other:1"}, SizeBytes: 1}}
		}, filtered: 1, scored: 1},
		"a label":                               {second: func(n *corev1.Node) { n.Labels["zone"] = "b" }, filtered: 1, scored: 1},
		"a pod that asks nothing":               {running: holds(nothing)},
		"what a pod without requests counts as": {running: holds(nothing, nil)},
		"cores in use":                          {running: holds(of(corev1.ResourceCPU, "1"), of(corev1.ResourceCPU, "2"))},
		"memory in use":                         {running: holds(of(corev1.ResourceMemory, "1Gi"), of(corev1.ResourceMemory, "2Gi"))},
		"storage in use":                        {running: holds(of(corev1.ResourceEphemeralStorage, "0"), of(corev1.ResourceEphemeralStorage, "1Gi"))},
		"devices in use":                        {running: holds(of("nvidia.com/gpu", "1"), nil)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, nodeShapes{{count: 2, cpu: "8", memory: "64Gi", devices: "2", change: func(i int, n *corev1.Node) {
				has(corev1.ResourceEphemeralStorage, "8Gi")(n)
				if i == 1 && tc.second != nil {
					tc.second(n)
				}
			}}}, tc.running)
			asked := &tallying{Framework: w.planner.Framework}
			w.planner.Framework = asked
			g := gangOf("g", 1, 1, "1", func(_ int, p *corev1.Pod) { p.Spec.Containers[0].Image = trainer })
			if plan := w.plan(t, w.job(g)); len(plan.Placements) != 1 {
				t.Fatal(plan.Reason.Text())
			}
			if f, s := asked.filtered.Load(), asked.scored.Load(); f != cmp.Or(tc.filtered, 2) || s != cmp.Or(tc.scored, 2) {
				t.Errorf("filters ran %d times and scores %d times, want %d and %d", f, s, cmp.Or(tc.filtered, 2), cmp.Or(tc.scored, 2))
			}
		})
	}
}
