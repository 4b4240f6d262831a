// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/gang"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/policy"
	"github.com/caldera-scheduler/caldera/pkg/volcano/schedulerconf"
)

// tiers is a volcano-scheduler.conf with the plugins that have a say in evictions; "+tree" makes one hierarchical.
func tiers(actions, plugins string) string {
	conf := fmt.Sprintf("actions: \"enqueue, allocate, %s\"\ntiers:\n- plugins:\n", actions)
	for p := range strings.FieldsSeq(plugins) {
		name, tree := strings.CutSuffix(p, "+tree")
		conf += "  - name: " + name + "\n"
		if tree {
			conf += "    enableHierarchy: true\n"
		}
	}
	return conf
}

// policies compiles a configuration and tells the policies of all the model holds.
func (w *fixture) policies(tb testing.TB, conf string, queues ...*model.Queue) *policy.Set {
	tb.Helper()
	args, err := schedulerconf.Parse([]byte(conf))
	if err != nil {
		tb.Fatal(err)
	}
	set, err := policy.Compile(args)
	if err != nil {
		tb.Fatal(err)
	}
	for _, q := range queues {
		set.SetQueue(q.Name, q)
		w.state.UpsertQueue(q)
	}
	set.SetCluster(w.state.Totals().Allocatable)
	for j := range w.state.Snapshot().Jobs {
		set.SetJob(j.Key, j)
	}
	set.Update()
	return set
}

func queue(name string, weight int32) *model.Queue {
	return &model.Queue{Name: name, UID: types.UID(name), Weight: weight, Reclaimable: true, State: model.QueueOpen}
}

// now is some time after the pods of the tests began to run.
var now = created.Add(time.Hour)

// evict asks for the evictions that let a job start.
func (w *fixture) evict(tb testing.TB, set *policy.Set, action config.Action, job *model.Job) gang.Statement {
	tb.Helper()
	trial := set.Trial(action, job, policy.EvictionWorld{Now: now, Budgets: w.state.Budgets})
	if reason := trial.Seek(job.Need()); reason != (model.Reason{}) {
		return gang.Statement{Why: reason.Message}
	}
	st, err := w.planner.Evict(tb.Context(), w.search(set, trial, job))
	if err != nil {
		tb.Fatal(err)
	}
	return st
}

func (w *fixture) search(set *policy.Set, trial *policy.Trial, job *model.Job) gang.Search {
	snapshot := w.state.Snapshot()
	return gang.Search{
		Request: gang.Request{
			Job: job, Budget: func() gang.Budget { return set.Budget(set.Book().Queue(job.Queue), job.OwnHalf(), false) },
			Nominated: w.state.Nominated(),
		},
		Trial: trial, Leaving: w.state.Leaving(), Now: now, Patience: time.Minute,
		Victim: func(uid types.UID) model.Victim {
			t := w.state.Task(uid)
			if t == nil {
				return model.Victim{}
			}
			return model.Victim{Task: t, Job: snapshot.Job(t.Job)}
		},
	}
}

// victims are the names of those who go, sorted.
func victims(st gang.Statement) []string {
	names := make([]string, len(st.Victims))
	for i, v := range st.Victims {
		names[i] = v.Task.Pod.Name
	}
	slices.Sort(names)
	return names
}

// run makes a gang's pods run on nodes, in turn. The PodGroup's priority class is "" or one of the classes of newBusy.
func run(g gangSpec, nodes ...string) gangSpec {
	for i, p := range g.pods {
		onNode(p, nodes[i%len(nodes)])
		p.Status.StartTime = &metav1.Time{Time: created.Time}
	}
	return g
}

func in(queue, class string, g gangSpec) gangSpec {
	g.group.Queue, g.group.PriorityClass = queue, class
	g.group.UID = types.UID(g.name)
	return g
}

// newBusy is a cluster on which gangs run already. Priority classes "high" (1000) and "low" (10) exist.
func newBusy(tb testing.TB, shapes nodeShapes, gangs ...gangSpec) *fixture {
	tb.Helper()
	var running []*corev1.Pod
	for _, g := range gangs {
		running = append(running, g.pods...)
	}
	w := newFixture(tb, shapes, running)
	w.state.UpsertPriorityClass("high", 1000, false)
	w.state.UpsertPriorityClass("low", 10, false)
	for _, g := range gangs {
		w.state.UpsertGroup(model.JobKey{Source: model.FromVolcano, Namespace: "default", Name: g.name}, &g.group)
	}
	return w
}

const preempting = "priority gang conformance proportion"

func TestEvict(t *testing.T) {
	big := nodeShapes{{count: 2, cpu: "8", memory: "64Gi"}}
	labelled := func(key string) func(int, *corev1.Pod) {
		return func(_ int, p *corev1.Pod) { p.Labels[key] = "yes" }
	}
	avoiding := func(key string) func(int, *corev1.Pod) {
		return func(_ int, p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
					TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{key: "yes"}},
				}},
			}}
		}
	}
	port := func(n int32) func(int, *corev1.Pod) {
		return func(_ int, p *corev1.Pod) {
			p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: n, HostPort: n, Protocol: corev1.ProtocolTCP}}
		}
	}
	never := corev1.PreemptNever
	cases := []struct {
		name    string
		action  config.Action
		plugins string
		running []gangSpec
		job     gangSpec
		// want are the victims; whole is how many tasks are to be placed, 0 for none.
		want   []string
		placed int
		why    string
	}{{
		name: "only what is needed", action: config.Preempt, plugins: preempting,
		running: []gangSpec{in("default", "low", run(gangOf("l", 1, 8, "2"), "node-0", "node-1"))},
		job:     in("default", "high", gangOf("h", 3, 3, "2")),
		want:    []string{"l-5", "l-6", "l-7"}, placed: 3,
	}, {
		name: "the gang's minimum stays", action: config.Preempt, plugins: preempting,
		running: []gangSpec{in("default", "low", run(gangOf("l", 6, 8, "2"), "node-0", "node-1"))},
		job:     in("default", "high", gangOf("h", 3, 3, "2")),
		why:     "fall below its minimum",
	}, {
		name: "whole jobs if need be", action: config.GangPreempt, plugins: preempting,
		running: []gangSpec{
			in("default", "low", run(gangOf("a", 4, 4, "2"), "node-0")),
			in("default", "low", run(gangOf("b", 4, 4, "2"), "node-1")),
		},
		job:  in("default", "high", gangOf("h", 3, 3, "2")),
		want: []string{"b-0", "b-1", "b-2", "b-3"}, placed: 3,
	}, {
		name: "surplus before whole jobs", action: config.GangPreempt, plugins: preempting,
		running: []gangSpec{
			in("default", "low", run(gangOf("a", 2, 4, "2"), "node-0")),
			in("default", "low", run(gangOf("b", 4, 4, "2"), "node-1")),
		},
		job:  in("default", "high", gangOf("h", 2, 2, "2")),
		want: []string{"a-2", "a-3"}, placed: 2,
	}, {
		name: "nobody, if one member fits nowhere even then", action: config.Preempt, plugins: preempting,
		running: []gangSpec{in("default", "low", run(gangOf("l", 1, 8, "2"), "node-0", "node-1"))},
		job:     in("default", "high", gangOf("h", 2, 2, "2", func(i int, p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"no": "such"}; _ = i })),
		why:     "",
	}, {
		name: "equal priority", action: config.Preempt, plugins: preempting,
		running: []gangSpec{in("default", "high", run(gangOf("l", 1, 8, "2"), "node-0", "node-1"))},
		job:     in("default", "high", gangOf("h", 1, 1, "2")),
		why:     "priority is not lower",
	}, {
		name: "a host port", action: config.Preempt, plugins: preempting,
		running: []gangSpec{
			in("default", "low", run(gangOf("l", 0, 2, "1", port(8080)), "node-0", "node-1")),
			in("default", "low", run(gangOf("m", 0, 2, "1"), "node-0", "node-1")),
		},
		job:  in("default", "high", gangOf("h", 1, 1, "1", port(8080))),
		want: []string{"l-1"}, placed: 1,
	}, {
		name: "who keeps others away", action: config.Preempt, plugins: preempting,
		running: []gangSpec{
			in("default", "low", run(gangOf("l", 0, 2, "1", labelled("noisy")), "node-0", "node-1")),
			in("default", "low", run(gangOf("m", 0, 2, "1"), "node-0", "node-1")),
		},
		job:  in("default", "high", gangOf("h", 2, 2, "1", avoiding("noisy"))),
		want: []string{"l-1"}, placed: 2,
	}, {
		name: "who may not be followed", action: config.Preempt, plugins: preempting,
		running: []gangSpec{
			in("default", "low", run(gangOf("l", 0, 2, "1", avoiding("loud")), "node-0", "node-1")),
		},
		job:  in("default", "high", gangOf("h", 1, 1, "1", labelled("loud"))),
		want: []string{"l-1"}, placed: 1,
	}, {
		name: "preemptionPolicy Never", action: config.Preempt, plugins: preempting,
		running: []gangSpec{in("default", "low", run(gangOf("l", 1, 8, "2"), "node-0", "node-1"))},
		job:     in("default", "high", gangOf("h", 1, 1, "2", func(_ int, p *corev1.Pod) { p.Spec.PreemptionPolicy = &never })),
		why:     "Never",
	}, {
		name: "reclaim down to what is due", action: config.Reclaim, plugins: preempting,
		running: []gangSpec{in("a", "", run(gangOf("l", 1, 16, "1"), "node-0", "node-1"))},
		job:     in("b", "", gangOf("h", 6, 6, "1")),
		want:    []string{"l-4", "l-5", "l-6", "l-7", "l-8", "l-9"}, placed: 6,
	}, {
		name: "reclaim no more than is due", action: config.Reclaim, plugins: preempting,
		running: []gangSpec{in("a", "", run(gangOf("l", 1, 16, "1"), "node-0", "node-1"))},
		job:     in("b", "", gangOf("h", 9, 9, "1")),
		why:     "8 deserved",
	}}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := newBusy(t, big, c.running...)
			job := w.job(c.job)
			set := w.policies(t, tiers(string(c.action), c.plugins), queue("default", 1), queue("a", 1), queue("b", 1))
			st := w.evict(t, set, c.action, job)
			if got := victims(st); !slices.Equal(got, c.want) || len(st.Placements) != c.placed {
				t.Errorf("evicts %v and places %d (%s), want %v and %d", got, len(st.Placements), st.Why, c.want, c.placed)
			}
			if c.placed == 0 && !strings.Contains(st.Why, c.why) {
				t.Errorf("says %q, want something about %q", st.Why, c.why)
			}
		})
	}
}

// TestABrokenGangGoesFirstAndWhole: nothing is lost with it, however many pods it has, as long as others of them could go as well.
func TestABrokenGangGoesFirstAndWhole(t *testing.T) {
	key := func(name string) model.JobKey {
		return model.JobKey{Source: model.FromVolcano, Namespace: "default", Name: name}
	}
	for name, c := range map[string]struct {
		lapses time.Time
		change func(*corev1.Pod)
		want   []string
	}{
		"its time is over":     {now, func(*corev1.Pod) {}, []string{"broken-0", "broken-1", "broken-2"}},
		"its time is not over": {now.Add(time.Second), func(*corev1.Pod) {}, []string{"l-3"}},
		"one of its pods is not to be evicted": {
			now, func(p *corev1.Pod) { p.Annotations[model.PreemptableKey] = "false" }, []string{"l-3"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			lost := in("default", "low", run(gangOf("broken", 4, 3, "2"), "node-0", "node-1"))
			c.change(lost.pods[2])
			w := newBusy(t, nodeShapes{{count: 2, cpu: "8", memory: "64Gi"}}, lost, in("default", "low", run(gangOf("l", 1, 4, "2"), "node-0", "node-1")),
				in("default", "high", run(gangOf("k", 1, 1, "2"), "node-1")))
			job := w.job(in("default", "high", gangOf("h", 1, 1, "2")))
			set := w.policies(t, tiers("preempt", preempting), queue("default", 1))
			trial := set.Trial(config.Preempt, job, policy.EvictionWorld{Now: now, Lapses: map[model.JobKey]time.Time{key("broken"): c.lapses}})
			st, err := w.planner.Evict(t.Context(), w.search(set, trial, job))
			if err != nil {
				t.Fatal(err)
			}
			if got := victims(st); !slices.Equal(got, c.want) || len(st.Placements) != 1 {
				t.Errorf("evicts %v and places %d (%s), want %v and 1", got, len(st.Placements), st.Why, c.want)
			}
		})
	}
}

// TestEvictCountsOnWhoLeaves expects that nobody is evicted where pods terminate anyway, and that room kept for others is
// theirs.
func TestEvictCountsOnWhoLeaves(t *testing.T) {
	leaving := run(gangOf("old", 0, 4, "2"), "node-0")
	until := metav1.NewTime(now.Add(10 * time.Second))
	for _, p := range leaving.pods {
		p.DeletionTimestamp = &until
	}
	w := newBusy(t, nodeShapes{{count: 2, cpu: "8", memory: "64Gi"}},
		in("default", "low", leaving), in("default", "low", run(gangOf("l", 0, 4, "2"), "node-1")))
	first, second := w.job(in("default", "high", gangOf("h", 4, 4, "2"))), w.job(in("default", "high", gangOf("i", 2, 2, "2")))
	set := w.policies(t, tiers("preempt", preempting), queue("default", 1))
	st := w.evict(t, set, config.Preempt, first)
	if len(st.Victims) != 0 || len(st.Placements) != 4 {
		t.Fatalf("evicts %v and places %d (%s), though the pods of node-0 leave anyway", victims(st), len(st.Placements), st.Why)
	}
	var kept []model.Nomination
	for _, p := range st.Placements {
		kept = append(kept, model.Nomination{UID: p.Task.UID, Node: p.Node})
	}
	w.state.Pipeline(kept, nil)
	if st := w.evict(t, set, config.Preempt, second); !slices.Equal(victims(st), []string{"l-2", "l-3"}) {
		t.Errorf("evicts %v (%s), want two pods of node-1: node-0 is promised", victims(st), st.Why)
	}
	// A pod that should have been gone long ago is not counted on.
	until.Time = now.Add(-time.Hour)
	w.state.ClearNominations(slices.Collect(maps.Keys(uids(kept)))...)
	for _, p := range leaving.pods {
		w.state.UpsertPod(p)
	}
	if st := w.evict(t, set, config.Preempt, first); !slices.Equal(victims(st), []string{"l-0", "l-1", "l-2", "l-3"}) {
		t.Errorf("evicts %v (%s), want all of node-1: those of node-0 do not go", victims(st), st.Why)
	}
}

func uids(nominations []model.Nomination) map[types.UID]bool {
	set := map[types.UID]bool{}
	for _, n := range nominations {
		set[n.UID] = true
	}
	return set
}
