// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

const gpu = "nvidia.com/gpu"

// gpuNode returns a node with so many devices, besides what every node has, changed by the options.
func gpuNode(name string, devices int, options ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Allocatable: amounts(
		"cpu", "64", "memory", "256Gi", "pods", "110", "hugepages-2Mi", "1Gi", "example.kubernetes.io/own", "3", gpu, fmt.Sprint(devices),
	)}}
	for _, change := range options {
		change(n)
	}
	return n
}

func cordoned(n *corev1.Node) { n.Spec.Unschedulable = true }

func readiness(status corev1.ConditionStatus) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse}, {Type: corev1.NodeReady, Status: status}}
	}
}

func TestSlotsAreCountedNodeByNode(t *testing.T) {
	holding := func(name, node string, devices int, options ...func(*corev1.Pod)) *corev1.Pod {
		return newPod(name, append([]func(*corev1.Pod){asking(gpu, fmt.Sprint(devices)), on(node), phase(corev1.PodRunning)}, options...)...)
	}
	for name, tc := range map[string]struct {
		nodes []*corev1.Node
		pods  []*corev1.Pod
		// want is by the sizes 1, 2, 4 and 8.
		want []int64
	}{
		"nothing is taken": {[]*corev1.Node{gpuNode("a", 8), gpuNode("b", 8)}, nil, []int64{16, 8, 4, 2}},
		"what is left of two nodes does not add up": {
			[]*corev1.Node{gpuNode("a", 8), gpuNode("b", 8)},
			[]*corev1.Pod{holding("x", "a", 3), holding("y", "b", 1)},
			[]int64{12, 5, 2, 0},
		},
		"pods of other schedulers take room, too": {
			[]*corev1.Node{gpuNode("a", 8)}, []*corev1.Pod{holding("x", "a", 1, of("default-scheduler"))}, []int64{7, 3, 1, 0},
		},
		"a node that is cordoned has no room": {
			[]*corev1.Node{gpuNode("a", 8, cordoned), gpuNode("b", 2)}, nil, []int64{2, 1, 0, 0},
		},
		"nor has one that is not ready":      {[]*corev1.Node{gpuNode("a", 8, readiness(corev1.ConditionFalse))}, nil, []int64{0, 0, 0, 0}},
		"nor one of which nothing is known":  {[]*corev1.Node{gpuNode("a", 8, readiness(corev1.ConditionUnknown))}, nil, []int64{0, 0, 0, 0}},
		"a node that says that it is ready":  {[]*corev1.Node{gpuNode("a", 8, readiness(corev1.ConditionTrue))}, nil, []int64{8, 4, 2, 1}},
		"more is held than there is":         {[]*corev1.Node{gpuNode("a", 2), gpuNode("b", 1)}, []*corev1.Pod{holding("x", "a", 8)}, []int64{1, 0, 0, 0}},
		"a pod on a node that is not known":  {[]*corev1.Node{gpuNode("a", 1)}, []*corev1.Pod{holding("x", "b", 8)}, []int64{1, 0, 0, 0}},
		"a pod that has ended takes no room": {[]*corev1.Node{gpuNode("a", 2)}, []*corev1.Pod{holding("x", "a", 1, phase(corev1.PodSucceeded))}, []int64{2, 1, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newState()
			for _, n := range tc.nodes {
				s.UpsertNode(n)
			}
			for _, p := range tc.pods {
				s.UpsertPod(p)
			}
			want := map[corev1.ResourceName][]int64{gpu: tc.want}
			if diff := cmp.Diff(want, s.Slots(1, 2, 4, 8)); diff != "" {
				t.Errorf("(-want,+got)\n%s", diff)
			}
		})
	}
}

// TestWhatIsKeptForTasksIsNoSlot: others cannot use it.
func TestWhatIsKeptForTasksIsNoSlot(t *testing.T) {
	s := newState()
	s.UpsertNode(gpuNode("a", 8))
	waits := newPod("waits", asking(gpu, "3"), func(p *corev1.Pod) { p.Status.NominatedNodeName = "a" })
	s.UpsertPod(waits)
	if got := s.Slots(1)[gpu]; got[0] != 5 {
		t.Errorf("%d pods of one device fit beside what is kept of three, want 5", got[0])
	}
	s.DeletePod(waits.UID)
	if got := s.Slots(1)[gpu]; got[0] != 8 {
		t.Errorf("%d pods of one device fit, want 8", got[0])
	}
}

// TestSlotsAgainstASum compares with a plain sum over random nodes and pods.
func TestSlotsAgainstASum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newState()
		var want [4]int64
		for i := range rapid.IntRange(0, 6).Draw(t, "nodes") {
			has, name := rapid.IntRange(1, 16).Draw(t, "has"), fmt.Sprint("n", i)
			s.UpsertNode(gpuNode(name, has))
			left := has
			for k := range rapid.IntRange(0, 4).Draw(t, "pods") {
				asks := rapid.IntRange(0, 6).Draw(t, "asks")
				s.UpsertPod(newPod(fmt.Sprint(name, "-", k), asking(gpu, fmt.Sprint(asks)), on(name)))
				left -= asks
			}
			for k, size := range []int{1, 2, 4, 8} {
				want[k] += int64(max(0, left) / size)
			}
		}
		got := s.Slots(1, 2, 4, 8)[gpu]
		if got == nil {
			got = make([]int64, 4)
		}
		if diff := cmp.Diff(want[:], got); diff != "" {
			t.Errorf("(-want,+got)\n%s", diff)
		}
	})
}

// BenchmarkSlots counts the slots of 5,000 nodes of eight devices with eight conditions each, half of whose devices are taken.
func BenchmarkSlots(b *testing.B) {
	s := newState()
	for i := range 5000 {
		name := fmt.Sprint("node-", i)
		s.UpsertNode(gpuNode(name, 8, func(n *corev1.Node) {
			for range 7 {
				n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse})
			}
			n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue})
		}))
		for k := range 4 {
			p := newPod(fmt.Sprint(name, "-", k), asking("cpu", "1", gpu, "1"), on(name))
			p.UID = types.UID(p.Name)
			s.UpsertPod(p)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		s.Slots(1, 2, 4, 8)
	}
}

// TestAJobThatStartsIsToldOnce: when it has been bound with its minimum for the first time, by a process that decides.
func TestAJobThatStartsIsToldOnce(t *testing.T) {
	bound := func(p *corev1.Pod) { p.Spec.NodeName = "node-0" }
	group := func(s *model.State) {
		s.UpsertGroup(train, &model.Group{UID: "u", MinMember: 2, Queue: "research", Created: epoch.Add(-1)})
	}
	pods := func(n int, options ...func(*corev1.Pod)) func(*model.State) {
		return func(s *model.State) {
			for _, p := range members("w", n, options...) {
				s.UpsertPod(p)
			}
		}
	}
	alone := func(options ...func(*corev1.Pod)) func(*model.State) {
		return func(s *model.State) { s.UpsertPod(newPod("alone", options...)) }
	}
	gone := func(s *model.State) {
		for _, p := range members("w", 2) {
			s.DeletePod(p.UID)
		}
	}
	type steps = []func(*model.State)
	ofGroup := model.Started{Job: train, Queue: "research", Created: epoch.Add(-1)}
	ofPod := model.Started{Job: model.JobKey{Source: model.FromPod, Namespace: "ns", Name: "alone"}, Queue: model.DefaultQueue, Created: epoch}
	for name, tc := range map[string]struct {
		before, steps steps
		want          []model.Started
	}{
		"a gang":                               {nil, steps{group, pods(2), pods(1, bound), pods(2, bound)}, []model.Started{ofGroup}},
		"of which a member is missing":         {nil, steps{group, pods(2), pods(1, bound)}, nil},
		"whose members run later":              {nil, steps{group, pods(2, bound), pods(2, running)}, []model.Started{ofGroup}},
		"that was there before":                {steps{group, pods(2, running)}, steps{pods(2, running)}, nil},
		"that starts once more":                {nil, steps{group, pods(2, running), gone, pods(2, running)}, []model.Started{ofGroup}},
		"that was there, and starts once more": {steps{group, pods(2, running)}, steps{gone, pods(2, running)}, nil},
		"another one of its name": {nil, steps{group, pods(2, running), gone, func(s *model.State) {
			s.UpsertGroup(train, &model.Group{UID: "v", MinMember: 2, Queue: "research", Created: epoch.Add(-1)})
		}, pods(2, running)}, []model.Started{ofGroup, ofGroup}},
		"a pod of its own":           {nil, steps{alone(), alone(bound), alone(running)}, []model.Started{ofPod}},
		"a pod of its own that ends": {nil, steps{alone(), alone(bound), alone(succeeded)}, []model.Started{ofPod}},
		"pods without their group":   {nil, steps{pods(2, running)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := newState()
			for _, step := range tc.before {
				step(s)
			}
			s.Lead()
			var got []model.Started
			s.Observe(func(c model.Change) { got = append(got, c.Started...) })
			for _, step := range tc.steps {
				step(s)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want,+got)\n%s", diff)
			}
		})
	}
}

// TestAReservationIsNoStart: its bind may be refused.
func TestAReservationIsNoStart(t *testing.T) {
	s := newState()
	s.Lead()
	s.UpsertPod(newPod("alone"))
	var started int
	s.Observe(func(c model.Change) { started += len(c.Started) })
	if s.Assume("alone", "node-0"); started != 0 {
		t.Error("a pod with a reservation has started")
	}
	if s.UpsertPod(newPod("alone", on("node-0"))); started != 1 {
		t.Errorf("it has started %d times when it is bound, want once", started)
	}
}

// newState returns a model whose tasks are the pods of the batch scheduler.
func newState() *model.State {
	s := model.NewState()
	s.AddScheduler(batch)
	return s
}
