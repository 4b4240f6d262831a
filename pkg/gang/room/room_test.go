// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package room_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/caldera-scheduler/caldera/pkg/gang/room"
	"github.com/caldera-scheduler/caldera/pkg/model"
)

var all = room.Checks{Resources: true, Affinity: true, Taints: true, Unschedulable: true}

const (
	zone = "zone"
	gpu  = "nvidia.com/gpu"
)

// draw makes random nodes and pods.
type draw struct{ *rapid.T }

func (t draw) oneOf(label string, values ...string) string {
	return rapid.SampledFrom(values).Draw(t.T, label)
}

func (t draw) node(name string) *corev1.Node {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{zone: t.oneOf("zone", "a", "b")}},
		Spec:       corev1.NodeSpec{Unschedulable: rapid.IntRange(0, 9).Draw(t.T, "cordoned") == 0},
		Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
			corev1.ResourceCPU:  resource.MustParse(t.oneOf("cpu", "2", "8")),
			corev1.ResourcePods: resource.MustParse(t.oneOf("pods", "3", "110")),
		}},
	}
	if gpus := t.oneOf("gpus", "", "0", "4"); gpus != "" {
		n.Status.Allocatable[gpu] = resource.MustParse(gpus)
	}
	if taint := t.oneOf("taint", "", "", "red", "blue"); taint != "" {
		n.Spec.Taints = []corev1.Taint{{Key: "colour", Value: taint, Effect: corev1.TaintEffectNoSchedule}}
	}
	return n
}

func (t draw) pod(name string) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"},
		Spec: corev1.PodSpec{SchedulerName: "volcano", Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(t.oneOf("ask cpu", "0", "1", "3"))},
		}}}},
	}
	if gpus := t.oneOf("ask gpus", "", "1", "2"); gpus != "" {
		p.Spec.Containers[0].Resources.Requests[gpu] = resource.MustParse(gpus)
	}
	if z := t.oneOf("ask zone", "", "a", "c"); z != "" {
		p.Spec.NodeSelector = map[string]string{zone: z}
	}
	switch colour := t.oneOf("tolerate", "", "red", "all"); colour {
	case "":
	case "all":
		p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	default:
		p.Spec.Tolerations = []corev1.Toleration{{Key: "colour", Value: colour}}
	}
	return p
}

// TestPlacesAreThoseOfACountOfAllNodes changes nodes, pods and vetoes at random and compares with an index that has just counted.
func TestPlacesAreThoseOfACountOfAllNodes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		draw := draw{rt}
		state := model.NewState()
		touched := map[string]bool{}
		state.Observe(func(c model.Change) {
			for _, name := range c.Touched {
				touched[name] = true
			}
		})
		index := room.New(func(string) room.Checks { return all })
		var shapes []*room.Shape
		var pods []*corev1.Pod
		vetoed := map[*room.Shape]map[string]bool{}
		name := func() string { return fmt.Sprintf("node-%d", rapid.IntRange(0, 4).Draw(rt, "node")) }
		rt.Repeat(map[string]func(*rapid.T){
			"a shape comes": func(*rapid.T) {
				p := draw.pod("p")
				task := model.NewTask(p)
				s := index.Follow(task.Shape, p, task.Request)
				if vetoed[s] == nil {
					shapes, pods, vetoed[s] = append(shapes, s), append(pods, p), map[string]bool{}
				}
			},
			"a node comes or changes": func(*rapid.T) { state.UpsertNode(draw.node(name())) },
			"a node goes":             func(*rapid.T) { state.DeleteNode(name()) },
			"a pod comes": func(*rapid.T) {
				p := draw.pod("bound")
				p.UID = types.UID(fmt.Sprintf("bound-%d", rapid.IntRange(0, 9).Draw(rt, "bound")))
				p.Spec.NodeName = name()
				state.UpsertPod(p)
			},
			"a shape is vetoed": func(*rapid.T) {
				if len(shapes) == 0 {
					return
				}
				s, n := rapid.SampledFrom(shapes).Draw(rt, "shape"), name()
				index.Veto(s, []string{n})
				if vetoed[s][n] = true; touched[n] {
					// What is to be counted yet has it fall.
					delete(vetoed[s], n)
				}
			},
			"": func(*rapid.T) {
				for n := range touched {
					index.Set(n, state.Room(n), true)
					for _, s := range shapes {
						delete(vetoed[s], n)
					}
				}
				clear(touched)
				for i, s := range shapes {
					rooms := state.Rooms()
					for n := range vetoed[s] {
						delete(rooms, n)
					}
					fresh := room.New(func(string) room.Checks { return all })
					fresh.Reset(rooms)
					task := model.NewTask(pods[i])
					if got, want := s.Places(), fresh.Follow(task.Shape, pods[i], task.Request).Places(); got != want {
						rt.Fatalf("%d places for shape %d, want %d", got, i, want)
					}
				}
			},
		})
	})
}

func TestPlaces(t *testing.T) {
	node := func(change func(*corev1.Node)) model.Room {
		n := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{zone: "a"}},
			Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourcePods: resource.MustParse("5"),
			}},
		}
		change(n)
		state := model.NewState()
		state.UpsertNode(n)
		return state.Room("n")
	}
	pod := func(cpu string, change func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)},
		}}}}}
		change(p)
		return p
	}
	plainNode, plainPod := func(*corev1.Node) {}, func(*corev1.Pod) {}
	cordoned := func(n *corev1.Node) { n.Spec.Unschedulable = true }
	tainted := func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: "colour", Value: "red", Effect: corev1.TaintEffectNoExecute}}
	}
	for name, tc := range map[string]struct {
		checks room.Checks
		node   func(*corev1.Node)
		pod    *corev1.Pod
		want   int
	}{
		"by the resource that allows fewest":   {all, plainNode, pod("3", plainPod), 2},
		"by the number of pods":                {all, plainNode, pod("1", plainPod), 5},
		"on a cordoned node":                   {all, cordoned, pod("3", plainPod), 0},
		"on a cordoned node, where none looks": {room.Checks{Resources: true}, cordoned, pod("3", plainPod), 2},
		"on a tainted node":                    {all, tainted, pod("3", plainPod), 0},
		"on a tainted node that is tolerated": {all, tainted, pod("3", func(p *corev1.Pod) {
			p.Spec.Tolerations = []corev1.Toleration{{Key: "colour", Value: "red"}}
		}), 2},
		"a taint that only prefers": {all, func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "colour", Effect: corev1.TaintEffectPreferNoSchedule}}
		}, pod("3", plainPod), 2},
		"elsewhere": {all, plainNode, pod("3", func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{zone: "b"} }), 0},
		"a device that the node does not list may come from a claim": {all, plainNode, pod("3", func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests[gpu] = resource.MustParse("1")
		}), 2},
		"more than the node has": {all, plainNode, pod("9", plainPod), 0},
	} {
		t.Run(name, func(t *testing.T) {
			index := room.New(func(string) room.Checks { return tc.checks })
			index.Reset(map[string]model.Room{"n": node(tc.node)})
			task := model.NewTask(tc.pod)
			if got := index.Follow(task.Shape, tc.pod, task.Request).Places(); got != tc.want {
				t.Errorf("%d places, want %d", got, tc.want)
			}
		})
	}
}

func TestGained(t *testing.T) {
	const none, some, more = "nothing", "room", "more places"
	index := room.New(func(string) room.Checks { return all })
	p := &corev1.Pod{Spec: corev1.PodSpec{NodeSelector: map[string]string{zone: "a"}}}
	task := model.NewTask(p)
	shape := index.Follow(task.Shape, p, task.Request)
	set := func(z, pods string, made bool) {
		state := model.NewState()
		state.UpsertNode(&corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{zone: z}},
			Status:     corev1.NodeStatus{Allocatable: corev1.ResourceList{corev1.ResourcePods: resource.MustParse(pods)}},
		})
		index.Set("n", state.Room("n"), made)
	}
	want := func(what, gains string) {
		t.Helper()
		got := none
		for _, gained := range index.Gained {
			if got = some; gained {
				got = more
			}
		}
		if got != gains {
			t.Errorf("%s: it gains %s, want %s", what, got, gains)
		}
	}
	set("b", "5", true)
	want("a node elsewhere", none)
	set("a", "5", false)
	want("the node is relabelled", more)
	set("a", "4", false)
	want("the node shrinks", none)
	set("a", "4", true)
	want("room came, and nobody listens", none)
	shape.Listen()
	set("a", "4", false)
	want("the node changes", none)
	set("a", "4", true)
	want("room came, and was gone when it was last counted", some)
	set("a", "4", true)
	want("room came, and nobody listens any more", none)
	shape.Listen()
	set("a", "5", true)
	set("a", "5", true)
	want("there are more places, and room came", more)
	shape.Listen()
	set("a", "0", true)
	want("room came, and is gone", none)
	set("a", "4", false)
	want("it is back", more)
	index.Veto(shape, []string{"n"})
	want("the node is vetoed", none)
	set("a", "4", false)
	want("the node changes, and the veto falls", more)
	index.Veto(shape, []string{"n"})
	index.Reconsider()
	want("all vetoes fall", more)
	index.Set("n", model.Room{}, false)
	want("the node goes", none)
	if shape.Places() != 0 {
		t.Errorf("%d places without nodes", shape.Places())
	}
	index.Unfollow(shape)
	if index.Len() != 0 {
		t.Error("a shape is counted that nobody waits for")
	}
}
