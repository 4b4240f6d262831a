// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package card_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/caldera-scheduler/caldera/pkg/plugins/deviceshare/card"
)

type limits map[corev1.ResourceName]int64

// pod is a pod with a container for each set of limits.
func pod(name string, containers ...limits) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Annotations: map[string]string{}, Labels: map[string]string{}}}
	for i, limits := range containers {
		list := corev1.ResourceList{}
		for resourceName, n := range limits {
			list[resourceName] = *resource.NewQuantity(n, resource.DecimalSI)
		}
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{
			Name: fmt.Sprintf("c%d", i), Resources: corev1.ResourceRequirements{Limits: list},
		})
	}
	return p
}

// with adds annotations to a pod.
func with(p *corev1.Pod, annotations ...string) *corev1.Pod {
	for i := 0; i < len(annotations); i += 2 {
		p.Annotations[annotations[i]] = annotations[i+1]
	}
	return p
}

// node has resources and an annotation.
func node(has limits, annotation, value string) *corev1.Node {
	list := corev1.ResourceList{}
	for resourceName, n := range has {
		list[resourceName] = *resource.NewQuantity(n, resource.DecimalSI)
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n", Annotations: map[string]string{annotation: value}},
		Status:     corev1.NodeStatus{Capacity: list, Allocatable: list},
	}
}

// gpus has four cards of 8000 each.
func gpus(unhealthy string) *corev1.Node {
	return node(limits{"volcano.sh/gpu-memory": 32000, "volcano.sh/gpu-number": 4}, "volcano.sh/gpu-unhealthy-ids", unhealthy)
}

// vgpus has cards.
func vgpus(cards ...string) *corev1.Node {
	return node(limits{"volcano.sh/vgpu-number": 40, "volcano.sh/vgpu-memory": 100000, "volcano.sh/vgpu-cores": 400},
		"volcano.sh/node-vgpu-register", strings.Join(cards, ":")+":")
}

// vgpu are the limits of a container with vGPUs.
func vgpu(number, memory, cores int64) limits {
	return limits{"volcano.sh/vgpu-number": number, "volcano.sh/vgpu-memory": memory, "volcano.sh/vgpu-cores": cores}
}

// recorded is a pod whose annotations say what it has.
func recorded(p *corev1.Pod, ids string) *corev1.Pod {
	return with(p, "volcano.sh/vgpu-node", "n", "volcano.sh/vgpu-ids-new", ids)
}

func nothing(*corev1.Pod) (card.Assignment, bool) { return nil, false }

// choose tells what a pod gets: its cards by container with their memory and cores, or why it gets none.
func choose(t *testing.T, mode card.Mode, on *corev1.Node, pods []*corev1.Pod, p *corev1.Pod) string {
	t.Helper()
	for _, p := range pods {
		p.Spec.NodeName = "n"
	}
	cards, err := card.Taken(mode, on, pods, nothing)
	if err != nil {
		return err.Error()
	}
	choice, reason := mode.Choose(p, cards)
	if reason != "" {
		return reason
	}
	var containers []string
	for _, container := range choice.Assignment {
		var given []string
		for _, s := range container {
			given = append(given, fmt.Sprintf("%s:%d/%d", s.Card, s.Memory, s.Cores))
		}
		containers = append(containers, strings.Join(given, ","))
	}
	return strings.Join(containers, ";")
}

func TestGPUs(t *testing.T) {
	const memory, number corev1.ResourceName = "volcano.sh/gpu-memory", "volcano.sh/gpu-number"
	init := pod("init", limits{memory: 1000}, limits{memory: 1000})
	init.Spec.InitContainers = pod("", limits{memory: 5000}).Spec.Containers
	ended := with(pod("ended", limits{number: 1}), "volcano.sh/gpu-index", "0")
	ended.Status.Phase = corev1.PodSucceeded
	for name, tc := range map[string]struct {
		whole     bool
		unhealthy string
		on        []*corev1.Pod
		pod       *corev1.Pod
		want      string
	}{
		"a card with enough memory, the lowest": {
			on: []*corev1.Pod{
				with(pod("a", limits{memory: 6000}), "volcano.sh/gpu-index", "0"), with(pod("b", limits{memory: 1000}), "volcano.sh/gpu-index", "1"),
			},
			pod: pod("p", limits{memory: 3000}), want: "1:3000/0",
		},
		"memory of several cards does not add up": {
			pod: pod("p", limits{memory: 10000}), want: "GpuShare no enough gpu memory on node: no card has 10000 free",
		},
		"all containers together":                  {pod: pod("p", limits{memory: 5000}, limits{memory: 4000}), want: "GpuShare no enough gpu memory on node: no card has 9000 free"},
		"an init container that asks for more":     {on: []*corev1.Pod{with(pod("a", limits{memory: 4000}), "volcano.sh/gpu-index", "0")}, pod: init, want: "1:5000/0"},
		"an unhealthy card":                        {unhealthy: "0, 2", pod: pod("p", limits{memory: 1}), want: "1:1/0"},
		"an annotation that cannot be read":        {unhealthy: "zero", pod: pod("p", limits{memory: 1}), want: `annotation volcano.sh/gpu-unhealthy-ids of the node is "zero", want numbers of cards such as 0,2`},
		"a pod without annotations has a card":     {on: []*corev1.Pod{pod("a", limits{memory: 8000})}, pod: pod("p", limits{memory: 1}), want: "1:1/0"},
		"a pod with whole cards shares none":       {on: []*corev1.Pod{with(pod("a", limits{number: 2}), "volcano.sh/gpu-index", "0,1")}, pod: pod("p", limits{memory: 1}), want: "2:1/0"},
		"whole cards, the lowest":                  {whole: true, on: []*corev1.Pod{with(pod("a", limits{number: 1}), "volcano.sh/gpu-index", "1")}, pod: pod("p", limits{number: 2}), want: "0:0/0,2:0/0"},
		"too few whole cards":                      {whole: true, on: []*corev1.Pod{with(pod("a", limits{number: 1}), "volcano.sh/gpu-index", "1")}, pod: pod("p", limits{number: 4}), want: "GpuNumber no enough gpu number on node: fewer than 4 cards without a pod"},
		"pods that have ended have no cards":       {whole: true, on: []*corev1.Pod{ended}, pod: pod("p", limits{number: 1}), want: "0:0/0"},
		"an annotation of a pod that is no number": {whole: true, on: []*corev1.Pod{with(pod("a", limits{number: 1}), "volcano.sh/gpu-index", "x")}, pod: pod("p", limits{number: 1}), want: "1:0/0"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, choose(t, card.GPU{Whole: tc.whole}, gpus(tc.unhealthy), tc.on, tc.pod)); diff != "" {
				t.Errorf("(-want,+got)\n%s", diff)
			}
		})
	}
}

func TestVGPUs(t *testing.T) {
	const small, large, last = "s,10,8000,NVIDIA-T4,true,hami-core", "l,10,30000,NVIDIA-A100,true,hami-core", "z,2,8000,NVIDIA-T4,true,hami-core"
	gold := func(p *corev1.Pod) *corev1.Pod {
		p.Labels = map[string]string{"tier": "gold", "app": p.Name}
		return p
	}
	grouped := func(p *corev1.Pod) *corev1.Pod { return with(p, "scheduling.k8s.io/group-name", "g") }
	spreading := func(p *corev1.Pod) *corev1.Pod { return with(p, "volcano.sh/vgpu-podgroup-policy", "spread") }
	rules := []map[string]string{{"tier": "gold"}, {"tier": "silver"}}
	for name, tc := range map[string]struct {
		mode  card.VGPU
		cards []string
		on    []*corev1.Pod
		pod   *corev1.Pod
		want  string
	}{
		"the highest index first":     {cards: []string{small, last}, pod: pod("p", vgpu(1, 1000, 10)), want: "z:1000/10"},
		"different cards":             {cards: []string{small, last}, pod: pod("p", vgpu(2, 1000, 10)), want: "z:1000/10,s:1000/10"},
		"more than there are":         {cards: []string{small, last}, pod: pod("p", vgpu(3, 1000, 10)), want: "hami-vgpuDeviceSharing error: fewer than 3 card(s) left for container c0"},
		"memory alone is of one card": {cards: []string{small}, pod: pod("p", vgpu(0, 1000, 0)), want: "s:1000/0"},
		"no memory is all of it":      {cards: []string{small}, pod: pod("p", vgpu(1, 0, 0)), want: "s:8000/0"},
		"a percentage": {cards: []string{small}, pod: pod("p", limits{
			"volcano.sh/vgpu-number": 1, "volcano.sh/vgpu-memory-percentage": 25,
		}), want: "s:2000/0"},
		"all cores of three cards of different sizes": {
			cards: []string{small, large, last}, pod: pod("p", vgpu(3, 0, 100)), want: "z:8000/100,l:30000/100,s:8000/100",
		},
		"two containers may share a card, one has none": {
			cards: []string{small}, pod: pod("p", vgpu(1, 1000, 0), limits{}, vgpu(1, 2000, 0)), want: "s:1000/0;;s:2000/0",
		},
		"what two containers have of one card counts twice": {
			cards: []string{last}, on: []*corev1.Pod{recorded(pod("a", vgpu(1, 3000, 30), vgpu(1, 3000, 30)), "z,NVIDIA,3000,30:;z,NVIDIA,3000,30:;")},
			pod: pod("p", vgpu(1, 1000, 0)), want: "hami-vgpuDeviceSharing error: fewer than 1 card(s) left for container c0, all shares are taken",
		},
		"too little memory, on one card, and too few cores on the other": {
			cards: []string{small, large}, on: []*corev1.Pod{recorded(pod("a", vgpu(1, 1, 60)), "l,NVIDIA,1,60:;")}, pod: pod("p", vgpu(1, 9000, 50)),
			want: "hami-vgpuDeviceSharing error: fewer than 1 card(s) left for container c0, too few cores, too little memory",
		},
		"all cores of a card with a user of none": {
			cards: []string{small}, on: []*corev1.Pod{recorded(pod("a", vgpu(1, 1, 0)), "s,NVIDIA,1,0:;")}, pod: pod("p", vgpu(1, 1, 100)),
			want: "hami-vgpuDeviceSharing error: fewer than 1 card(s) left for container c0, in use, and all cores are asked for",
		},
		"no cores of a card whose cores are all taken": {
			cards: []string{small}, on: []*corev1.Pod{recorded(pod("a", vgpu(1, 1, 100)), "s,NVIDIA,1,100:;")}, pod: pod("p", vgpu(1, 1, 0)),
			want: "hami-vgpuDeviceSharing error: fewer than 1 card(s) left for container c0, too few cores",
		},
		"binpack begins with the fullest card": {
			mode: card.VGPU{Order: card.Binpack}, cards: []string{small, large, last},
			on: []*corev1.Pod{recorded(pod("a", vgpu(1, 1, 0)), "s,NVIDIA,1,0:;")}, pod: pod("p", vgpu(2, 1, 0)), want: "s:1/0,z:1/0",
		},
		"spread begins with the one with the fewest users": {
			mode: card.VGPU{Order: card.Spread}, cards: []string{small, large, last},
			on: []*corev1.Pod{recorded(pod("a", vgpu(1, 1, 0)), "z,NVIDIA,1,0:;")}, pod: pod("p", vgpu(1, 1, 0)), want: "l:1/0",
		},
		"a part of a type, in any case": {cards: []string{small, large, last}, pod: with(pod("p", vgpu(1, 1, 0)), "nvidia.com/use-gputype", "v100, a100"), want: "l:1/0"},
		"not a type":                    {cards: []string{small, large, last}, pod: with(pod("p", vgpu(1, 1, 0)), "nvidia.com/nouse-gputype", "t4"), want: "l:1/0"},
		"a UUID":                        {cards: []string{small, large, last}, pod: with(pod("p", vgpu(1, 1, 0)), "volcano.sh/vgpu-use-gpuuuid", "x,s"), want: "s:1/0"},
		"not a UUID":                    {cards: []string{small, large}, pod: with(pod("p", vgpu(1, 1, 0)), "volcano.sh/vgpu-nouse-gpuuuid", "l"), want: "s:1/0"},
		"no card is wanted": {
			cards: []string{small}, pod: with(pod("p", vgpu(1, 1, 0)), "volcano.sh/vgpu-use-gpuuuid", "x"),
			want: "hami-vgpuDeviceSharing error: fewer than 1 card(s) left for container c0, not of a type or UUID that the pod accepts",
		},
		"unhealthy cards keep their index": {cards: []string{small, "u,10,8000,T4,false,hami-core"}, pod: pod("p", vgpu(1, 1, 0)), want: "s:1/0"},
		"a card in MIG mode": {
			cards: []string{"m,10,8000,T4,true,mig"}, pod: pod("p", vgpu(1, 1, 0)),
			want: "hami-vgpuDeviceSharing error: fewer than 1 card(s) left for container c0, MIG mode is not supported",
		},
		"a device plugin that tells no mode": {cards: []string{"o,10,8000,T4,true"}, pod: pod("p", vgpu(1, 1, 0)), want: "o:1/0"},
		"an entry that cannot be read": {
			cards: []string{"o,ten,8000,T4,true,hami-core"}, pod: pod("p", vgpu(1, 1, 0)),
			want: `annotation volcano.sh/node-vgpu-register of the node has "o,ten,8000,T4,true,hami-core", want uuid,shares,megabytes,type,health,mode`,
		},
		"pods of one exclusive rule share no card": {
			mode: card.VGPU{Exclusive: rules}, cards: []string{small, last},
			on: []*corev1.Pod{recorded(gold(pod("a", vgpu(1, 1, 0))), "z,NVIDIA,1,0:;")}, pod: gold(pod("p", vgpu(1, 1, 0))), want: "s:1/0",
		},
		"their containers do": {
			mode: card.VGPU{Exclusive: rules}, cards: []string{small}, pod: gold(pod("p", vgpu(1, 1, 0), vgpu(1, 1, 0))), want: "s:1/0;s:1/0",
		},
		"other pods share with them": {
			mode: card.VGPU{Exclusive: rules}, cards: []string{small, last},
			on: []*corev1.Pod{recorded(gold(pod("a", vgpu(1, 1, 0))), "z,NVIDIA,1,0:;")}, pod: pod("p", vgpu(1, 1, 0)), want: "z:1/0",
		},
		"no card without a pod of the rule": {
			mode: card.VGPU{Exclusive: rules}, cards: []string{last},
			on: []*corev1.Pod{recorded(gold(pod("a", vgpu(1, 1, 0))), "z,NVIDIA,1,0:;")}, pod: gold(pod("p", vgpu(1, 1, 0))),
			want: "hami-vgpuDeviceSharing error: fewer than 1 card(s) left for container c0, used by a pod of the same exclusive rule",
		},
		"pods of one PodGroup are spread if one asks for it": {
			cards: []string{small, last}, on: []*corev1.Pod{recorded(grouped(pod("a", vgpu(1, 1, 0))), "z,NVIDIA,1,0:;")},
			pod: spreading(grouped(pod("p", vgpu(1, 1, 0)))), want: "s:1/0",
		},
		"no card without a pod of the PodGroup": {
			cards: []string{last}, on: []*corev1.Pod{recorded(grouped(pod("a", vgpu(1, 1, 0))), "z,NVIDIA,1,0:;")},
			pod:  spreading(grouped(pod("p", vgpu(1, 1, 0)))),
			want: "hami-vgpuDeviceSharing error: fewer than 1 card(s) left for container c0, used by a pod of the same PodGroup",
		},
		"what annotations say of another node does not count": {
			cards: []string{last}, on: []*corev1.Pod{with(recorded(pod("a", vgpu(1, 8000, 0)), "z,NVIDIA,1,0:;"), "volcano.sh/vgpu-node", "other")},
			pod: pod("p", vgpu(1, 1, 0)), want: "hami-vgpuDeviceSharing error: fewer than 1 card(s) left for container c0, too little memory",
		},
		"a pod for which there was nothing has nothing": {
			cards: []string{small}, on: []*corev1.Pod{pod("a", vgpu(1, 1, 0), vgpu(1, 9000, 0))}, pod: pod("p", vgpu(1, 8000, 0)), want: "s:8000/0",
		},
		"annotations that cannot be read do not count": {
			cards: []string{last}, on: []*corev1.Pod{recorded(pod("a", vgpu(1, 8000, 0)), "z,NVIDIA")},
			pod: pod("p", vgpu(1, 1, 0)), want: "hami-vgpuDeviceSharing error: fewer than 1 card(s) left for container c0, too little memory",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, choose(t, tc.mode, vgpus(tc.cards...), tc.on, tc.pod)); diff != "" {
				t.Errorf("(-want,+got)\n%s", diff)
			}
		})
	}
}

func TestWhatPodsWant(t *testing.T) {
	for name, tc := range map[string]struct {
		mode  card.Mode
		pod   *corev1.Pod
		wants bool
		err   string
	}{
		"memory, where memory is given":          {mode: card.GPU{}, pod: pod("p", limits{"volcano.sh/gpu-memory": 1}), wants: true},
		"cards, where memory is given":           {mode: card.GPU{}, pod: pod("p", limits{"volcano.sh/gpu-number": 1})},
		"cards, where cards are given":           {mode: card.GPU{Whole: true}, pod: pod("p", limits{"volcano.sh/gpu-number": 1}), wants: true},
		"vGPUs":                                  {mode: card.VGPU{}, pod: pod("p", limits{}, vgpu(1, 0, 0)), wants: true},
		"cores without cards":                    {mode: card.VGPU{}, pod: pod("p", vgpu(0, 0, 50))},
		"nothing, with a mode that is not there": {mode: card.VGPU{}, pod: with(pod("p", limits{}), "volcano.sh/vgpu-mode", "mig")},
		"MIG": {
			mode: card.VGPU{}, pod: with(pod("p", vgpu(1, 0, 0)), "volcano.sh/vgpu-mode", "mig"),
			err: `annotation volcano.sh/vgpu-mode is "mig": only hami-core is supported; write that or remove it`,
		},
		"hami-core": {mode: card.VGPU{}, pod: with(pod("p", vgpu(1, 0, 0)), "volcano.sh/vgpu-mode", "hami-core"), wants: true},
		"an unknown policy": {
			mode: card.VGPU{}, pod: with(pod("p", vgpu(1, 0, 0)), "volcano.sh/vgpu-podgroup-policy", "pack"),
			err: `annotation volcano.sh/vgpu-podgroup-policy is "pack": only spread is supported; write that or remove it`,
		},
		"more cores than a card has": {
			mode: card.VGPU{}, pod: pod("p", vgpu(1, 0, 200)),
			err: "container c0 has the limit volcano.sh/vgpu-cores: 200: it is in percent of a card, write at most 100",
		},
	} {
		t.Run(name, func(t *testing.T) {
			wants, err := tc.mode.Wants(tc.pod)
			if wants != tc.wants || fmt.Sprint(err) != tc.err && (err != nil || tc.err != "") {
				t.Errorf("got %t, %v, want %t, %s", wants, err, tc.wants, tc.err)
			}
		})
	}
}

// What is written is read again as the same.
func TestAnnotations(t *testing.T) {
	now := time.Unix(1700000000, 5)
	for name, tc := range map[string]struct {
		mode card.Mode
		pod  *corev1.Pod
		a    card.Assignment
		want map[string]string
	}{
		"whole cards": {
			card.GPU{Whole: true},
			pod("p", limits{"volcano.sh/gpu-number": 2}),
			card.Assignment{{{Card: "0"}, {Card: "2"}}},
			map[string]string{"volcano.sh/gpu-index": "0,2", "volcano.sh/predicate-time": "1700000000000000005"},
		},
		"memory": {
			card.GPU{},
			pod("p", limits{"volcano.sh/gpu-memory": 7}),
			card.Assignment{{{Card: "3", Memory: 7}}},
			map[string]string{"volcano.sh/gpu-index": "3", "volcano.sh/predicate-time": "1700000000000000005"},
		},
		"vGPUs": {
			card.VGPU{},
			pod("p", vgpu(2, 5, 6), limits{}, vgpu(1, 7, 0)),
			card.Assignment{{{Card: "a", Memory: 5, Cores: 6}, {Card: "b", Memory: 5, Cores: 6}}, nil, {{Card: "a", Memory: 7}}},
			map[string]string{
				"volcano.sh/vgpu-node": "n", "volcano.sh/vgpu-time": "1700000000",
				"volcano.sh/vgpu-ids-new":        "a,NVIDIA,5,6:b,NVIDIA,5,6:;;a,NVIDIA,7,0:;",
				"volcano.sh/devices-to-allocate": "a,NVIDIA,5,6:b,NVIDIA,5,6:;;a,NVIDIA,7,0:;",
				"volcano.sh/bind-phase":          "allocating", "volcano.sh/bind-time": "1700000000",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := tc.mode.Annotations(tc.a, "n", now)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("written (-want,+got)\n%s", diff)
			}
			tc.pod.Annotations = got
			read, ok := tc.mode.Recorded(tc.pod, "n")
			if diff := cmp.Diff(tc.a, read); !ok || diff != "" {
				t.Errorf("read again (-want,+got)\n%s", diff)
			}
		})
	}
}

// Members of a gang that is being planned are one object, and count one by one.
func TestPodsThatAreOneObject(t *testing.T) {
	p := pod("p", vgpu(1, 3000, 0))
	p.Labels["tier"] = "gold"
	mode := card.VGPU{Exclusive: []map[string]string{{"tier": "gold"}}}
	cards := []string{"a,10,8000,T4,true,hami-core", "b,10,8000,T4,true,hami-core"}
	var got []string
	for planned := range 3 {
		got = append(got, choose(t, mode, vgpus(cards...), []*corev1.Pod{p, p}[:planned], p))
	}
	want := []string{"b:3000/0", "a:3000/0", "hami-vgpuDeviceSharing error: fewer than 1 card(s) left for container c0, used by a pod of the same exclusive rule"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want,+got)\n%s", diff)
	}
}

// A pod that could not be bound still has annotations from then, and is planned anew, or reserved.
func TestAnnotationsOfPodsThatWaitDoNotCount(t *testing.T) {
	for name, tc := range map[string]struct {
		reserved card.Assignment
		want     string
	}{
		"planned":  {nil, "a"},
		"reserved": {card.Assignment{{{Card: "a", Memory: 8000}}}, "b"},
	} {
		t.Run(name, func(t *testing.T) {
			waiting := recorded(pod("waiting", vgpu(1, 8000, 0)), "a,NVIDIA,8000,0:;")
			if tc.reserved != nil {
				waiting.Spec.NodeName = "n"
				waiting.Annotations["volcano.sh/vgpu-ids-new"] = "b,NVIDIA,8000,0:;"
			}
			reserved := func(*corev1.Pod) (card.Assignment, bool) { return tc.reserved, tc.reserved != nil }
			cards, err := card.Taken(card.VGPU{}, vgpus("a,10,8000,T4,true,hami-core", "b,10,8000,T4,true,hami-core"), []*corev1.Pod{waiting}, reserved)
			if err != nil {
				t.Fatal(err)
			}
			choice, reason := card.VGPU{}.Choose(pod("p", vgpu(1, 1, 0)), cards)
			if reason != "" || choice.Assignment[0][0].Card != tc.want {
				t.Errorf("got %v, %s, want card %s", choice.Assignment, reason, tc.want)
			}
		})
	}
}

// TestWhatIsLeftOfCards: of memory and cores that of which there is less; nothing where all shares are taken.
func TestWhatIsLeftOfCards(t *testing.T) {
	const a, b = "a,2,8000,T4,true,hami-core", "b,10,8000,T4,true,hami-core"
	for name, tc := range map[string]struct {
		mode card.Mode
		on   *corev1.Node
		pods []*corev1.Pod
		want []int
	}{
		"nobody is there": {card.VGPU{}, vgpus(a, b, "m,10,8000,T4,true,mig"), nil, []int{1000, 1000, 0}},
		"memory":          {card.VGPU{}, vgpus(a, b), []*corev1.Pod{recorded(pod("p", vgpu(1, 6000, 0)), "b,NVIDIA,6000,0:;")}, []int{1000, 250}},
		"cores":           {card.VGPU{}, vgpus(a, b), []*corev1.Pod{recorded(pod("p", vgpu(1, 1000, 90)), "b,NVIDIA,1000,90:;")}, []int{1000, 100}},
		"shares": {card.VGPU{}, vgpus(a, b), []*corev1.Pod{
			recorded(pod("p", vgpu(1, 1, 0)), "a,NVIDIA,1,0:;"), recorded(pod("q", vgpu(1, 1, 0)), "a,NVIDIA,1,0:;"),
		}, []int{0, 1000}},
		"whole cards":      {card.GPU{Whole: true}, gpus("3"), []*corev1.Pod{with(pod("p", limits{"volcano.sh/gpu-number": 1}), "volcano.sh/gpu-index", "1")}, []int{1000, 0, 1000}},
		"memory of a card": {card.GPU{}, gpus("3"), []*corev1.Pod{with(pod("p", limits{"volcano.sh/gpu-memory": 2000}), "volcano.sh/gpu-index", "1")}, []int{1000, 750, 1000}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, p := range tc.pods {
				p.Spec.NodeName = "n"
			}
			cards, err := card.Taken(tc.mode, tc.on, tc.pods, nothing)
			if err != nil {
				t.Fatal(err)
			}
			var got []int
			for _, c := range cards {
				got = append(got, c.Left())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want,+got)\n%s", diff)
			}
		})
	}
}

// TestWhatPodsAskForOfACard has cards of 8000.
func TestWhatPodsAskForOfACard(t *testing.T) {
	for name, tc := range map[string]struct {
		mode         card.Mode
		pod          *corev1.Pod
		cards, milli int
	}{
		"nothing":              {card.VGPU{}, pod("p", limits{}), 0, 0},
		"a whole card":         {card.VGPU{}, pod("p", vgpu(1, 0, 0)), 1, 1000},
		"all cores":            {card.VGPU{}, pod("p", vgpu(2, 1, 100)), 2, 1000},
		"memory":               {card.VGPU{}, pod("p", vgpu(1, 2000, 10)), 1, 250},
		"more than a card has": {card.VGPU{}, pod("p", vgpu(1, 9000, 0)), 1, 1000},
		"a percentage":         {card.VGPU{}, pod("p", limits{"volcano.sh/vgpu-number": 1, "volcano.sh/vgpu-memory-percentage": 30}), 1, 300},
		"two containers":       {card.VGPU{}, pod("p", vgpu(1, 2000, 0), limits{}, vgpu(2, 1, 40)), 3, 400},
		"what is an error":     {card.VGPU{}, pod("p", vgpu(1, 1, 101)), 0, 0},
		"cards by number":      {card.GPU{Whole: true}, pod("p", limits{"volcano.sh/gpu-number": 3}), 3, 1000},
		"memory of one":        {card.GPU{}, pod("p", limits{"volcano.sh/gpu-memory": 1001}), 1, 126},
		"none of these":        {card.GPU{}, pod("p", limits{}), 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if cards, milli := tc.mode.Asks(tc.pod, 8000); cards != tc.cards || milli != tc.milli {
				t.Errorf("got %d cards, %d of each, want %d, %d", cards, milli, tc.cards, tc.milli)
			}
		})
	}
}

// TestTypesAsText: what a pod says of types is a text, which takes the same cards.
func TestTypesAsText(t *testing.T) {
	only, but := with(pod("p"), "nvidia.com/use-gputype", "v100, A100"), with(pod("p"), "nvidia.com/nouse-gputype", "T4")
	for name, tc := range map[string]struct {
		pod   *corev1.Pod
		takes []string
	}{
		"all":  {pod("p"), []string{"NVIDIA-T4", "NVIDIA-A100", "NVIDIA-V100"}},
		"some": {only, []string{"NVIDIA-A100", "NVIDIA-V100"}},
		"but":  {but, []string{"NVIDIA-A100", "NVIDIA-V100"}},
	} {
		t.Run(name, func(t *testing.T) {
			var takes []string
			for _, cardType := range []string{"NVIDIA-T4", "NVIDIA-A100", "NVIDIA-V100"} {
				if card.TakesType(card.TypesOf(tc.pod), cardType) {
					takes = append(takes, cardType)
				}
			}
			if diff := cmp.Diff(tc.takes, takes); diff != "" {
				t.Errorf("(-want,+got)\n%s", diff)
			}
		})
	}
	if card.TypesOf(pod("p")) != "" || card.TypesOf(only) == card.TypesOf(but) {
		t.Errorf("texts are %q, %q and %q", card.TypesOf(pod("p")), card.TypesOf(only), card.TypesOf(but))
	}
}
