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
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"pgregory.net/rapid"

	"github.com/caldera-scheduler/caldera/pkg/gang"
	"github.com/caldera-scheduler/caldera/pkg/model"
)

// straightforward plans a gang one pod after the other: all filters and all scores of all nodes for each pod, on a snapshot that has
// the pods planned before, as upstream's own cycle of pod groups does. Pods that fit nowhere are tried again while others are planned.
// It returns the nodes by pod, or nil when a pod fits nowhere.
func straightforward(ctx context.Context, w *fixture, pods []*corev1.Pod) (map[string]string, error) {
	result := map[string]string{}
	var placed []*corev1.Pod
	defer func() {
		for _, p := range slices.Backward(placed) {
			if err := w.snapshot.ForgetPod(klog.Background(), p); err != nil {
				panic(err)
			}
		}
	}()
	for len(pods) > 0 {
		var left []*corev1.Pod
		for _, pod := range pods {
			node, err := choose(ctx, w.planner.Framework, pod)
			if err != nil {
				return nil, err
			}
			if node == "" {
				left = append(left, pod)
				continue
			}
			there := pod.DeepCopy()
			there.Spec.NodeName = node
			info, err := framework.NewPodInfo(there)
			if err != nil {
				return nil, err
			}
			if err := w.snapshot.AssumePod(info); err != nil {
				return nil, err
			}
			placed = append(placed, there)
			result[pod.Name] = node
		}
		if len(left) == len(pods) {
			return nil, nil
		}
		pods = left
	}
	return result, nil
}

// choose returns the best node for a pod, or "" when there is none.
func choose(ctx context.Context, f gang.Framework, pod *corev1.Pod) (string, error) {
	nodes, err := f.SnapshotSharedLister().NodeInfos().List()
	if err != nil {
		return "", err
	}
	state := framework.NewCycleState()
	allowed, status, _ := f.RunPreFilterPlugins(ctx, state, pod)
	switch {
	case status.IsRejected():
		return "", nil
	case !status.IsSuccess():
		return "", status.AsError()
	}
	var feasible []fwk.NodeInfo
	for _, n := range nodes {
		if (allowed.AllNodes() || allowed.NodeNames.Has(n.Node().Name)) && f.RunFilterPlugins(ctx, state, pod, n).IsSuccess() {
			feasible = append(feasible, n)
		}
	}
	if len(feasible) == 0 {
		return "", nil
	}
	best, err := bestOf(ctx, f, state, pod, feasible)
	if err != nil {
		return "", err
	}
	return feasible[best].Node().Name, nil
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
		w := drawFixture(t, r)
		size := rapid.IntRange(1, 24).Draw(r, "size")
		job := w.job(gangOf("g", size, size, "1", drawPods(r)...))
		tasks := slices.SortedFunc(slices.Values(job.Tasks), func(a, b *model.Task) int {
			return cmp.Or(byPriority(a, b), cmp.Compare(a.UID, b.UID))
		})
		var pods []*corev1.Pod
		for _, task := range tasks {
			pods = append(pods, task.Pod)
		}
		want, err := straightforward(t.Context(), w, pods)
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
		again, err := straightforward(t.Context(), w, pods)
		if err != nil {
			r.Fatal(err)
		}
		if diff := gocmp.Diff(want, again); diff != "" {
			r.Fatalf("the plan left something on the snapshot (-before +after):\n%s", diff)
		}
	})
}

// TestRememberedCandidatesAreThoseOfAFreshLook: while pods come to nodes and leave them between plans, each of many jobs, some of them equal, goes where a
// look at all nodes would put it, also to those that were full before.
func TestRememberedCandidatesAreThoseOfAFreshLook(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := newFixtureAdding(t, drawAdded(r), drawNodes(r), nil)
		w.planner.SampleSize = func(nodes int) int { return nodes }
		change := drawPods(r)[0]
		// After a class that is left few nodes by name the next scan begins elsewhere.
		about := []func(*corev1.Pod){drawNodeTerms(r, corev1.NodeSelectorOpNotIn), drawNodeTerms(r, corev1.NodeSelectorOpNotIn)}
		var others []*corev1.Pod
		for step := range rapid.IntRange(2, 12).Draw(r, "jobs") {
			for range rapid.IntRange(0, 6).Draw(r, "changes") {
				others = w.change(r, fmt.Sprintf("other-%d-%d", step, len(others)), others)
			}
			size := rapid.IntRange(1, 3).Draw(r, "size")
			another, terms := rapid.Bool().Draw(r, "another class"), about[rapid.IntRange(0, 1).Draw(r, "terms")]
			job := w.job(gangOf(fmt.Sprintf("g%d", step), size, size, "1", labelledAlike, func(_ int, p *corev1.Pod) {
				change(0, p)
				terms(p)
				if another {
					p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: fmt.Sprintf("only-%d", step), Operator: corev1.TolerationOpExists})
				}
			}))
			got := map[string]string{}
			for _, p := range w.plan(t, job).Placements {
				got[p.Task.Pod.Name] = p.Node
			}
			var pods []*corev1.Pod
			for _, task := range slices.SortedFunc(slices.Values(job.Tasks), func(a, b *model.Task) int { return cmp.Compare(a.UID, b.UID) }) {
				pods = append(pods, task.Pod)
			}
			want, err := straightforward(t.Context(), w, pods)
			if err != nil {
				r.Fatal(err)
			}
			if diff := gocmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				r.Fatalf("placements of job %d differ (-straightforward +plan):\n%s", step, diff)
			}
		}
	})
}

// change has a pod of somebody else come to a node, or one of those that are there leave: it returns those there then.
func (w *fixture) change(r *rapid.T, name string, there []*corev1.Pod) []*corev1.Pod {
	list := w.planner.Framework.SnapshotSharedLister().NodeInfos()
	if len(there) > 0 && rapid.Bool().Draw(r, "leaves") {
		i := rapid.IntRange(0, len(there)-1).Draw(r, "which")
		node, err := list.Get(there[i].Spec.NodeName)
		if err != nil {
			r.Fatal(err)
		}
		if err := node.RemovePod(klog.Background(), there[i]); err != nil {
			r.Fatal(err)
		}
		return slices.Delete(there, i, i+1)
	}
	nodes, err := list.List()
	if err != nil {
		r.Fatal(err)
	}
	node := nodes[rapid.IntRange(0, len(nodes)-1).Draw(r, "node")]
	cores := rapid.Int64Range(1, node.Node().Status.Allocatable.Cpu().Value()).Draw(r, "cpu of other")
	p := onNode(pod(name, fmt.Sprint(cores)), node.Node().Name)
	info, err := framework.NewPodInfo(p)
	if err != nil {
		r.Fatal(err)
	}
	node.AddPodInfo(info)
	return append(there, p)
}

// drawWorld returns nodes, with pods on some, all of which the planner looks at.
func drawFixture(t *testing.T, r *rapid.T) *fixture {
	shapes := drawNodes(r)
	w := newFixtureAdding(t, drawAdded(r), shapes, drawRunning(r, shapes))
	w.planner.SampleSize = func(nodes int) int { return nodes }
	return w
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
		for _, key := range []string{"pool", "generation"} {
			if value := rapid.SampledFrom(poolValues).Draw(r, key); value != "absent" {
				s.labels[key] = value
			}
		}
		if effect := rapid.SampledFrom([]corev1.TaintEffect{"", "", corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule}).Draw(r, "taint"); effect != "" {
			s.taints = []corev1.Taint{{Key: "reserved", Effect: effect}}
		}
		s.change = drawOdd(r, s.count)
		shapes = append(shapes, s)
	}
	return shapes
}

// drawOdd returns what makes some of as many nodes of a kind different from the others, in one thing each.
func drawOdd(r *rapid.T, count int) func(int, *corev1.Node) {
	odd := make([]string, count)
	for i := range odd {
		odd[i] = rapid.SampledFrom([]string{"", "", "", "", "cordoned", "tainted", "avoided", "few pods", "storage", "image", "large image", "foo", "bar", "pool", "generation", "unnamed"}).Draw(r, "odd")
	}
	return func(i int, n *corev1.Node) {
		switch odd[i] {
		case "cordoned":
			n.Spec.Unschedulable = true
		case "tainted":
			n.Spec.Taints = []corev1.Taint{{Key: "odd", Effect: corev1.TaintEffectNoSchedule}}
		case "avoided":
			n.Spec.Taints = []corev1.Taint{{Key: "odd", Effect: corev1.TaintEffectPreferNoSchedule}}
		case "few pods":
			n.Status.Allocatable[corev1.ResourcePods] = resource.MustParse("2")
		case "storage":
			n.Status.Allocatable[corev1.ResourceEphemeralStorage] = resource.MustParse("3Gi")
		case "image":
			n.Status.Images = []corev1.ContainerImage{{Names: []string{trainer + ":latest"}, SizeBytes: 400 << 20}}
		case "large image":
			n.Status.Images = []corev1.ContainerImage{{Names: []string{trainer + ":latest"}, SizeBytes: 4 << 30}}
		case "pool":
			n.Labels["pool"] = "1"
		case "generation":
			n.Labels["generation"] = "7"
		case "unnamed":
			n.Labels["pool"] = ""
		case "foo", "bar":
			n.Status.Allocatable[corev1.ResourceName("example.com/"+odd[i])] = resource.MustParse("2")
		}
	}
}

// trainer is the image of pods, which some nodes have.
const trainer = "registry.example.com/trainer"

// drawPods returns changes that make up to two kinds of pods of a gang's.
func drawPods(r *rapid.T) []func(int, *corev1.Pod) {
	split := rapid.IntRange(0, 24).Draw(r, "split")
	inTurn := rapid.Bool().Draw(r, "in turn")
	copies := rapid.IntRange(1, 3).Draw(r, "copies")
	var changes []func(int, *corev1.Pod)
	for kind := range 2 {
		cpu := fmt.Sprint(rapid.IntRange(1, 6).Draw(r, "asks cpu"))
		priority := rapid.Int32Range(0, 2).Draw(r, "priority")
		tolerates := rapid.Bool().Draw(r, "tolerates")
		about := drawNodeTerms(r, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn)
		app, relate := rapid.SampledFrom(apps).Draw(r, "app"), drawTerms(r)
		devices := rapid.SampledFrom([]string{"", "", "1"}).Draw(r, "devices")
		also := rapid.SampledFrom([]corev1.ResourceName{"", "", "", "", "example.com/foo", "example.com/bar", corev1.ResourceEphemeralStorage}).Draw(r, "also")
		changes = append(changes, func(i int, p *corev1.Pod) {
			second := i >= split
			if inTurn {
				second = i%2 == 1
			}
			if second != (kind == 1) {
				return
			}
			p.Spec.Priority = &priority
			cpuOf(i, cpu)(i, p)
			if tolerates {
				p.Spec.Tolerations = []corev1.Toleration{{Key: "reserved", Operator: corev1.TolerationOpExists}}
			}
			p.Spec.Containers[0].Image = trainer
			if devices != "" {
				p.Spec.Containers[0].Resources.Requests["nvidia.com/gpu"] = resource.MustParse(devices)
			}
			if also != "" {
				p.Spec.Containers[0].Resources.Requests[also] = resource.MustParse("1")
			}
			p.Labels["app"], p.Labels["copy"] = app, fmt.Sprint(i/2%copies)
			p.Spec.Affinity = &corev1.Affinity{}
			about(p)
			relate(p)
		})
	}
	return changes
}

// poolValues are what nodes have of labels, or have none.
var poolValues = []string{"absent", "absent", "", "1", "2", "7"}

// drawNodeTerms returns what gives a pod a node selector and terms about nodes, with these operators also about their names, often none.
func drawNodeTerms(r *rapid.T, byName ...corev1.NodeSelectorOperator) func(*corev1.Pod) {
	var selector map[string]string
	if rapid.IntRange(0, 3).Draw(r, "selects") == 3 {
		selector = map[string]string{}
		for _, key := range rapid.SampledFrom([][]string{{"pool"}, {"zone"}, {"generation", "zone"}, {}}).Draw(r, "selects by") {
			selector[key] = rapid.SampledFrom([]string{"", "1", "7", "a", "b"}).Draw(r, "selected")
		}
	}
	affinity := drawNodeAffinity(r, byName...)
	return func(p *corev1.Pod) {
		if p.Spec.Affinity == nil {
			p.Spec.Affinity = &corev1.Affinity{}
		}
		p.Spec.NodeSelector, p.Spec.Affinity.NodeAffinity = selector, affinity.DeepCopy()
	}
}

// drawNodeAffinity returns terms about nodes, nil for none.
func drawNodeAffinity(r *rapid.T, byName ...corev1.NodeSelectorOperator) *corev1.NodeAffinity {
	affinity := &corev1.NodeAffinity{}
	term := rapid.Custom(func(r *rapid.T) corev1.NodeSelectorTerm { return drawNodeTerm(r, byName) })
	if rapid.IntRange(0, 4).Draw(r, "requires nodes") == 4 {
		terms := rapid.SliceOfN(term, 1, 2).Draw(r, "required")
		affinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: terms}
	}
	if rapid.IntRange(0, 2).Draw(r, "prefers nodes") == 2 {
		for _, term := range rapid.SliceOfN(term, 1, 3).Draw(r, "preferred") {
			weight := rapid.Int32Range(1, 100).Draw(r, "weight")
			affinity.PreferredDuringSchedulingIgnoredDuringExecution = append(affinity.PreferredDuringSchedulingIgnoredDuringExecution,
				corev1.PreferredSchedulingTerm{Weight: weight, Preference: term})
		}
	}
	if affinity.RequiredDuringSchedulingIgnoredDuringExecution == nil && affinity.PreferredDuringSchedulingIgnoredDuringExecution == nil {
		return nil
	}
	return affinity
}

// drawNodeTerm returns a term with any operator, now and then about names of nodes.
func drawNodeTerm(r *rapid.T, byName []corev1.NodeSelectorOperator) corev1.NodeSelectorTerm {
	term := corev1.NodeSelectorTerm{}
	for range rapid.SampledFrom([]int{1, 1, 2}).Draw(r, "expressions") {
		e := corev1.NodeSelectorRequirement{
			Key: rapid.SampledFrom([]string{"zone", "rack", "pool", "generation", corev1.LabelHostname}).Draw(r, "key"),
			Operator: rapid.SampledFrom([]corev1.NodeSelectorOperator{
				corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn, corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist,
				corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt,
			}).Draw(r, "operator"),
		}
		switch e.Operator {
		case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
			e.Values = rapid.SliceOfN(rapid.SampledFrom([]string{"", "1", "2", "7", "a", "b", "k0-0"}), 1, 3).Draw(r, "values")
		case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
			e.Values = []string{rapid.SampledFrom([]string{"1", "2", "5"}).Draw(r, "bound")}
		}
		term.MatchExpressions = append(term.MatchExpressions, e)
	}
	if len(byName) > 0 && rapid.IntRange(0, 7).Draw(r, "by name") == 7 {
		term.MatchFields = []corev1.NodeSelectorRequirement{{
			Key:      metav1.ObjectNameField,
			Operator: rapid.SampledFrom(byName).Draw(r, "operator"),
			Values:   []string{rapid.SampledFrom([]string{"k0-0", "k0-1", "k1-0"}).Draw(r, "node name")},
		}}
		if rapid.Bool().Draw(r, "by name only") {
			term.MatchExpressions = nil
		}
	}
	return term
}

// drawAdded returns terms that a profile adds to those of pods, most often none.
func drawAdded(r *rapid.T) *corev1.NodeAffinity {
	if rapid.IntRange(0, 5).Draw(r, "adds terms") < 5 {
		return nil
	}
	return drawNodeAffinity(r, corev1.NodeSelectorOpNotIn)
}

// drawRunning returns pods that run on some of the nodes.
func drawRunning(r *rapid.T, shapes nodeShapes) []*corev1.Pod {
	var pods []*corev1.Pod
	for i := range rapid.IntRange(0, 4).Draw(r, "running") {
		s := shapes[rapid.IntRange(0, len(shapes)-1).Draw(r, "on kind")]
		p := onNode(pod(fmt.Sprintf("running-%d", i), ""), s.node(rapid.IntRange(0, s.count-1).Draw(r, "on node")).Name)
		if asks := rapid.SampledFrom([]corev1.ResourceName{"", "", corev1.ResourceCPU, corev1.ResourceMemory, "nvidia.com/gpu"}).Draw(r, "running asks"); asks != "" {
			p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{asks: resource.MustParse("1")}
		}
		p.Labels["app"], p.Labels["copy"] = rapid.SampledFrom(apps).Draw(r, "running app"), rapid.SampledFrom([]string{"0", "1"}).Draw(r, "running copy")
		p.Spec.Affinity = &corev1.Affinity{}
		drawTerms(r)(p)
		pods = append(pods, p)
	}
	return pods
}

// apps are the labels by which pods are told apart by terms of others, topologies the keys of such terms.
var (
	apps       = []string{"ps", "worker"}
	topologies = []string{"zone", "rack", corev1.LabelHostname}
)

// drawTerms returns what gives a pod terms about other pods, most often none.
func drawTerms(r *rapid.T) func(*corev1.Pod) {
	term := func(label string) corev1.PodAffinityTerm {
		return corev1.PodAffinityTerm{
			TopologyKey:   rapid.SampledFrom(topologies).Draw(r, label+" topology"),
			LabelSelector: &metav1.LabelSelector{MatchLabels: drawSelected(r, label)},
		}
	}
	weighted := func(label string) []corev1.WeightedPodAffinityTerm {
		return []corev1.WeightedPodAffinityTerm{{Weight: rapid.Int32Range(1, 100).Draw(r, label), PodAffinityTerm: term(label)}}
	}
	has := func(label string) bool { return rapid.IntRange(0, 5).Draw(r, label) == 5 }
	// Without terms there is nothing about them, by which the planner tells that it may look at nodes one by one.
	var with *corev1.PodAffinity
	if required, preferred := has("affinity"), has("prefers pods"); required || preferred {
		with = &corev1.PodAffinity{}
		if required {
			with.RequiredDuringSchedulingIgnoredDuringExecution = []corev1.PodAffinityTerm{term("affinity")}
		}
		if preferred {
			with.PreferredDuringSchedulingIgnoredDuringExecution = weighted("prefers pods")
		}
	}
	var avoid *corev1.PodAntiAffinity
	if required, preferred := has("anti-affinity"), has("avoids pods"); required || preferred {
		avoid = &corev1.PodAntiAffinity{}
		if required {
			avoid.RequiredDuringSchedulingIgnoredDuringExecution = []corev1.PodAffinityTerm{term("anti-affinity")}
		}
		if preferred {
			avoid.PreferredDuringSchedulingIgnoredDuringExecution = weighted("avoids pods")
		}
	}
	var spread []corev1.TopologySpreadConstraint
	for _, unsatisfiable := range []corev1.UnsatisfiableConstraintAction{corev1.DoNotSchedule, corev1.ScheduleAnyway} {
		if has("spread " + string(unsatisfiable)) {
			t := term("spread")
			spread = append(spread, corev1.TopologySpreadConstraint{
				MaxSkew: rapid.Int32Range(1, 3).Draw(r, "skew"), TopologyKey: t.TopologyKey, LabelSelector: t.LabelSelector, WhenUnsatisfiable: unsatisfiable,
			})
		}
	}
	return func(p *corev1.Pod) {
		p.Spec.Affinity.PodAffinity, p.Spec.Affinity.PodAntiAffinity = with, avoid
		p.Spec.TopologySpreadConstraints = spread
	}
}

// drawSelected returns the labels of the pods that a term is about.
func drawSelected(r *rapid.T, label string) map[string]string {
	if rapid.Bool().Draw(r, label+" copies") {
		return map[string]string{"copy": rapid.SampledFrom([]string{"0", "1"}).Draw(r, label+" copy")}
	}
	return map[string]string{"app": rapid.SampledFrom(apps).Draw(r, label+" app")}
}
