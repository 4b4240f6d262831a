// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
	topology "volcano.sh/apis/pkg/apis/topology/v1alpha1"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/node/fragment"
	"github.com/caldera-scheduler/caldera/pkg/replay/trace"
	"github.com/caldera-scheduler/caldera/pkg/simulate/scenario"
)

const (
	// namespace is where all objects are.
	namespace = "replay"
	// gpuResource is what whole GPUs are called.
	gpuResource corev1.ResourceName = "nvidia.com/gpu"
	// podsOfNode is how many pods a node takes: GPUs are to be what is scarce.
	podsOfNode = 1001
	// modelLabel is the label of nodes with the model of their GPUs.
	modelLabel = "nvidia.com/gpu.product"

	// Where jobs ask for parts of GPUs, these are cards that the plugin DeviceShare gives out in its mode VGPU.
	cardNumbers  corev1.ResourceName = "volcano.sh/vgpu-number"
	cardMemory   corev1.ResourceName = "volcano.sh/vgpu-memory"
	cardCores    corev1.ResourceName = "volcano.sh/vgpu-cores"
	cardRegister                     = "volcano.sh/node-vgpu-register"
	// cardShares is how many pods may share a card, and how its cores are counted.
	cardShares = 100
)

// objectsOf are the nodes and queues of a trace.
func objectsOf(t *trace.Trace, o Options) ([]scenario.Object, error) {
	var objects []scenario.Sourced
	add := func(o scenario.Object, where string) {
		objects = append(objects, scenario.Sourced{Object: o, Source: where})
	}
	add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, "the replay")
	shares := t.Shares()
	for _, n := range t.Nodes {
		add(nodeOf(n, shares), "node "+n.Name)
	}
	if t.Topology.Mode != "" {
		for _, h := range hyperNodes(t.Nodes) {
			add(h, "switch "+h.Name)
		}
	}
	machine := resourcesOf(largest(t.Nodes), shares)
	for _, q := range t.Queues {
		add(queueOf(q, machine, o.Partitioned), "queue "+q.Name)
	}
	return scenario.Complete(objects, o.Now)
}

// largest is the node with the most GPUs, and of those the one with the most CPU: queues are due so many of it.
func largest(nodes []trace.Node) trace.Node {
	return slices.MaxFunc(nodes, func(a, b trace.Node) int {
		return cmp.Or(cmp.Compare(a.GPUs, b.GPUs), cmp.Compare(a.MilliCPU, b.MilliCPU))
	})
}

func nodeOf(n trace.Node, shares bool) *corev1.Node {
	resources := resourcesOf(n, shares)
	resources[corev1.ResourcePods] = *resource.NewQuantity(podsOfNode, resource.DecimalSI)
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: map[string]string{}},
		Status:     corev1.NodeStatus{Capacity: resources, Allocatable: resources},
	}
	if n.Model != "" {
		node.Labels[modelLabel] = n.Model
	}
	if shares && n.GPUs > 0 {
		var cards strings.Builder
		for i := range n.GPUs {
			fmt.Fprintf(&cards, "%s,%d,%d,%s,true,hami-core:", cardID(i), cardShares, fragment.Whole, cmp.Or(n.Model, "unknown"))
		}
		node.Annotations = map[string]string{cardRegister: cards.String()}
	}
	return node
}

// cardPrefix begins the ID of a card. Its number on the node follows.
const cardPrefix = "GPU-"

func cardID(i int) string { return cardPrefix + strconv.Itoa(i) }

// cardNumber is the number of a card on its node.
func cardNumber(id string) (int, bool) {
	digits, ok := strings.CutPrefix(id, cardPrefix)
	n, err := strconv.Atoi(digits)
	return n, ok && err == nil
}

// resourcesOf are what a node has but for the number of pods.
func resourcesOf(n trace.Node, shares bool) corev1.ResourceList {
	list := amounts(n.MilliCPU, n.MemoryMiB)
	switch {
	case n.GPUs == 0:
	case shares:
		list[cardNumbers], list[cardCores], list[cardMemory] = whole(n.GPUs*cardShares), whole(n.GPUs*cardShares), whole(n.GPUs*fragment.Whole)
	default:
		list[gpuResource] = whole(n.GPUs)
	}
	return list
}

func whole(n int) resource.Quantity { return *resource.NewQuantity(int64(n), resource.DecimalSI) }

func amounts(milliCPU, memoryMiB int64) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(milliCPU, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(memoryMiB<<20, resource.BinarySI),
	}
}

// queueOf is a queue that is due so many machines; partitioned: and may have no more.
func queueOf(q trace.Queue, machine corev1.ResourceList, partitioned bool) *volcano.Queue {
	due := corev1.ResourceList{}
	for name, each := range machine {
		each.Mul(int64(q.Nodes))
		due[name] = each
	}
	queue := &volcano.Queue{
		ObjectMeta: metav1.ObjectMeta{Name: q.Name},
		Spec:       volcano.QueueSpec{Weight: max(1, int32(q.Nodes)), Reclaimable: new(true), Deserved: due}, //nolint:gosec // queues have few nodes
	}
	if partitioned {
		queue.Spec.Capability = due
	}
	return queue
}

// hyperNodes are the switches above nodes: those next to the nodes are of tier 1.
func hyperNodes(nodes []trace.Node) []*topology.HyperNode {
	known := map[string]*topology.HyperNode{}
	var all []*topology.HyperNode
	for _, n := range nodes {
		member := topology.MemberSpec{Type: topology.MemberTypeNode, Selector: exactly(n.Name)}
		for tier := 1; tier <= len(n.Network); tier++ {
			name := switchName(n, tier)
			h, ok := known[name]
			if !ok {
				h = &topology.HyperNode{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: topology.HyperNodeSpec{Tier: tier}}
				known[name] = h
				all = append(all, h)
			}
			h.Spec.Members = append(h.Spec.Members, member)
			if ok {
				// It is below those above it already.
				break
			}
			member = topology.MemberSpec{Type: topology.MemberTypeHyperNode, Selector: exactly(name)}
		}
	}
	return all
}

// switchName is the name of the switch of a tier above a node. Switches below different ones may have the same name in a trace.
func switchName(n trace.Node, tier int) string {
	return strings.ToLower(strings.Join(n.Network[:len(n.Network)+1-tier], "-"))
}

func exactly(name string) topology.MemberSelector {
	return topology.MemberSelector{ExactMatch: &topology.ExactMatch{Name: name}}
}

// attempt is a job that was submitted, or submitted again after it was evicted.
type attempt struct {
	job    int
	number int
}

// name is that of the attempt's PodGroup.
func (a attempt) name() string {
	name := "j" + strconv.Itoa(a.job)
	if a.number > 0 {
		name += "-" + strconv.Itoa(a.number)
	}
	return name
}

// pod is the name of a pod of the attempt.
func (a attempt) pod(i int) string { return a.name() + "-p" + strconv.Itoa(i) }

// group is the attempt's PodGroup.
func (a attempt) group(j trace.Job, t trace.Topology) *volcano.PodGroup {
	g := &volcano.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: a.name()},
		Spec:       volcano.PodGroupSpec{MinMember: int32(j.Workers), Queue: j.Queue}, //nolint:gosec // checked when it was read
		Status:     volcano.PodGroupStatus{Phase: volcano.PodGroupPending},
	}
	switch {
	case j.Workers == 1:
	case t.Mode == trace.Soft:
		g.Spec.NetworkTopology = &volcano.NetworkTopologySpec{Mode: volcano.SoftNetworkTopologyMode}
	case t.Mode == trace.Hard:
		g.Spec.NetworkTopology = &volcano.NetworkTopologySpec{Mode: volcano.HardNetworkTopologyMode, HighestTierAllowed: &t.Tier}
	}
	return g
}

// shape is what makes pods equal but for their names.
type shape struct {
	milliCPU, memoryMiB int64
	gpus, milliGPU      int
	models              string
}

// shapes are pods with all defaults, by shape.
type shapes struct {
	pods map[shape]*corev1.Pod
	// milliCPU and memoryMiB are what a pod gets for each GPU if the trace gives it none.
	milliCPU, memoryMiB float64
	scheduler           string
	// shares: jobs ask for parts of GPUs.
	shares bool
}

// usable is how much of a node's CPU and memory goes to pods that the trace gives none, by their GPUs. The node is the one with the least for each
// of its GPUs, so that GPUs are what is scarce.
const usable = 0.9

// withoutGPU is the CPU of a pod that asks for nothing in its trace, and memory in MiB.
const withoutGPU = 100

func newShapes(t *trace.Trace, scheduler string) *shapes {
	s := &shapes{pods: map[shape]*corev1.Pod{}, scheduler: scheduler, shares: t.Shares()}
	first := true
	for _, n := range t.Nodes {
		if n.GPUs == 0 {
			continue
		}
		cpu, memory := usable*float64(n.MilliCPU)/float64(n.GPUs), usable*float64(n.MemoryMiB)/float64(n.GPUs)
		if first {
			s.milliCPU, s.memoryMiB, first = cpu, memory, false
		}
		s.milliCPU, s.memoryMiB = min(s.milliCPU, cpu), min(s.memoryMiB, memory)
	}
	return s
}

// of returns a pod of a job with all defaults and without a name, which is not to be changed.
func (s *shapes) of(j trace.Job) (*corev1.Pod, error) {
	key := shape{milliCPU: s.cpuOf(j), memoryMiB: s.memoryOf(j), gpus: j.GPUs, milliGPU: j.MilliGPU, models: strings.Join(j.Models, "|")}
	if p, ok := s.pods[key]; ok {
		return p, nil
	}
	asks := s.asks(key)
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "template", Annotations: map[string]string{}},
		Spec: corev1.PodSpec{
			SchedulerName: s.scheduler,
			RestartPolicy: corev1.RestartPolicyNever,
			Containers: []corev1.Container{{
				Name: "worker", Image: "none",
				Resources: corev1.ResourceRequirements{Requests: asks, Limits: asks},
			}},
		},
	}
	switch {
	case len(j.Models) == 0:
	case s.shares:
		p.Annotations[model.GPUTypeAnnotation] = strings.Join(j.Models, ",")
	default:
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: modelLabel, Operator: corev1.NodeSelectorOpIn, Values: j.Models}},
			}},
		}}}
	}
	if _, err := scenario.Complete([]scenario.Sourced{{Object: p, Source: "a pod of the trace"}}, time.Time{}); err != nil {
		return nil, err
	}
	s.pods[key] = p
	return p, nil
}

// asks is what a pod of a shape asks for.
func (s *shapes) asks(k shape) corev1.ResourceList {
	list := amounts(k.milliCPU, k.memoryMiB)
	switch {
	case k.gpus == 0:
	case s.shares:
		// Cores, which a pod gets all of only on a card that it has alone, are in percent; memory is in thousandths of a card.
		list[cardNumbers], list[cardCores], list[cardMemory] = whole(k.gpus), whole(k.milliGPU*cardShares/fragment.Whole), whole(k.milliGPU)
	default:
		list[gpuResource] = whole(k.gpus)
	}
	return list
}

// podOf makes a pod of an attempt from one of its shape.
func (a attempt) podOf(like *corev1.Pod, i int) *corev1.Pod {
	p := *like
	annotations := maps.Clone(like.Annotations)
	annotations[volcano.KubeGroupNameAnnotationKey] = a.name()
	// Where evictions are on, everybody may be evicted.
	annotations[volcano.PodPreemptable] = "true"
	p.ObjectMeta = metav1.ObjectMeta{Namespace: namespace, Name: a.pod(i), UID: types.UID(a.pod(i)), Annotations: annotations}
	return &p
}

// tellEnd says on a pod how long it will run, to the second; 0 is for ever.
func tellEnd(p *corev1.Pod, ends trace.Ends, lasts time.Duration) {
	seconds := int64(math.Ceil(lasts.Seconds()))
	switch {
	case seconds == 0:
	case ends == trace.Enforced:
		p.Spec.ActiveDeadlineSeconds = &seconds
	case ends == trace.Declared:
		p.Annotations[model.ExpectedRuntimeAnnotation] = (time.Duration(seconds) * time.Second).String()
	}
}

// cpuOf is the CPU of a pod of a job, in thousandths of a core.
func (s *shapes) cpuOf(j trace.Job) int64 {
	if j.MilliCPU >= 0 {
		return j.MilliCPU
	}
	return max(withoutGPU, int64(s.milliCPU*float64(j.GPUs)))
}

// memoryOf is its memory in MiB.
func (s *shapes) memoryOf(j trace.Job) int64 {
	if j.MemoryMiB >= 0 {
		return j.MemoryMiB
	}
	return max(withoutGPU, int64(s.memoryMiB*float64(j.GPUs)))
}
