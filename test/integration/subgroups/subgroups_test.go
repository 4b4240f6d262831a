// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package subgroups tests gangs that start in subgroups (spec.subGroupPolicy of a PodGroup), on a real control plane and simulated: with the
// same objects, and the same outcome.
package subgroups_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
	topology "volcano.sh/apis/pkg/apis/topology/v1alpha1"

	"github.com/caldera-scheduler/caldera/pkg/localcluster"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/simulate"
	"github.com/caldera-scheduler/caldera/pkg/simulate/scenario"
	"github.com/caldera-scheduler/caldera/pkg/volcano/profile"
	"github.com/caldera-scheduler/caldera/test/integration/env"
)

// conf is a volcano-scheduler.conf in which gangs are kept inside of HyperNodes.
const conf = `
actions: "enqueue, allocate, preempt, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: predicates
  - name: proportion
  - name: nodeorder
  - name: network-topology-aware
`

const (
	patience = 30 * time.Second
	gpu      = corev1.ResourceName("nvidia.com/gpu")
	// partLabel numbers the subgroups, stageLabel the parts of one where there are two keys.
	partLabel, stageLabel = "part", "stage"
	// leaves is how many leaves each of the two spines has, of two nodes with eight GPUs each.
	leaves = 8
)

// leaf is the name of the HyperNode of tier 1 that a node is in.
func leaf(node string) string { return strings.TrimSuffix(strings.TrimSuffix(node, "-0000"), "-0001") }

// spine is the name of the HyperNode of tier 2 that a node is in.
func spine(node string) string {
	name, _, _ := strings.Cut(node, "x")
	return name
}

// fabric is the HyperNodes, and the shapes of the nodes.
func fabric() (hyperNodes []*topology.HyperNode, shapes []string) {
	member := func(kind topology.MemberType, name string) topology.MemberSpec {
		return topology.MemberSpec{Type: kind, Selector: topology.MemberSelector{ExactMatch: &topology.ExactMatch{Name: name}}}
	}
	for _, s := range []string{"a", "b"} {
		top := &topology.HyperNode{ObjectMeta: metav1.ObjectMeta{Name: s}, Spec: topology.HyperNodeSpec{Tier: 2}}
		for i := range leaves {
			name := fmt.Sprintf("%sx%d", s, i)
			shapes = append(shapes, fmt.Sprintf("name=%s,count=2,cpu=32,memory=256Gi,%s=8", name, gpu))
			top.Spec.Members = append(top.Spec.Members, member(topology.MemberTypeHyperNode, name))
			hyperNodes = append(hyperNodes, &topology.HyperNode{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: topology.HyperNodeSpec{Tier: 1, Members: []topology.MemberSpec{
				member(topology.MemberTypeNode, name+"-0000"), member(topology.MemberTypeNode, name+"-0001"),
			}}})
		}
		hyperNodes = append(hyperNodes, top)
	}
	return hyperNodes, shapes
}

// withGPUs has a pod ask for GPUs.
func withGPUs(p *corev1.Pod, n int) *corev1.Pod {
	p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{gpu: resource.MustParse(strconv.Itoa(n))}
	p.Spec.Containers[0].Resources.Requests[gpu] = resource.MustParse(strconv.Itoa(n))
	return p
}

// busy is a pod that holds all GPUs of a node.
func busy(node string) *corev1.Pod {
	p := withGPUs(env.Pod("busy-"+node, "1"), 8)
	p.Spec.NodeName, p.Spec.SchedulerName, p.Labels = node, "somebody-else", map[string]string{env.GroupLabel: "busy"}
	return p
}

// gangIn is a gang of parts with so many pods each, of four GPUs.
func gangIn(name string, parts, size, least int, policies ...volcano.SubGroupPolicySpec) env.Gang {
	return env.Gang{
		Name: name, Min: least, Size: parts * size, CPU: "1",
		Pod: func(i int, p *corev1.Pod) {
			withGPUs(p, 4)
			p.Labels[partLabel] = strconv.Itoa(i / size)
		},
		Group: func(g *volcano.PodGroup) { g.Spec.SubGroupPolicy = policies },
	}
}

// by makes a subgroup of the pods with equal numbers, inside of a HyperNode of a tier; 0: anywhere.
func by(size, least, tier int) volcano.SubGroupPolicySpec {
	p := volcano.SubGroupPolicySpec{Name: "tp", SubGroupSize: new(int32(size)), MinSubGroups: new(int32(least)), MatchLabelKeys: []string{partLabel}}
	if tier > 0 {
		p.NetworkTopology = hard(tier)
	}
	return p
}

func hard(tier int) *volcano.NetworkTopologySpec {
	return &volcano.NetworkTopologySpec{Mode: volcano.HardNetworkTopologyMode, HighestTierAllowed: &tier}
}

func insideOf(tier int, g env.Gang) env.Gang {
	before := g.Group
	g.Group = func(group *volcano.PodGroup) {
		before(group)
		group.Spec.NetworkTopology = hard(tier)
	}
	return g
}

// example is something that a gang in subgroups does.
type example struct {
	name string
	// busy are nodes of which all GPUs are in use.
	busy []string
	// first, if it has a name, runs before the gang comes, where it is placed.
	first env.Gang
	gang  env.Gang
	// check says what is wrong with what became of the pods, by their names; those of the gang and of the first one.
	check func(nodes map[string]string) string
	// waits is a part of why the gang waits; empty when it starts.
	waits string
}

// parts returns the nodes of each part of a gang that has pods on nodes.
func parts(g env.Gang, nodes map[string]string) map[string][]string {
	of := map[string][]string{}
	for _, p := range g.Members() {
		if node := nodes[p.Name]; node != "" {
			part := p.Labels[partLabel]
			of[part] = append(of[part], node)
		}
	}
	return of
}

// areIn says which of a gang's parts are not whole, or in more than one of the HyperNodes of a tier, if not so many are as they should be.
func areIn(g env.Gang, nodes map[string]string, size, want int, in func(string) string) string {
	of := parts(g, nodes)
	for part, on := range of {
		var names []string
		for _, node := range on {
			names = append(names, in(node))
		}
		slices.Sort(names)
		if names = slices.Compact(names); len(on) != size || len(names) > 1 {
			return fmt.Sprintf("%d pods of part %s are on nodes, in %v", len(on), part, names)
		}
	}
	if len(of) != want {
		return fmt.Sprintf("%d parts are on nodes, want %d", len(of), want)
	}
	return ""
}

// spinesOf are the HyperNodes of tier 2 in which a gang is.
func spinesOf(g env.Gang, nodes map[string]string) []string {
	in := map[string]bool{}
	for _, p := range g.Members() {
		if node := nodes[p.Name]; node != "" {
			in[spine(node)] = true
		}
	}
	return slices.Sorted(maps.Keys(in))
}

func examples() []example {
	tensor := insideOf(2, gangIn("tensor", 8, 4, 32, by(4, 8, 1)))
	six := insideOf(2, gangIn("six", 8, 4, 24, by(4, 6, 1)))
	keyed := gangIn("keyed", 4, 2, 8, by(2, 4, 1))
	number := keyed.Pod
	keyed.Pod = func(i int, p *corev1.Pod) {
		number(i, p)
		p.Labels["replica"], p.Labels[stageLabel] = strconv.Itoa(i/4), strconv.Itoa(i/2%2)
	}
	keyed.Group = func(g *volcano.PodGroup) {
		policy := by(2, 4, 1)
		policy.MatchLabelKeys = []string{"replica", stageLabel}
		g.Spec.SubGroupPolicy = []volcano.SubGroupPolicySpec{policy}
	}
	tiers := gangIn("tiers", 2, 8, 12)
	role := tiers.Pod
	tiers.Size = 12
	tiers.Pod = func(i int, p *corev1.Pod) {
		role(i, p)
		p.Labels["role"] = map[string]string{"0": "decode", "1": "prefill"}[p.Labels[partLabel]]
	}
	tiers.Group = func(g *volcano.PodGroup) {
		for i, name := range []string{"prefill", "decode"} {
			policy := by(4*(i+1), 1, i+1)
			policy.Name, policy.LabelSelector = name, &metav1.LabelSelector{MatchLabels: map[string]string{"role": name}}
			g.Spec.SubGroupPolicy = append(g.Spec.SubGroupPolicy, policy)
		}
	}
	elastic := gangIn("elastic", 3, 4, 4, by(4, 1, 1))
	urgent := gangIn("urgent", 1, 1, 1)
	urgent.Pod = func(_ int, p *corev1.Pod) { withGPUs(p, 8).Spec.PriorityClassName = "urgent" }
	urgent.Group = func(g *volcano.PodGroup) { g.Spec.PriorityClassName = "urgent" }
	large := gangIn("large", 1, 6, 6, by(6, 1, 1))

	return []example{
		{
			name: "groups of four in one leaf each, eight of them in one spine", busy: []string{"ax3-0001"}, gang: tensor,
			check: func(nodes map[string]string) string {
				if in := spinesOf(tensor, nodes); !slices.Equal(in, []string{"b"}) {
					return fmt.Sprintf("the gang is in the spines %v", in)
				}
				return areIn(tensor, nodes, 4, 8, leaf)
			},
		},
		{
			name: "six of eight", busy: []string{"ax0-0000", "ax1-0000", "bx0-0000", "bx1-0000"}, gang: six,
			check: func(nodes map[string]string) string {
				if in := spinesOf(six, nodes); len(in) != 1 {
					return fmt.Sprintf("the gang is in the spines %v", in)
				}
				return areIn(six, nodes, 4, 6, leaf)
			},
		},
		{
			name: "by two labels", gang: keyed, check: func(nodes map[string]string) string { return areIn(keyed, nodes, 2, 4, leaf) },
		},
		{
			name: "of two kinds with tiers of their own", gang: tiers, busy: busyBut("ax0", "ax1", "ax2", "bx0", "bx1"),
			check: func(nodes map[string]string) string {
				of := parts(tiers, nodes)
				decode := map[string][]string{"0": of["0"]}
				prefill := map[string][]string{"1": of["1"]}
				return cmp.Or(whole(prefill, 4, leaf), whole(decode, 8, spine))
			},
		},
		{
			name: "one is evicted whole", first: elastic, gang: urgent, busy: busyBut("ax0", "ax1", "ax2"),
			check: func(nodes map[string]string) string {
				if nodes["urgent-0"] == "" {
					return "the urgent pod has no node"
				}
				return areIn(elastic, nodes, 4, 2, leaf)
			},
		},
		{
			name: "too large for any leaf", gang: large, waits: "subgroup tp/0: in hyperNode",
			check: func(nodes map[string]string) string { return areIn(large, nodes, 6, 0, leaf) },
		},
	}
}

// whole says which parts do not have so many pods on nodes, or are in more than one HyperNode.
func whole(of map[string][]string, size int, in func(string) string) string {
	for part, on := range of {
		names := map[string]bool{}
		for _, node := range on {
			names[in(node)] = true
		}
		if len(on) != size || len(names) != 1 {
			return fmt.Sprintf("%d pods of part %s are on nodes, in %v", len(on), part, slices.Sorted(maps.Keys(names)))
		}
	}
	return ""
}

// busyBut are all nodes but those of some leaves.
func busyBut(free ...string) []string {
	var nodes []string
	for _, s := range []string{"a", "b"} {
		for i := range leaves {
			if name := fmt.Sprintf("%sx%d", s, i); !slices.Contains(free, name) {
				nodes = append(nodes, name+"-0000", name+"-0001")
			}
		}
	}
	return nodes
}

var urgentClass = &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "urgent"}, Value: 1000}

// TestSubGroups plays each example on a real control plane.
func TestSubGroups(t *testing.T) {
	hyperNodes, shapes := fabric()
	e := env.New(t, localcluster.Options{CRDDirs: []string{"../../../manifests/crds-optional"}, Shapes: shapes})
	for _, h := range hyperNodes {
		if _, err := e.Volcano.TopologyV1alpha1().HyperNodes().Create(t.Context(), h, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	e.PriorityClass(t, urgentClass.Name, urgentClass.Value)
	e.StartSchedulerBy(t, conf)
	for _, x := range examples() {
		t.Run(x.name, func(t *testing.T) { play(t, e, x) })
	}
}

// play plays an example, and leaves the cluster empty.
func play(t *testing.T, e *env.Env, x example) {
	var held []*corev1.Pod
	for _, node := range x.busy {
		held = append(held, busy(node))
	}
	e.CreatePods(t, held...)
	env.Eventually(t, patience, func() string {
		for _, p := range e.Members(t, "busy") {
			if p.Status.Phase != corev1.PodRunning {
				return "pod " + p.Name + " does not run"
			}
		}
		return ""
	})
	if x.first.Name != "" {
		e.Create(t, x.first)
		env.Eventually(t, patience, e.AllBound(t, x.first.Name, x.first.Size))
	}
	e.Create(t, x.gang)
	nodes := func() map[string]string {
		at := map[string]string{}
		for _, name := range []string{x.gang.Name, x.first.Name} {
			for _, p := range e.Members(t, name) {
				if p.DeletionTimestamp == nil {
					at[p.Name] = p.Spec.NodeName
				}
			}
		}
		return at
	}
	if x.waits != "" {
		env.Eventually(t, patience, e.Waits(t, x.gang.Name, model.NotEnoughResources))
		if said := e.PodGroup(t, x.gang.Name).Status.Conditions; !slices.ContainsFunc(said, func(c volcano.PodGroupCondition) bool {
			return strings.Contains(c.Message, x.waits)
		}) {
			t.Errorf("the PodGroup says %+v, want %q", said, x.waits)
		}
	}
	env.Eventually(t, patience, func() string { return x.check(nodes()) })
	env.Consistently(t, time.Second, func() string { return x.check(nodes()) })
	for _, name := range []string{x.gang.Name, x.first.Name, "busy"} {
		if name != "" {
			e.Delete(t, name)
			env.Eventually(t, patience, func() string {
				if left := e.Members(t, name); len(left) > 0 {
					return fmt.Sprintf("%d pods are left", len(left))
				}
				return ""
			})
		}
	}
}

// TestSubGroupsSimulated plays each example with the scheduler on objects in memory.
func TestSubGroupsSimulated(t *testing.T) {
	t.Parallel()
	for _, x := range examples() {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			r := simulated(t, x)
			nodes := map[string]string{}
			for _, p := range r.Pods {
				if p.Placed() {
					nodes[p.Name] = p.Node
				}
			}
			if wrong := x.check(nodes); wrong != "" {
				t.Error(wrong)
			}
			for _, j := range r.Jobs {
				if j.Name == x.gang.Name && x.waits != "" && (j.Waits == nil || !strings.Contains(j.Waits.Message, x.waits)) {
					t.Errorf("the job waits because of %+v, want %q", j.Waits, x.waits)
				}
			}
		})
	}
}

func simulated(t *testing.T, x example) *simulate.Result {
	t.Helper()
	var file bytes.Buffer
	add := func(apiVersion, kind string, o any) {
		raw, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&file, "---\n{\"apiVersion\": %q, \"kind\": %q, %s\n", apiVersion, kind, raw[1:])
	}
	hyperNodes, _ := fabric()
	for _, h := range hyperNodes {
		add("topology.volcano.sh/v1alpha1", "HyperNode", h)
		for i := range 2 * (2 - h.Spec.Tier) {
			add("v1", "Node", &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-000%d", h.Name, i)}, Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("32"), corev1.ResourceMemory: resource.MustParse("256Gi"), gpu: resource.MustParse("8"),
			}}})
		}
	}
	add("scheduling.k8s.io/v1", "PriorityClass", urgentClass)
	for _, node := range x.busy {
		p := busy(node)
		p.Status.Phase = corev1.PodRunning
		add("v1", "Pod", p)
	}
	for _, g := range []env.Gang{x.first, x.gang} {
		if g.Name == "" {
			continue
		}
		add("scheduling.volcano.sh/v1beta1", "PodGroup", g.PodGroup())
		for i, p := range g.Members() {
			if g.Name == x.first.Name {
				// It runs, each part of four on the two nodes of a leaf.
				p.Spec.NodeName, p.Status.Phase = fmt.Sprintf("ax%s-000%d", p.Labels[partLabel], i%4/2), corev1.PodRunning
			}
			add("v1", "Pod", p)
		}
	}
	read, err := scenario.Read("example", file.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, time.August, 15, 12, 0, 0, 0, time.UTC)
	objects, err := scenario.Complete(read, now)
	if err != nil {
		t.Fatal(err)
	}
	config, err := profile.Read("volcano-scheduler.conf", []byte(conf), profile.Only)
	if err != nil {
		t.Fatal(err)
	}
	r, err := simulate.Run(t.Context(), objects, simulate.Options{Config: config, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	return r
}
