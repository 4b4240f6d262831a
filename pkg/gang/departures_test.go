// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang_test

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/caldera-scheduler/caldera/pkg/gang"
	"github.com/caldera-scheduler/caldera/pkg/model"
)

// reserveOn reserves room on a node for all tasks of a job. It starts in so many minutes, when some pods have left.
func (w *fixture) reserveOn(r *gang.Request, job *model.Job, node string, minutes int, leavers, fillers []string) {
	var rooms []model.Nomination
	for _, t := range job.Tasks {
		rooms = append(rooms, model.Nomination{UID: t.UID, Node: node})
	}
	w.state.Reserve(rooms, nil)
	pods := func(names []string) map[types.UID]string {
		all := map[types.UID]string{}
		for _, name := range names {
			all[types.UID(name)] = node
		}
		return all
	}
	if r.Departures == nil {
		r.Departures = map[model.JobKey]gang.Departure{}
	}
	r.Departures[job.Key] = gang.Departure{Pods: pods(leavers), Fillers: pods(fillers), Until: now.Add(time.Duration(minutes) * time.Minute)}
}

// running are pods of so many cores on node-0.
func running(cores ...int) (pods []*corev1.Pod) {
	for i, c := range cores {
		pods = append(pods, onNode(pod(fmt.Sprintf("p%d", i), strconv.Itoa(c)), "node-0"))
	}
	return pods
}

// onPort has a pod use a port of its node.
func onPort(port int32) func(int, *corev1.Pod) {
	return func(_ int, p *corev1.Pod) {
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: port, HostPort: port, Protocol: corev1.ProtocolTCP}}
	}
}

// TestWhatLeaversGiveAHolderIsNotKeptBesides: a node of 8 cores with some pods. A holder of two tasks waits for some of them, and a pod comes.
func TestWhatLeaversGiveAHolderIsNotKeptBesides(t *testing.T) {
	t.Parallel()
	ofCards := func(_ int, p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Requests["volcano.sh/vgpu-number"] = resource.MustParse("1")
	}
	onOneNUMANode := func(_ int, p *corev1.Pod) { p.Annotations[model.NUMAPolicyAnnotation] = "single-numa-node" }
	apart := func(_ int, p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"none": "such"}},
			}},
		}}
	}
	sidecarOnPort := func(i int, p *corev1.Pod) {
		onPort(80)(i, p)
		sidecar := corev1.Container{Name: "sidecar", Image: "none", RestartPolicy: new(corev1.ContainerRestartPolicyAlways), Ports: p.Spec.Containers[0].Ports}
		p.Spec.Containers[0].Ports, p.Spec.InitContainers = nil, []corev1.Container{sidecar}
	}
	for name, c := range map[string]struct {
		running          []int
		leavers, fillers []string
		// each is the cores of a holder's task, and change what else it asks for.
		each   string
		change func(i int, p *corev1.Pod)
		// asks are the cores of the pod that comes, and port the one that it uses, if any.
		asks string
		port int32
		fits bool
	}{
		"nobody leaves: all of the room is kept":        {running: []int{2}, each: "1", asks: "5"},
		"beside what is kept":                           {running: []int{2}, each: "1", asks: "4", fits: true},
		"it gets all from who leaves":                   {running: []int{4}, leavers: []string{"p0"}, each: "2", asks: "4", fits: true},
		"it gets a part from who leaves":                {running: []int{4}, leavers: []string{"p0"}, each: "3", asks: "2", fits: true},
		"no more than it leaves":                        {running: []int{4}, leavers: []string{"p0"}, each: "3", asks: "3"},
		"who stays leaves nothing":                      {running: []int{4, 2}, leavers: []string{"p1"}, each: "2", asks: "1"},
		"who uses the room until then leaves, too":      {running: []int{2, 2}, leavers: []string{"p0"}, fillers: []string{"p1"}, each: "2", asks: "4", fits: true},
		"who has left leaves nothing any more":          {running: []int{2}, leavers: []string{"gone"}, each: "2", asks: "3"},
		"no more than is idle now":                      {running: []int{4, 2}, leavers: []string{"p0"}, each: "1", asks: "3"},
		"cards may be left in pieces: all is kept":      {running: []int{4}, leavers: []string{"p0"}, each: "2", change: ofCards, asks: "1"},
		"terms about pods: all is kept":                 {running: []int{4}, leavers: []string{"p0"}, each: "2", change: apart, asks: "1"},
		"cores of a NUMA node may be, too: all is kept": {running: []int{4}, leavers: []string{"p0"}, each: "2", change: onOneNUMANode, asks: "1"},
		"ports are kept from who comes, whoever leaves": {running: []int{4}, leavers: []string{"p0"}, each: "2", change: onPort(80), asks: "1", port: 80},
		"so are those of a sidecar":                     {running: []int{4}, leavers: []string{"p0"}, each: "2", change: sidecarOnPort, asks: "1", port: 80},
		"other ports are not":                           {running: []int{4}, leavers: []string{"p0"}, each: "2", change: onPort(80), asks: "1", port: 81, fits: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, nodeShapes{{count: 1, cpu: "8", memory: "64Gi"}}, running(c.running...))
			change := c.change
			if change == nil {
				change = func(int, *corev1.Pod) {}
			}
			holder := w.job(gangOf("holder", 2, 2, c.each, change))
			r := asking(w.job(gangOf("new", 1, 1, c.asks, func(i int, p *corev1.Pod) {
				if c.port > 0 {
					onPort(c.port)(i, p)
				}
			})))
			w.reserveOn(&r, holder, "node-0", 10, c.leavers, c.fillers)
			r.Nominated = w.state.Nominated()
			plan, err := w.planner.Plan(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			if fits := len(plan.Placements) == 1; fits != c.fits {
				t.Errorf("it fits: %t, want %t: %s", fits, c.fits, plan.Reason.Text())
			}
		})
	}
}

// TestAClaimBesideTwoThatWaitForTheSamePod: a holder starts on its node, where two others wait for one pod that both need gone.
func TestAClaimBesideTwoThatWaitForTheSamePod(t *testing.T) {
	t.Parallel()
	w := newFixture(t, nodeShapes{{count: 1, cpu: "8", memory: "64Gi"}}, running(6))
	r := asking(nil)
	for _, name := range []string{"one", "other", "claims"} {
		w.reserveOn(&r, w.job(gangOf(name, 2, 2, "1")), "node-0", 10, []string{"p0"}, nil)
	}
	r.Job, r.Nominated = w.state.Job(model.JobKey{Source: model.FromVolcano, Namespace: "default", Name: "claims"}), w.state.Nominated()
	plan, err := w.planner.Claim(t.Context(), r)
	if err != nil || len(plan.Placements) != 2 {
		t.Errorf("%d of 2 tasks are placed: %v", len(plan.Placements), err)
	}
}

// TestWhoFitsBesideHoldersIsLetThrough: a pod gets a node with random pods and holders if it fits beside those that are there now, and beside the
// holders each time that the leavers of another one have left; and only then.
func TestWhoFitsBesideHoldersIsLetThrough(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		const size = 16
		cores := rapid.SliceOfN(rapid.IntRange(1, 4), 0, 5).Draw(r, "running")
		w := newFixture(t, nodeShapes{{count: 1, cpu: strconv.Itoa(size), memory: "64Gi"}}, running(cores...))
		idle := size
		for _, c := range cores {
			idle -= c
		}
		request := asking(nil)
		room, left := idle, map[int]bool{}
		for h := range rapid.IntRange(0, 3).Draw(r, "holders") {
			each := rapid.IntRange(1, 4).Draw(r, "each")
			var leavers []string
			for i, c := range cores {
				if !rapid.Bool().Draw(r, "leaves") {
					continue
				}
				leavers = append(leavers, fmt.Sprintf("p%d", i))
				if !left[i] {
					left[i] = true
					room += c
				}
			}
			room -= 2 * each
			idle = min(idle, room)
			w.reserveOn(&request, w.job(gangOf(fmt.Sprintf("h%d", h), 2, 2, strconv.Itoa(each))), "node-0", 10+h, leavers, nil)
		}
		asks := rapid.IntRange(1, 6).Draw(r, "asks")
		request.Job = w.job(gangOf("asks", 1, 1, strconv.Itoa(asks)))
		request.Nominated = w.state.Nominated()
		// In which order they come makes no difference.
		slices.Reverse(request.Nominated)
		plan, err := w.planner.Plan(t.Context(), request)
		if err != nil {
			r.Fatal(err)
		}
		if fits, want := len(plan.Placements) == 1, asks <= idle; fits != want {
			r.Errorf("a pod of %d cores fits: %t, and there is room for %d: %s", asks, fits, idle, plan.Reason.Text())
		}
	})
}
