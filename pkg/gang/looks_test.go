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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// label gives a node a label.
func label(key, value string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Labels[key] = value }
}

// exists is a term about a label, and aboutNames one about the name of a node.
func exists(key string) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpExists}}}
}

var aboutNames = corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{
	{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpNotIn, Values: []string{"nobody"}},
}}

func required(terms ...corev1.NodeSelectorTerm) *corev1.NodeAffinity {
	return &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms}}
}

func prefers(terms ...corev1.NodeSelectorTerm) *corev1.NodeAffinity {
	a := &corev1.NodeAffinity{}
	for _, term := range terms {
		a.PreferredDuringSchedulingIgnoredDuringExecution = append(a.PreferredDuringSchedulingIgnoredDuringExecution,
			corev1.PreferredSchedulingTerm{Weight: 1, Preference: term})
	}
	return a
}

// needs and likes give a pod such terms, and selects a node selector for the value a.
func needs(terms ...corev1.NodeSelectorTerm) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Affinity = &corev1.Affinity{NodeAffinity: required(terms...)} }
}

func likes(terms ...corev1.NodeSelectorTerm) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Affinity = &corev1.Affinity{NodeAffinity: prefers(terms...)} }
}

func selects(key string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{key: "a"} }
}

// TestNodesOfAPoolAreAskedOnce: of 400 nodes in eight pools, which are mixed, one of each pool is asked, however few a scan takes at a time. Classes
// that mention other labels tell nodes apart by these.
func TestNodesOfAPoolAreAskedOnce(t *testing.T) {
	t.Parallel()
	const nodes, pools, sample = 400, 8, 20
	w := newFixture(t, nodeShapes{{count: nodes, cpu: "8", memory: "64Gi", change: func(i int, n *corev1.Node) {
		n.Labels["pool"], n.Labels["zone"] = fmt.Sprint("pool-", i%pools), fmt.Sprint("zone-", i/8%3)
		if i == nodes/2 {
			delete(n.Labels, "pool")
		}
	}}}, nil)
	w.planner.SampleSize = func(int) int { return sample }
	asked := &tallying{Framework: w.planner.Framework}
	w.planner.Framework = asked
	for i, step := range []struct {
		selector map[string]string
		// Most is how many nodes filters are asked about at most, and scores are asked about one.
		most int64
	}{
		{map[string]string{"pool": "pool-3"}, pools + 1},
		{map[string]string{"zone": "zone-1"}, 3},
		{map[string]string{"zone": "zone-1", "pool": "pool-7"}, 3*pools + 1},
		{map[string]string{"pool": "pool-7"}, pools + 1},
		{nil, 1},
	} {
		asked.filtered.Store(0)
		asked.scored.Store(0)
		g := gangOf(fmt.Sprint("g", i), 1, 1, fmt.Sprintf("%dm", 500+i), func(_ int, p *corev1.Pod) { p.Spec.NodeSelector = step.selector })
		plan := w.plan(t, w.job(g))
		if len(plan.Placements) != 1 {
			t.Fatalf("with the selector %v: %s", step.selector, plan.Reason.Text())
		}
		node, err := w.planner.Framework.SnapshotSharedLister().NodeInfos().Get(plan.Placements[0].Node)
		if err != nil {
			t.Fatal(err)
		}
		for key, value := range step.selector {
			if got := node.Node().Labels[key]; got != value {
				t.Errorf("with the selector %v the pod goes to a node with the %s %q", step.selector, key, got)
			}
		}
		if f, s := asked.filtered.Load(), asked.scored.Load(); f > step.most || s != 1 {
			t.Errorf("with the selector %v filters ran %d times and scores %d times, want at most %d and 1", step.selector, f, s, step.most)
		}
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
		// pod changes the pod, and the profile adds terms to its own.
		pod   func(*corev1.Pod)
		added *corev1.NodeAffinity
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
		"a label that is selected":              {second: label("pool", "b"), pod: selects("pool"), filtered: 2, scored: 1},
		"a label beside one that is selected":   {second: label("zone", "b"), pod: selects("pool"), filtered: 1, scored: 1},
		"a label that a term requires":          {second: label("zone", "b"), pod: needs(exists("zone")), filtered: 2, scored: 2},
		"one that the second of them requires":  {second: label("zone", "b"), pod: needs(exists("pool"), exists("zone")), filtered: 2, scored: 2},
		"one that nobody requires":              {second: label("rack", "b"), pod: needs(exists("zone")), filtered: 1, scored: 1},
		"a label that a term prefers":           {second: label("zone", "b"), pod: likes(exists("zone")), filtered: 2, scored: 2},
		"one that the second of them prefers":   {second: label("zone", "b"), pod: likes(exists("pool"), exists("zone")), filtered: 2, scored: 2},
		"one that nobody prefers":               {second: label("rack", "b"), pod: likes(exists("zone")), filtered: 1, scored: 1},
		"an empty label, and none":              {second: label("rack", ""), pod: likes(exists("rack")), filtered: 2, scored: 2},
		"a name that is required":               {pod: needs(aboutNames), filtered: 2, scored: 2},
		"a name that is preferred":              {pod: likes(aboutNames), filtered: 2, scored: 2},
		"what the profile requires":             {added: required(exists("zone")), filtered: 2, scored: 2},
		"what the profile prefers":              {added: prefers(exists("zone")), filtered: 1, scored: 2},
		"a pod that asks nothing":               {running: holds(nothing)},
		"what a pod without requests counts as": {running: holds(nothing, nil)},
		"cores in use":                          {running: holds(of(corev1.ResourceCPU, "1"), of(corev1.ResourceCPU, "2"))},
		"memory in use":                         {running: holds(of(corev1.ResourceMemory, "1Gi"), of(corev1.ResourceMemory, "2Gi"))},
		"storage in use":                        {running: holds(of(corev1.ResourceEphemeralStorage, "0"), of(corev1.ResourceEphemeralStorage, "1Gi"))},
		"devices in use":                        {running: holds(of("nvidia.com/gpu", "1"), nil)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFixtureAdding(t, tc.added, nodeShapes{{count: 2, cpu: "8", memory: "64Gi", devices: "2", change: func(i int, n *corev1.Node) {
				n.Labels["pool"], n.Labels["zone"] = "a", "a"
				has(corev1.ResourceEphemeralStorage, "8Gi")(n)
				if i == 1 && tc.second != nil {
					tc.second(n)
				}
			}}}, tc.running)
			asked := &tallying{Framework: w.planner.Framework}
			w.planner.Framework = asked
			g := gangOf("g", 1, 1, "1", func(_ int, p *corev1.Pod) {
				p.Spec.Containers[0].Image = trainer
				if tc.pod != nil {
					tc.pod(p)
				}
			})
			if plan := w.plan(t, w.job(g)); len(plan.Placements) != 1 {
				t.Fatal(plan.Reason.Text())
			}
			if f, s := asked.filtered.Load(), asked.scored.Load(); f != cmp.Or(tc.filtered, 2) || s != cmp.Or(tc.scored, 2) {
				t.Errorf("filters ran %d times and scores %d times, want %d and %d", f, s, cmp.Or(tc.filtered, 2), cmp.Or(tc.scored, 2))
			}
		})
	}
}
