// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package tiers_test

import (
	"fmt"
	"slices"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	nodeinfo "volcano.sh/apis/pkg/apis/nodeinfo/v1alpha1"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
	topology "volcano.sh/apis/pkg/apis/topology/v1alpha1"

	"github.com/caldera-scheduler/caldera/pkg/localcluster"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/topology/buckets"
	"github.com/caldera-scheduler/caldera/test/integration/env"
)

// TestGPUTraining has two nodes without a group, four with eight GPUs in the group a100 under two switches, one that tells of
// its NUMA nodes, and one with two cards that pods may share.
func TestGPUTraining(t *testing.T) {
	s := open(t, localcluster.Options{CRDDirs: []string{"../../../manifests/crds-optional"}, Shapes: []string{
		"name=cpu,count=2,cpu=8,memory=32Gi,label:pool=cpu",
		"name=a100,count=4,cpu=16,memory=64Gi,nvidia.com/gpu=8,label:volcano.sh/nodegroup-name=a100",
		"name=numa,count=1,cpu=8,memory=32Gi",
		"name=vgpu,count=1,cpu=8,memory=32Gi,volcano.sh/vgpu-number=20,volcano.sh/vgpu-memory=16000,volcano.sh/vgpu-cores=200",
	}})
	s.connect()
	s.exportNUMA("numa-0000")
	s.register("vgpu-0000", "a,10,8000,NVIDIA-T4,true,hami-core:b,10,8000,NVIDIA-T4,true,hami-core:")
	decisions := slices.Concat([]decision{priority, gang, sla, conformance, predicates}, teams, []decision{nodeOrder}, placement)
	s.run("gpu-training.conf", decisions)
}

// team creates a queue of a team, below that of a company which may hold so many GPUs and has the nodes of the group a100.
func (s *fixture) team(name, gpus string) {
	s.t.Helper()
	s.queue(name+"-company", volcano.QueueSpec{
		Capability: corev1.ResourceList{gpu: resource.MustParse(gpus)},
		Affinity: &volcano.Affinity{NodeGroupAffinity: &volcano.NodeGroupAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []string{"a100"},
		}},
	})
	s.queue(name, volcano.QueueSpec{Parent: name + "-company"})
}

// needingGPUs has a job say what it needs.
func needingGPUs(n string, g env.Gang) env.Gang {
	before := g.Group
	g.Group = func(group *volcano.PodGroup) {
		if before != nil {
			before(group)
		}
		group.Spec.MinResources = &corev1.ResourceList{gpu: resource.MustParse(n)}
	}
	return g
}

var sla = decision{
	plugin:  "sla",
	seen:    "a gang above the limit of its queue that may wait for a second is let in after that, and the one that says nothing is not",
	without: "neither is let in",
	play: func(s *fixture) {
		s.team("team", "4")
		patient := of("team", needingGPUs("8", job("patient", 2, 2, "1", limited("4", gpu))))
		s.waits(patient, model.NotAdmitted)
		overdue := of("team", env.Gang{Name: "overdue", Min: 2, Size: 2, CPU: "1", Pod: func(_ int, p *corev1.Pod) { limited("4", gpu)(p) }})
		overdue.Group = func(g *volcano.PodGroup) { g.Annotations = map[string]string{"volcano.sh/sla-waiting-time": "1s"} }
		s.Create(s.t, needingGPUs("8", overdue))
		s.phase("overdue", volcano.PodGroupInqueue)
		s.phase("patient", volcano.PodGroupPending)
	},
}

// teams is what the plugins about queues decide.
var teams = []decision{
	{
		plugin:  "capacity",
		seen:    "a team gets nothing while another one below the same queue holds all that this may hold; a third one elsewhere does",
		without: "all three run: there are 32 GPUs",
		play: func(s *fixture) {
			s.team("left", "8")
			s.queue("right", volcano.QueueSpec{Parent: "left-company"})
			s.team("elsewhere", "8")
			s.runs(of("left", needingGPUs("8", job("lefts", 1, 1, "1", limited("8", gpu)))), 1)
			s.waits(of("right", needingGPUs("1", job("rights", 1, 1, "1", limited("1", gpu)))), model.NotAdmitted)
			s.runs(of("elsewhere", needingGPUs("1", job("others", 1, 1, "1", limited("1", gpu)))), 1)
		},
	},
	{
		plugin:  "nodegroup",
		seen:    "the pods of a team, by the queue above it, may use the nodes of its group only; those of others only nodes without a group",
		without: "both run where they are told to",
		play: func(s *fixture) {
			s.team("team", "8")
			s.waits(of("team", job("strayed", 1, 1, "1", on(one))), model.NotEnoughResources)
			s.waits(job("intruder", 1, 1, "1", on("a100-0000")), model.NotEnoughResources)
			s.runs(of("team", job("home", 1, 1, "1", on("a100-0000"))), 1)
			s.runs(job("outside", 1, 1, "1", on(one)), 1)
		},
	},
}

// placement is what the plugins about nodes decide.
var placement = []decision{
	{
		plugin:  "binpack",
		seen:    "a pod with a GPU goes to the node of which GPUs are in use, one without to the node of which cores are",
		without: "each goes to the node that has more left",
		play: func(s *fixture) {
			s.team("team", "8")
			s.hold("cores", "a100-0001", "12")
			s.hold("gpus", "a100-0003", "100m", limited("4", gpu))
			s.expect("gpu", s.runs(of("team", job("gpu", 1, 1, "1", limited("1", gpu))), 1), "a100-0003")
			s.expect("cpu", s.runs(of("team", job("cpu", 1, 1, "1")), 1), "a100-0001")
		},
	},
	{
		plugin:  "task-topology",
		seen:    "each of two servers that want to be apart has two of their four workers beside it",
		without: "all six are on one node, as those of a job without the annotations are",
		play: func(s *fixture) {
			g := env.Gang{Name: "plain", Min: 6, Size: 6, CPU: "1", Pod: func(i int, p *corev1.Pod) {
				selected("pool", "cpu")(p)
				p.Annotations[model.RoleKey] = map[bool]string{true: "ps", false: "worker"}[i < 2]
			}}
			if nodes := slices.Compact(s.runs(g, 6)); len(nodes) != 1 {
				s.t.Errorf("the pods without annotations are on %q, want one node", nodes)
			}
			s.release("plain")
			g.Name = "apart"
			g.Group = func(group *volcano.PodGroup) {
				group.Annotations = map[string]string{buckets.AffinityAnnotation: "ps,worker", buckets.AntiAffinityAnnotation: "ps"}
			}
			s.expect("apart", s.runs(g, 6), one, one, one, two, two, two)
			members := s.Members(s.t, "apart")
			if members[0].Spec.NodeName == members[1].Spec.NodeName {
				s.t.Errorf("both servers are on %s", members[0].Spec.NodeName)
			}
		},
	},
	{
		plugin:  "network-topology-aware",
		seen:    "with a free node under each of two switches, a gang of two that wants to be under one waits, and one that would like to runs",
		without: "the first one runs",
		play: func(s *fixture) {
			s.team("team", "32")
			s.hold("left", "a100-0000", "1", limited("8", gpu))
			s.hold("right", "a100-0002", "1", limited("8", gpu))
			near := func(name string, mode volcano.NetworkTopologyMode) env.Gang {
				g := of("team", job(name, 2, 2, "1", limited("8", gpu)))
				g.Group = func(group *volcano.PodGroup) {
					group.Spec.NetworkTopology = &volcano.NetworkTopologySpec{Mode: mode, HighestTierAllowed: new(1)}
				}
				return g
			}
			s.waits(near("together", volcano.HardNetworkTopologyMode), model.NotEnoughResources)
			s.expect("near", s.runs(near("near", volcano.SoftNetworkTopologyMode), 2), "a100-0001", "a100-0003")
		},
	},
	{
		plugin:  "numa-aware",
		seen:    "with a CPU left on each of two NUMA nodes, a pod that wants two together waits, and one that takes any runs",
		without: "both run",
		play: func(s *fixture) {
			together := annotated(model.NUMAPolicyAnnotation, "single-numa-node")
			guaranteed := func(cpu string) func(*corev1.Pod) {
				return func(p *corev1.Pod) {
					limited("1Gi", corev1.ResourceMemory)(p)
					p.Spec.Containers[0].Resources.Limits[corev1.ResourceCPU] = resource.MustParse(cpu)
				}
			}
			s.runs(job("threes", 2, 2, "3", together, guaranteed("3")), 2)
			s.waits(job("pair", 1, 1, "2", together, guaranteed("2")), model.NotEnoughResources)
			s.runs(job("any", 1, 1, "2", on("numa-0000")), 1)
		},
	},
	{
		plugin:  "deviceshare",
		seen:    "with 3000 MB left on each of two cards, a pod that wants 5000 of one waits, and one that wants 3000 gets them",
		without: "the first one runs: the node has 6000 left",
		play: func(s *fixture) {
			megabytes := func(n string) func(*corev1.Pod) {
				return func(p *corev1.Pod) {
					limited(n, "volcano.sh/vgpu-memory")(p)
					p.Spec.Containers[0].Resources.Limits["volcano.sh/vgpu-number"] = resource.MustParse("1")
				}
			}
			s.runs(job("large", 2, 2, "1", megabytes("5000")), 2)
			s.waits(job("third", 1, 1, "1", megabytes("5000")), model.NotEnoughResources)
			s.runs(job("small", 1, 1, "1", megabytes("3000")), 1)
			cards := map[string]bool{}
			for _, p := range s.Members(s.t, "large") {
				cards[p.Annotations["volcano.sh/vgpu-ids-new"]] = true
			}
			if !cards["a,NVIDIA,5000,0:;"] || !cards["b,NVIDIA,5000,0:;"] {
				s.t.Errorf("the large pods have the cards %v, want one each", cards)
			}
		},
	},
}

// connect puts the nodes of the group a100 below two switches.
func (s *fixture) connect() {
	s.t.Helper()
	for i := range 2 {
		leaf := &topology.HyperNode{ObjectMeta: metav1.ObjectMeta{Name: "s" + strconv.Itoa(i)}, Spec: topology.HyperNodeSpec{Tier: 1}}
		for k := range 2 {
			leaf.Spec.Members = append(leaf.Spec.Members, topology.MemberSpec{
				Type:     topology.MemberTypeNode,
				Selector: topology.MemberSelector{ExactMatch: &topology.ExactMatch{Name: fmt.Sprintf("a100-%04d", 2*i+k)}},
			})
		}
		_, err := s.Volcano.TopologyV1alpha1().HyperNodes().Create(s.t.Context(), leaf, metav1.CreateOptions{})
		s.must(err)
	}
}

// exportNUMA tells of a node of eight CPUs that they are on two NUMA nodes, as the exporter does.
func (s *fixture) exportNUMA(node string) {
	s.t.Helper()
	told := &nodeinfo.Numatopology{ObjectMeta: metav1.ObjectMeta{Name: node}, Spec: nodeinfo.NumatopoSpec{
		Policies:   map[nodeinfo.PolicyName]string{nodeinfo.CPUManagerPolicy: "static", nodeinfo.TopologyManagerPolicy: "single-numa-node"},
		NumaResMap: map[string]nodeinfo.ResourceInfo{"cpu": {Allocatable: "0-7", Capacity: 8}},
		CPUDetail:  map[string]nodeinfo.CPUInfo{},
	}}
	for id := range 8 {
		told.Spec.CPUDetail[strconv.Itoa(id)] = nodeinfo.CPUInfo{NUMANodeID: id / 4, SocketID: id / 4, CoreID: id}
	}
	_, err := s.Volcano.NodeinfoV1alpha1().Numatopologies().Create(s.t.Context(), told, metav1.CreateOptions{})
	s.must(err)
}

// register tells of a node's cards, as the device plugin does.
func (s *fixture) register(node, cards string) {
	s.t.Helper()
	patch := fmt.Appendf(nil, `{"metadata": {"annotations": {"volcano.sh/node-vgpu-register": %q}}}`, cards)
	_, err := s.Kube.CoreV1().Nodes().Patch(s.t.Context(), node, types.MergePatchType, patch, metav1.PatchOptions{})
	s.must(err)
}
