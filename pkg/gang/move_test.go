// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"pgregory.net/rapid"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/gang"
	"github.com/caldera-scheduler/caldera/pkg/model"
)

// owned gives the pods of a gang a controller.
func owned(g gangSpec) gangSpec {
	for _, p := range g.pods {
		p.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: g.name, UID: types.UID("rs-" + g.name), Controller: new(true)}}
	}
	return g
}

// moves are who goes where.
func moves(st gang.Statement) []string {
	list := make([]string, len(st.Moves))
	for i, m := range st.Moves {
		list[i] = m.Task.Pod.Name + " to " + m.Node
	}
	slices.Sort(list)
	return list
}

func TestMoves(t *testing.T) {
	young := func(g gangSpec) gangSpec {
		for _, p := range g.pods {
			p.Status.StartTime = &metav1.Time{Time: now.Add(-1)}
		}
		return g
	}
	single := func(name, cpu, node string) gangSpec { return owned(run(in("q", "", gangOf(name, 1, 1, cpu)), node)) }
	// fixed is nobody's to create again.
	fixed := func(name, cpu, node string) gangSpec { return run(in("q", "", gangOf(name, 1, 1, cpu)), node) }
	nodes := func(n int) nodeShapes { return nodeShapes{{count: n, cpu: "4", memory: "64Gi"}} }
	for name, tc := range map[string]struct {
		nodes   nodeShapes
		running []gangSpec
		waiting gangSpec
		conf    string
		want    []string
		why     string
	}{
		"the pod of the emptier node moves": {
			nodes: nodes(2), running: []gangSpec{single("a", "1", "node-0"), single("b", "3", "node-1")},
			waiting: in("q", "", gangOf("big", 1, 1, "4")), want: []string{"a-0 to node-1"},
		},
		"nobody moves where the other node is full": {
			nodes: nodes(2), running: []gangSpec{single("a", "1", "node-0"), fixed("b", "4", "node-1")},
			waiting: in("q", "", gangOf("big", 1, 1, "4")), why: "1 because it fits no other node",
		},
		"another one moves where the first has no other node": {
			nodes: nodes(3), running: []gangSpec{
				young(single("a", "2", "node-0")), single("b", "1", "node-0"), single("c", "4", "node-1"), single("d", "3", "node-2"),
			},
			waiting: in("q", "", gangOf("big", 1, 1, "2")), want: []string{"b-0 to node-2"},
		},
		"the youngest moves": {
			nodes: nodes(3), running: []gangSpec{single("a", "1", "node-0"), young(single("b", "1", "node-1")), single("c", "3", "node-2")},
			waiting: in("q", "", gangOf("big", 1, 1, "4")), want: []string{"b-0 to node-2"},
		},
		"a gang of two has pods of two nodes moved": {
			nodes: nodes(4), running: []gangSpec{
				single("a", "1", "node-0"), single("b", "500m", "node-1"), single("c", "3", "node-2"), single("d", "3500m", "node-3"),
			},
			waiting: in("q", "", gangOf("big", 2, 2, "4")), want: []string{"a-0 to node-2", "b-0 to node-3"},
		},
		"no room is used twice": {
			nodes: nodes(3), running: []gangSpec{single("a", "1", "node-0"), single("b", "1", "node-1"), fixed("c", "3", "node-2")},
			waiting: in("q", "", gangOf("big", 2, 2, "3500m")), why: "because it fits no other node",
		},
		"who is surplus to its job moves": {
			nodes: nodes(2), running: []gangSpec{owned(run(in("q", "", gangOf("a", 1, 2, "1")), "node-0", "node-1")), single("b", "2", "node-1")},
			waiting: in("q", "", gangOf("big", 1, 1, "4")), want: []string{"a-0 to node-1"},
		},
		"a member of a gang stays": {
			nodes: nodes(2), running: []gangSpec{owned(run(in("q", "", gangOf("a", 2, 2, "1")), "node-0", "node-1")), fixed("b", "2", "node-1")},
			waiting: in("q", "", gangOf("big", 1, 1, "4")), why: "its job would fall below its minimum",
		},
		"who has no controller stays": {
			nodes: nodes(2), running: []gangSpec{run(in("q", "", gangOf("a", 1, 1, "1")), "node-0"), fixed("b", "3", "node-1")},
			waiting: in("q", "", gangOf("big", 1, 1, "4")), why: "nobody would create it again",
		},
		"who is more important stays": {
			nodes: nodes(2), running: []gangSpec{owned(run(in("q", "high", gangOf("a", 1, 1, "1")), "node-0")), fixed("b", "3", "node-1")},
			waiting: in("q", "", gangOf("big", 1, 1, "4")), why: "its job's priority is higher",
		},
		"who is of another queue moves, though that is due all it holds": {
			nodes: nodes(2), running: []gangSpec{owned(run(in("other", "", gangOf("a", 1, 1, "1")), "node-0")), single("b", "3", "node-1")},
			waiting: in("q", "", gangOf("big", 1, 1, "4")), want: []string{"a-0 to node-1"},
		},
		"not more than so many move": {
			nodes: nodes(2), running: []gangSpec{
				single("a", "500m", "node-0"), single("b", "500m", "node-0"), fixed("c", "3", "node-1"),
			},
			waiting: in("q", "", gangOf("big", 1, 1, "4")), conf: "{maxPods: 1}", why: "a decision moves no more pods (maxPods)",
		},
		"one of a controller moves at a time": {
			nodes: nodes(2), running: []gangSpec{owned(run(in("q", "", gangOf("a", 0, 2, "500m")), "node-0")), fixed("c", "3", "node-1")},
			waiting: in("q", "", gangOf("big", 1, 1, "4")), why: "a pod of its controller was moved a short while ago",
		},
		"as many of a controller move as it takes, without a cooldown": {
			nodes: nodes(2), running: []gangSpec{owned(run(in("q", "", gangOf("a", 0, 2, "500m")), "node-0")), single("c", "3", "node-1")},
			waiting: in("q", "", gangOf("big", 1, 1, "4")), conf: "{cooldown: 0s}", want: []string{"a-0 to node-1", "a-1 to node-1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newBusy(t, tc.nodes, tc.running...)
			conf := tiers("consolidate", "priority gang")
			conf += "configurations:\n- name: consolidate\n  arguments: " + cmp.Or(tc.conf, "{maxAge: 0s}") + "\n"
			// What queues are due goes by all that is asked for.
			job := w.job(tc.waiting)
			st := w.evict(t, w.policies(t, conf, queue("q", 3), queue("other", 1)), config.Consolidate, job)
			if got := moves(st); !slices.Equal(got, tc.want) {
				t.Errorf("moves %v, want %v; why: %s", got, tc.want, st.Why)
			}
			if (st.Placements == nil) == (tc.want != nil) {
				t.Errorf("placements %v", placements(st))
			}
			if !strings.Contains(st.Why, tc.why) {
				t.Errorf("why %q, want %q in it", st.Why, tc.why)
			}
		})
	}
}

// allergic is a plugin that fails when it is asked about one pod.
type allergic struct{ to string }

func (allergic) Name() string { return "Allergic" }

func (pl allergic) PreFilter(_ context.Context, _ fwk.CycleState, p *corev1.Pod, _ []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	if p.Name == pl.to {
		return nil, fwk.NewStatus(fwk.Error, "allergic to "+p.Name)
	}
	return nil, nil
}

func (allergic) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

// TestWhoUpsetsAPluginStays: a plugin fails about somebody's pod. That is no reason for others not to start.
func TestWhoUpsetsAPluginStays(t *testing.T) {
	single := func(name, cpu, node string) gangSpec { return owned(run(in("q", "", gangOf(name, 1, 1, cpu)), node)) }
	small, large, rest := single("small", "1", "node-0"), single("large", "2", "node-1"), run(in("q", "", gangOf("rest", 1, 1, "2")), "node-2")
	var running []*corev1.Pod
	for _, g := range []gangSpec{small, large, rest} {
		running = append(running, g.pods...)
	}
	w := newFixture(t, nodeShapes{{count: 3, cpu: "4", memory: "64Gi"}}, running, allergic{to: "small-0"})
	for _, g := range []gangSpec{small, large, rest} {
		w.job(g)
	}
	job := w.job(in("q", "", gangOf("big", 1, 1, "4")))
	st := w.evict(t, w.policies(t, tiers("consolidate", "gang")+"configurations: [{name: consolidate, arguments: {maxAge: 0s}}]\n", queue("q", 1)), config.Consolidate, job)
	if !slices.Equal(victims(st), []string{"large-0"}) || st.Kept["a plugin failed when it was asked which other nodes it fits"] != 1 {
		t.Errorf("moves %v, want large-0; kept %v; why %q", moves(st), st.Kept, st.Why)
	}
}

// TestWhoIsOfAnotherProfileStays: nobody plans for a pod by plugins that are not those of its own profile.
func TestWhoIsOfAnotherProfileStays(t *testing.T) {
	other := owned(run(in("q", "", gangOf("a", 1, 1, "1")), "node-0"))
	w := newBusy(t, nodeShapes{{count: 2, cpu: "4", memory: "64Gi"}}, other, run(in("q", "", gangOf("b", 1, 1, "3")), "node-1"))
	w.state.AddScheduler("batch-two")
	other.pods[0].Spec.SchedulerName = "batch-two"
	w.state.UpsertPod(other.pods[0])
	job := w.job(in("q", "", gangOf("big", 1, 1, "4")))
	st := w.evict(t, w.policies(t, tiers("consolidate", "gang")+"configurations: [{name: consolidate, arguments: {maxAge: 0s}}]\n", queue("q", 1)), config.Consolidate, job)
	if want := "1 because another scheduler profile would place it"; st.Placements != nil || !strings.Contains(st.Why, want) {
		t.Errorf("moves %v, placements %v; why %q, want %q", moves(st), placements(st), st.Why, want)
	}
}

// TestMovesKeepTheirPromises: once all moves have come about, no node has more than it holds, whoever was moved is on another node, none of them could have
// stayed, and where one move alone would do one is found.
func TestMovesKeepTheirPromises(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		const cores = 4
		n := rapid.IntRange(2, 5).Draw(r, "nodes")
		idle := make([]int, n)
		var running []gangSpec
		for i := range n {
			for idle[i] = cores; idle[i] > 0 && rapid.Bool().Draw(r, "another"); {
				size := rapid.IntRange(1, min(3, idle[i])).Draw(r, "size")
				g := run(in("q", "", gangOf(fmt.Sprintf("pod%d", len(running)), 1, 1, fmt.Sprint(size))), fmt.Sprintf("node-%d", i))
				if rapid.IntRange(0, 4).Draw(r, "tied") > 0 {
					g = owned(g)
				}
				running, idle[i] = append(running, g), idle[i]-size
			}
		}
		members, size := rapid.IntRange(1, 3).Draw(r, "members"), rapid.IntRange(1, cores).Draw(r, "need")
		w := newBusy(t, nodeShapes{{count: n, cpu: fmt.Sprint(cores), memory: "64Gi"}}, running...)
		set := w.policies(t, tiers("consolidate", "priority gang")+"configurations:\n- name: consolidate\n  arguments: {maxAge: 0s}\n", queue("q", 1))
		st := w.evict(t, set, config.Consolidate, w.job(in("q", "", gangOf("big", members, members, fmt.Sprint(size)))))
		if st.Placements == nil {
			if members == 1 && oneMoveWillDo(running, idle, size) {
				r.Fatalf("nobody moves (%s) for a pod of %d; idle %v", st.Why, size, idle)
			}
			return
		}
		after := slices.Clone(idle)
		at := func(node string) *int {
			var i int
			if _, err := fmt.Sscanf(node, "node-%d", &i); err != nil {
				r.Fatal(err)
			}
			return &after[i]
		}
		for i, m := range st.Moves {
			if m.Task.UID != st.Victims[i].Task.UID || m.Node == m.Task.Node {
				r.Fatalf("moves %v of victims %v", moves(st), victims(st))
			}
			*at(m.Task.Node) += need(m.Task.Pod)
			*at(m.Node) -= need(m.Task.Pod)
		}
		for _, node := range placements(st) {
			*at(node) -= size
		}
		if slices.Min(after) < 0 {
			r.Fatalf("after moves %v and placements %v nodes have left %v", moves(st), placements(st), after)
		}
		for _, m := range st.Moves {
			if *at(m.Task.Node) >= need(m.Task.Pod) {
				r.Fatalf("%s could have stayed: moves %v, placements %v, left %v", m.Task.Pod.Name, moves(st), placements(st), after)
			}
		}
	})
}

// oneMoveWillDo reports whether a pod of a size fits once one running pod is on another node.
func oneMoveWillDo(running []gangSpec, idle []int, size int) bool {
	for _, g := range running {
		p := g.pods[0]
		if len(p.OwnerReferences) == 0 {
			continue
		}
		for to := range idle {
			from := slices.IndexFunc(idle, func(int) bool { return false })
			if _, err := fmt.Sscanf(p.Spec.NodeName, "node-%d", &from); err == nil && from != to && idle[to] >= need(p) && idle[from]+need(p) >= size {
				return true
			}
		}
	}
	return false
}

// TestWhoIsMovedIsExpected: the pod that is expected again asks for what the one did that is moved, and has no node but the one it is expected on.
func TestWhoIsMovedIsExpected(t *testing.T) {
	p := onNode(pod("a", "1"), "node-0")
	p.UID = "a"
	task := model.NewTask(p)
	again := task.ExpectedOn("node-1")
	if again.UID == task.UID || again.Status != model.Pending || again.Node != "" || again.Nominated != "node-1" || !again.Request.Equal(task.Request) {
		t.Errorf("%+v is expected of %+v", again, task)
	}
	if task.Pod.Spec.NodeName != "node-0" || task.Pod.Status.Phase != corev1.PodRunning {
		t.Errorf("the pod that runs was changed: %+v", task.Pod)
	}
}
