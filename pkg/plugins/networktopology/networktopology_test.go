// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package networktopology_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/caldera-scheduler/caldera/internal/testing/builders"
	"github.com/caldera-scheduler/caldera/internal/testing/placing"
	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/gang"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/plugins/networktopology"
	"github.com/caldera-scheduler/caldera/pkg/policy"
	"github.com/caldera-scheduler/caldera/pkg/topology/hypernode"
)

// cluster is racks of nodes of four cores, two racks to a zone, all zones in one.
type cluster struct {
	nodes   []*corev1.Node
	running []*corev1.Pod
	tree    *hypernode.Tree
}

// newCluster builds racks with so many nodes: node-0-1 is number 1 of rack-0, which is in zone-0. One node is in no HyperNode.
func newCluster(racks, size, racksInZone int) *cluster {
	c := &cluster{}
	has := corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("16Gi"), "pods": resource.MustParse("110")}
	var names []hypernode.Node
	add := func(name string) {
		c.nodes = append(c.nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Capacity: has, Allocatable: has}})
		names = append(names, hypernode.Node{Name: name})
	}
	var specs []hypernode.Spec
	all := hypernode.Spec{Name: "all", Tier: 3}
	for i := range racks {
		rack := hypernode.Spec{Name: fmt.Sprintf("rack-%d", i), Tier: 1}
		for k := range size {
			name := fmt.Sprintf("node-%d-%d", i, k)
			add(name)
			rack.Members = append(rack.Members, hypernode.Member{Name: name})
		}
		if i%racksInZone == 0 {
			zone := hypernode.Spec{Name: fmt.Sprintf("zone-%d", i/racksInZone), Tier: 2}
			for k := range racksInZone {
				zone.Members = append(zone.Members, hypernode.Member{HyperNode: true, Name: fmt.Sprintf("rack-%d", i+k)})
			}
			specs = append(specs, zone)
			all.Members = append(all.Members, hypernode.Member{HyperNode: true, Name: zone.Name})
		}
		specs = append(specs, rack)
	}
	add("apart")
	c.tree, _ = hypernode.Build(append(specs, all), names)
	return c
}

func newPod(name, job, cpu, node string) *corev1.Pod {
	p := builders.Member("team", job, name, cpu)
	if node != "" {
		p.Node(node).Phase(corev1.PodRunning)
	}
	return p.Obj()
}

// use has pods of a job run on nodes.
func (c *cluster) use(job, cpu string, nodes ...string) {
	for i, n := range nodes {
		c.running = append(c.running, newPod(fmt.Sprintf("%s-on-%d", job, i), job, cpu, n))
	}
}

// job is a gang with so many waiting pods and those that run already.
func (c *cluster) job(name string, waiting int, cpu string, topology *model.NetworkTopology) *model.Job {
	state := model.NewState()
	state.AddScheduler("volcano")
	key := model.JobKey{Source: model.FromVolcano, Namespace: "team", Name: name}
	least := waiting
	for _, p := range c.running {
		if p.Annotations[model.GroupNameAnnotation] == name {
			state.UpsertPod(p)
			least++
		}
	}
	state.UpsertGroup(key, &model.Group{Queue: model.DefaultQueue, MinMember: least, Topology: topology})
	for i := range waiting {
		state.UpsertPod(newPod(fmt.Sprintf("%s-%d", name, i), name, cpu, ""))
	}
	return state.Job(key)
}

func (c *cluster) planner(tb testing.TB) *gang.Planner {
	tb.Helper()
	pl := networktopology.Build(&config.NetworkTopologyArgs{
		Gangs: true, Resources: map[string]int64{"cpu": 1, "memory": 1}, NormalPods: true, Fading: 0.8, EvictingHyperNodes: 8,
	}, c.tree)
	p := placing.Planner(tb, c.nodes, c.running, nil, networktopology.Name,
		func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) { return pl, nil })
	p.Domains = pl
	return p
}

func plan(tb testing.TB, p *gang.Planner, job *model.Job) gang.Plan {
	tb.Helper()
	got, err := p.Plan(tb.Context(), gang.Request{Job: job, Budget: func() gang.Budget { return &policy.Budget{} }})
	if err != nil {
		tb.Fatal(err)
	}
	return got
}

// racksOf are the racks on which a plan places tasks, by their lowest HyperNodes.
func (c *cluster) racksOf(p gang.Plan) []string {
	var names []string
	for _, placed := range p.Placements {
		if name := c.tree.Leaf(placed.Node).Name; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func upTo(tier int) *model.NetworkTopology {
	return &model.NetworkTopology{Field: "spec.networkTopology", Hard: true, HighestTier: tier}
}

func TestGangsAreInsideOfHyperNodes(t *testing.T) {
	soft := &model.NetworkTopology{}
	for name, tc := range map[string]struct {
		use      func(*cluster)
		size     int
		cpu      string
		topology *model.NetworkTopology
		want     []string
		reason   string
	}{
		"in one rack":                       {nil, 4, "2", upTo(1), []string{"rack-0"}, ""},
		"in the rack that it fills most":    {func(c *cluster) { c.use("o", "2", "node-2-0", "node-2-1") }, 2, "2", upTo(1), []string{"rack-2"}, ""},
		"in one zone":                       {nil, 4, "4", upTo(2), []string{"rack-0", "rack-1"}, ""},
		"waits for a rack though zones are": {nil, 3, "4", upTo(1), nil, "in hyperNode rack-3: 2/3 tasks in gang schedulable: insufficient cpu, short by 4; 4 HyperNodes were tried"},
		"soft in a rack":                    {nil, 2, "4", soft, []string{"rack-0"}, ""},
		"soft anywhere in the end":          {nil, 9, "4", soft, []string{"<cluster-top-hypernode>", "rack-0", "rack-1", "rack-2", "rack-3"}, ""},
		"around its tasks":                  {func(c *cluster) { c.use("g", "1", "node-3-0") }, 1, "1", upTo(2), []string{"rack-3"}, ""},
		"in the zone of its tasks": {
			func(c *cluster) { c.use("g", "4", "node-3-0"); c.use("o", "4", "node-3-1") }, 1, "1", upTo(2), []string{"rack-2"}, "",
		},
		"not farther than it may": {
			func(c *cluster) { c.use("g", "4", "node-3-0"); c.use("o", "4", "node-3-1") }, 1, "1", upTo(1), nil,
			"in hyperNode rack-3: 1/2 tasks in gang schedulable: insufficient cpu, short by 1",
		},
		"too far apart already": {
			func(c *cluster) { c.use("g", "1", "node-0-0", "node-3-0") }, 1, "1", upTo(2), nil,
			"spec.networkTopology allows tier 2, and its tasks on nodes have HyperNode all of tier 3 in common: restart the job, or raise the tier",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(4, 2, 2)
			if tc.use != nil {
				tc.use(c)
			}
			got := plan(t, c.planner(t), c.job("g", tc.size, tc.cpu, tc.topology))
			if diff := cmp.Diff(tc.want, c.racksOf(got)); diff != "" {
				t.Errorf("HyperNodes (-want,+got)\n%s", diff)
			}
			if got.Reason.Message != tc.reason {
				t.Errorf("reason is %q, want %q", got.Reason.Message, tc.reason)
			}
		})
	}
}

func TestOtherPodsFillWhatIsInUse(t *testing.T) {
	c := newCluster(4, 2, 2)
	c.use("o", "3", "node-2-0")
	c.use("p", "4", "apart")
	got := plan(t, c.planner(t), c.job("g", 4, "1", nil))
	if diff := cmp.Diff([]string{"rack-2"}, c.racksOf(got)); diff != "" {
		t.Errorf("HyperNodes (-want,+got)\n%s", diff)
	}
}

// TestSumsOfHyperNodesFollowTheNodes: what nodes have is added up from one plan to the next.
func TestSumsOfHyperNodesFollowTheNodes(t *testing.T) {
	c := newCluster(4, 2, 2)
	p := c.planner(t)
	for range 2 {
		if got := c.racksOf(plan(t, p, c.job("g", 2, "2", upTo(1)))); !slices.Equal(got, []string{"rack-0"}) {
			t.Errorf("in %v, want rack-0", got)
		}
	}
}

// BenchmarkPlanInsideOfHyperNodes plans a gang of 64 on 5,000 nodes in racks of 20, zones of ten racks and one HyperNode of all: where
// every rack and zone is too full for it but the last, and where no zone has room.
func BenchmarkPlanInsideOfHyperNodes(b *testing.B) {
	const racks, size, racksInZone, gangSize = 250, 20, 10, 64
	for name, spared := range map[string]int{"last zone": 1, "no zone": 0} {
		b.Run(name, func(b *testing.B) {
			c := newCluster(racks, size, racksInZone)
			for i := range racks - spared*racksInZone {
				var busy []string
				for k := 1; k < size; k++ {
					busy = append(busy, fmt.Sprintf("node-%d-%d", i, k))
				}
				c.use(fmt.Sprintf("busy-%d", i), "4", busy...)
			}
			p, job := c.planner(b), c.job("g", gangSize, "4", upTo(2))
			for b.Loop() {
				if got := plan(b, p, job); len(got.Placements) != gangSize*spared {
					b.Fatalf("%d tasks placed, want %d: %s", len(got.Placements), gangSize*spared, got.Reason.Message)
				}
			}
		})
	}
}
