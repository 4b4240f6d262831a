// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/caldera-scheduler/caldera/pkg/gang"
	"github.com/caldera-scheduler/caldera/pkg/model"
)

// placed counts the placements by the role of the task, or by "be" for best-effort tasks.
func placed(plan gang.Plan) map[string]int {
	counts := map[string]int{}
	for _, p := range plan.Placements {
		switch {
		case p.Task.BestEffort:
			counts["be"]++
		default:
			counts[p.Task.Role]++
		}
	}
	return counts
}

func role(name string) func(int, *corev1.Pod) {
	return func(_ int, p *corev1.Pod) { p.Annotations[model.RoleKey] = name }
}

// roles names the first n pods a, the rest b.
func roles(a string, n int, b string) func(int, *corev1.Pod) {
	return func(i int, p *corev1.Pod) {
		p.Annotations[model.RoleKey] = a
		if i >= n {
			p.Annotations[model.RoleKey] = b
		}
	}
}

func cpuOf(index int, cpu string) func(int, *corev1.Pod) {
	return func(i int, p *corev1.Pod) {
		if i == index {
			p.Spec.Containers[0].Resources.Requests = pod("", cpu).Spec.Containers[0].Resources.Requests
		}
	}
}

// apart keeps the members of a gang on different nodes.
func apart(_ int, p *corev1.Pod) {
	p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"gang": p.Labels["gang"]}},
		}},
	}}
}

// evenly spreads the members of a gang over zones.
func evenly(_ int, p *corev1.Pod) {
	p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: "zone", WhenUnsatisfiable: corev1.DoNotSchedule,
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"gang": p.Labels["gang"]}},
	}}
}

var zones = nodeShapes{
	{prefix: "a", count: 1, cpu: "16", memory: "64Gi", labels: map[string]string{"zone": "a"}},
	{prefix: "b", count: 2, cpu: "8", memory: "64Gi", labels: map[string]string{"zone": "b"}},
	{prefix: "c", count: 4, cpu: "8", memory: "64Gi", labels: map[string]string{"zone": "c"}},
}

func TestPlan(t *testing.T) {
	small := nodeShapes{{count: 2, cpu: "4", memory: "64Gi"}}
	for name, tc := range map[string]struct {
		nodes   nodeShapes
		gang    gangSpec
		min     map[string]int
		want    map[string]int
		message string
	}{
		"a gang that fits is placed whole": {
			nodes: small, gang: gangOf("g", 8, 8, "1"), want: map[string]int{"": 8},
		},
		"a gang that is one pod too large is refused with what is short": {
			nodes: small, gang: gangOf("g", 9, 9, "1"),
			message: "8/9 tasks in gang schedulable: insufficient cpu, short by 1",
		},
		"the amount short is that of all members without a node": {
			nodes: small, gang: gangOf("g", 5, 5, "2500m"),
			message: "2/5 tasks in gang schedulable: insufficient cpu, short by 7500m",
		},
		"members beyond the minimum wait for turns of their own": {
			nodes: small, gang: gangOf("g", 2, 6, "1"), want: map[string]int{"": 2},
		},
		"a minimum of zero places one task a turn": {
			nodes: small, gang: gangOf("g", 0, 3, "1"), want: map[string]int{"": 1},
		},
		// Volcano test: minMember 1, roles master and worker, only a worker fits.
		"a task that fits nowhere does not stop the others when they suffice": {
			nodes: small, gang: gangOf("g", 1, 2, "1", roles("master", 1, "worker"), cpuOf(0, "8")),
			want: map[string]int{"worker": 1},
		},
		// Volcano test: minMember 2, {master 1, worker 1}, two pods each.
		"role minimums come first": {
			nodes: small, gang: gangOf("g", 2, 4, "4", roles("master", 2, "worker")), min: map[string]int{"master": 1, "worker": 1},
			want: map[string]int{"master": 1, "worker": 1},
		},
		"a role below its minimum refuses the gang": {
			nodes: small, gang: gangOf("g", 3, 4, "4", roles("master", 2, "worker")), min: map[string]int{"master": 1, "worker": 2},
			message: "2/3 tasks in gang schedulable: insufficient cpu",
		},
		// Reference section 2.5: role minimums are ignored when their sum is above minMember.
		"role minimums above the total are ignored": {
			nodes: small, gang: gangOf("g", 2, 2, "4", role("worker")), min: map[string]int{"master": 1, "worker": 3},
			want: map[string]int{"worker": 2},
		},
		"best-effort members are placed along": {
			nodes: small, gang: gangOf("g", 3, 3, "4", cpuOf(2, "")), want: map[string]int{"": 2, "be": 1},
		},
		"best-effort members that cannot be placed do not stop the gang": {
			nodes: small, gang: gangOf("g", 3, 3, "4", cpuOf(2, ""), func(i int, p *corev1.Pod) {
				if i == 2 {
					p.Spec.NodeSelector = map[string]string{"nowhere": "true"}
				}
			}), want: map[string]int{"": 2},
		},
		"classes of one gang share the room": {
			nodes: small, gang: gangOf("g", 4, 4, "3", cpuOf(2, "1"), cpuOf(3, "1")), want: map[string]int{"": 4},
		},
		"members that keep apart get a node each": {
			nodes: nodeShapes{{count: 6, cpu: "8", memory: "64Gi"}}, gang: gangOf("g", 6, 6, "1", apart), want: map[string]int{"": 6},
		},
		"one member more than nodes to keep apart on is refused": {
			nodes: nodeShapes{{count: 6, cpu: "8", memory: "64Gi"}}, gang: gangOf("g", 7, 7, "1", apart),
			message: "6/7 tasks in gang schedulable: node(s) didn't match pod anti-affinity rules",
		},
		"topology spread goes round the zones": {
			nodes: zones, gang: gangOf("g", 12, 12, "4", evenly), want: map[string]int{"": 12},
		},
		"topology spread refuses what would tilt the zones": {
			nodes: zones[1:], gang: gangOf("g", 10, 10, "4", evenly),
			message: "9/10 tasks in gang schedulable: ",
		},
		"a cluster without nodes is said to be one": {
			gang: gangOf("g", 2, 2, "1"), message: "the cluster has no nodes",
		},
		"taints that are not tolerated are named": {
			nodes:   nodeShapes{{count: 3, cpu: "4", memory: "64Gi", taints: []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoSchedule}}}},
			gang:    gangOf("g", 1, 1, "1"),
			message: "0/3 nodes are available for the next one: 3 node(s) had untolerated taint(s)",
		},
		"a node selector leaves out the other nodes": {
			nodes: nodeShapes{{count: 2, cpu: "4", memory: "64Gi"}, {prefix: "big", count: 1, cpu: "8", memory: "64Gi", labels: map[string]string{"big": "true"}}},
			gang: gangOf("g", 2, 2, "4", func(_ int, p *corev1.Pod) {
				p.Spec.NodeSelector = map[string]string{"big": "true"}
			}), want: map[string]int{"": 2},
		},
	} {
		t.Run(name, func(t *testing.T) {
			tc.gang.group.MinTaskMember = tc.min
			w := newFixture(t, tc.nodes, nil)
			plan := w.plan(t, w.job(tc.gang))
			if tc.message != "" {
				if len(plan.Placements) > 0 || !strings.Contains(plan.Reason.Text(), tc.message) {
					t.Errorf("%d placed, reason %q; want none and %q", len(plan.Placements), plan.Reason.Text(), tc.message)
				}
				return
			}
			if diff := cmp.Diff(tc.want, placed(plan)); diff != "" {
				t.Errorf("placements by role (-want,+got)\n%s%s", diff, plan.Reason.Message)
			}
		})
	}
}

// TestPlanAfterPartialStart plans only what is missing when members already hold nodes.
func TestPlanAfterPartialStart(t *testing.T) {
	g := gangOf("g", 4, 4, "1")
	onNode(g.pods[0], "node-0")
	onNode(g.pods[1], "node-1")
	w := newFixture(t, nodeShapes{{count: 2, cpu: "2", memory: "8Gi"}}, g.pods[:2])
	plan := w.plan(t, w.job(g))
	if len(plan.Placements) != 2 {
		t.Errorf("%d placed, want the 2 that are missing: %s", len(plan.Placements), plan.Reason.Message)
	}
}

// TestAffinityBetweenRoles places a role that needs another beside it, though it comes first in order.
func TestAffinityBetweenRoles(t *testing.T) {
	near := func(i int, p *corev1.Pod) {
		p.Labels["role"] = p.Annotations[model.RoleKey]
		if i == 0 {
			p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
					TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"role": "b"}},
				}},
			}}
		}
	}
	w := newFixture(t, nodeShapes{{count: 5, cpu: "4", memory: "8Gi"}}, nil)
	plan := w.plan(t, w.job(gangOf("g", 2, 2, "1", roles("a", 1, "b"), near)))
	if len(plan.Placements) != 2 || plan.Placements[0].Node != plan.Placements[1].Node {
		t.Errorf("placements %v, want both on one node: %s", plan.Placements, plan.Reason.Message)
	}
}

// TestAntiAffinityBetweenRoles keeps a role without terms of its own off the nodes of one that cannot bear it.
func TestAntiAffinityBetweenRoles(t *testing.T) {
	far := func(i int, p *corev1.Pod) {
		p.Labels["role"] = p.Annotations[model.RoleKey]
		if i < 2 {
			p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
					TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"role": "b"}},
				}},
			}}
		}
	}
	w := newFixture(t, nodeShapes{{count: 3, cpu: "4", memory: "8Gi"}}, nil)
	plan := w.plan(t, w.job(gangOf("g", 6, 6, "1", roles("a", 2, "b"), far)))
	roleOn := map[string]string{}
	for _, p := range plan.Placements {
		if before, ok := roleOn[p.Node]; ok && before != p.Task.Role {
			t.Errorf("node %s got members of both roles", p.Node)
		}
		roleOn[p.Node] = p.Task.Role
	}
	if len(plan.Placements) != 6 {
		t.Errorf("%d placed, want 6: %s", len(plan.Placements), plan.Reason.Message)
	}
}

// TestEqualJobsInARowAreSpread plans many equal jobs, each on what the ones before left: what a planner remembers must
// not hide that nodes have filled up.
func TestEqualJobsInARowAreSpread(t *testing.T) {
	const nodes, jobs = 4, 8
	shapes := nodeShapes{{count: nodes, cpu: "4", memory: "64Gi"}}
	var running []*corev1.Pod
	remembering := newFixture(t, shapes, nil)
	for i := range jobs + 1 {
		g := gangOf(fmt.Sprintf("g%d", i), 2, 2, "1", func(_ int, p *corev1.Pod) { p.Labels = nil })
		w := newFixture(t, shapes, running)
		planner := *w.planner
		remembering.planner.Framework = planner.Framework
		plan, err := remembering.planner.Plan(t.Context(), asking(w.job(g)))
		if err != nil {
			t.Fatal(err)
		}
		if fits := len(plan.Placements) == 2; fits != (i < jobs) {
			t.Fatalf("job %d of %d: %d placed: %s", i, jobs, len(plan.Placements), plan.Reason.Message)
		}
		for n, p := range plan.Placements {
			running = append(running, onNode(pod(fmt.Sprintf("g%d-%d", i, n), "1"), p.Node))
		}
	}
	perNode := map[string]int{}
	for _, p := range running {
		perNode[p.Spec.NodeName]++
	}
	if diff := cmp.Diff(map[string]int{"node-0": 4, "node-1": 4, "node-2": 4, "node-3": 4}, perNode); diff != "" {
		t.Errorf("pods per node (-want,+got)\n%s", diff)
	}
}

// TestNodesThatWereFullAreLookedAtAgain plans on a node that an earlier plan for an equal job had ruled out.
func TestNodesThatWereFullAreLookedAtAgain(t *testing.T) {
	shapes := nodeShapes{{count: 2, cpu: "4", memory: "64Gi"}}
	plain := func(_ int, p *corev1.Pod) { p.Labels = nil }
	first := newFixture(t, shapes, []*corev1.Pod{onNode(pod("old", "4"), "node-1")})
	if plan := first.plan(t, first.job(gangOf("a", 2, 2, "2", plain))); len(plan.Placements) != 2 {
		t.Fatal(plan.Reason.Text())
	}
	second := newFixture(t, shapes, []*corev1.Pod{onNode(pod("a-0", "2"), "node-0"), onNode(pod("a-1", "2"), "node-0")})
	first.planner.Framework = second.planner.Framework
	plan, err := first.planner.Plan(t.Context(), asking(second.job(gangOf("b", 2, 2, "2", plain))))
	if err != nil || len(plan.Placements) != 2 {
		t.Errorf("%d placed, want 2 on the node that is free now: %s, %v", len(plan.Placements), plan.Reason.Text(), err)
	}
}

// TestTheReasonNamesEveryNode checks that refusals add up to the number of nodes, also for the second of equal jobs.
func TestTheReasonNamesEveryNode(t *testing.T) {
	shapes := nodeShapes{{count: 4, cpu: "4", memory: "64Gi"}}
	plain := func(_ int, p *corev1.Pod) { p.Labels = nil }
	w := newFixture(t, shapes, nil)
	if plan := w.plan(t, w.job(gangOf("a", 2, 2, "3", plain))); len(plan.Placements) != 2 {
		t.Fatal(plan.Reason.Text())
	}
	plan := w.plan(t, w.job(gangOf("b", 5, 5, "3", plain)))
	want := "0/4 nodes are available for the next one: 4 Insufficient cpu"
	if plan.Reason.Detail != want {
		t.Errorf("detail %q, want %q", plan.Reason.Detail, want)
	}
}

// TestPlanAgreesWithArithmetic compares the planner with counting, on random nodes and gangs of one class: a gang fits
// exactly when the nodes have as many places as it has members, and no node gets more pods than it has places.
func TestPlanAgreesWithArithmetic(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var shapes nodeShapes
		places := map[string]int{}
		cpu := rapid.IntRange(1, 6).Draw(r, "cpu")
		total := 0
		for i := range rapid.IntRange(1, 8).Draw(r, "nodes") {
			cores := rapid.IntRange(1, 12).Draw(r, "cores")
			shapes = append(shapes, nodeShape{prefix: fmt.Sprintf("n%d", i), count: 1, cpu: fmt.Sprint(cores), memory: "64Gi"})
			places[fmt.Sprintf("n%d-0", i)] = cores / cpu
			total += cores / cpu
		}
		size := rapid.IntRange(1, 20).Draw(r, "size")
		w := newFixture(t, shapes, nil)
		plan := w.plan(t, w.job(gangOf("g", size, size, fmt.Sprint(cpu))))
		if fits := len(plan.Placements) == size; fits != (total >= size) {
			r.Fatalf("%d of %d placed with %d places: %s", len(plan.Placements), size, total, plan.Reason.Message)
		}
		for _, p := range plan.Placements {
			if places[p.Node]--; places[p.Node] < 0 {
				r.Fatalf("node %s got too many pods", p.Node)
			}
		}
	})
}

// TestMayFitNeverRefusesWhatAPlanAccepts checks the cheap conditions against the planner on random worlds.
func TestMayFitNeverRefusesWhatAPlanAccepts(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		shapes := nodeShapes{
			{prefix: "a", count: rapid.IntRange(0, 3).Draw(r, "a"), cpu: "4", memory: "8Gi"},
			{prefix: "b", count: rapid.IntRange(0, 3).Draw(r, "b"), cpu: "16", memory: "4Gi"},
		}
		size := rapid.IntRange(1, 8).Draw(r, "size")
		g := gangOf("g", rapid.IntRange(0, size).Draw(r, "min"), size, fmt.Sprint(rapid.IntRange(1, 8).Draw(r, "cpu")),
			cpuOf(0, fmt.Sprint(rapid.IntRange(1, 20).Draw(r, "first"))))
		var running []*corev1.Pod
		if shapes[0].count > 0 {
			// It may have more pods than it has room for: it has shrunk since they came.
			running = append(running, onNode(pod("old", fmt.Sprint(rapid.IntRange(1, 12).Draw(r, "old"))), "a-0"))
		}
		w := newFixture(t, shapes, running)
		job := w.job(g)
		if plan := w.plan(t, job); len(plan.Placements) > 0 && (!gang.MayFit(job, w.state.Totals()) || gang.NeverFits(job, w.state.Totals())) {
			r.Fatalf("a plan places %d tasks of a job that may not fit", len(plan.Placements))
		}
	})
}
