// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang_test

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"

	"github.com/caldera-scheduler/caldera/internal/testing/builders"
	"github.com/caldera-scheduler/caldera/internal/testing/placing"
	"github.com/caldera-scheduler/caldera/pkg/gang"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/plugins/planner"
	"github.com/caldera-scheduler/caldera/pkg/policy"
)

// fixture is a snapshot of nodes and pods, and a planner with the plugins of upstream's default profile and extra ones.
type fixture struct {
	planner  *gang.Planner
	state    *model.State
	nodes    []*corev1.Node
	snapshot *cache.Snapshot
	// nominated are the pods that the scheduler's queue has as nominated to nodes.
	nominated *nominations
}

type nodeShape struct {
	count       int
	cpu, memory string
	// devices is how many of nvidia.com/gpu a node has, empty for none.
	devices string
	labels  map[string]string
	taints  []corev1.Taint
	// prefix of the names, default "node".
	prefix string
	// change makes one of them different from the others; nil: they are alike.
	change func(i int, n *corev1.Node)
}

type nodeShapes []nodeShape

// newFixture builds a fixture, whose profile has further plugins if any are given.
func newFixture(tb testing.TB, shapes nodeShapes, running []*corev1.Pod, further ...fwk.Plugin) *fixture {
	tb.Helper()
	return newFixtureAdding(tb, nil, shapes, running, further...)
}

// newFixtureAdding builds one whose profile adds terms about nodes to those of each pod; nil: none.
func newFixtureAdding(tb testing.TB, added *corev1.NodeAffinity, shapes nodeShapes, running []*corev1.Pod, further ...fwk.Plugin) *fixture {
	tb.Helper()
	var nodes []*corev1.Node
	for _, s := range shapes {
		for i := range s.count {
			nodes = append(nodes, s.node(i))
		}
	}
	nominated := &nominations{}
	snapshot := cache.NewSnapshot(running, nodes)
	registry, profile := plugins.NewInTreeRegistry(), placing.DefaultProfile(tb)
	for _, pl := range further {
		registry[pl.Name()] = func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) { return pl, nil }
		profile.Plugins.MultiPoint.Enabled = append(profile.Plugins.MultiPoint.Enabled, schedulerconfig.Plugin{Name: pl.Name()})
	}
	for _, c := range profile.PluginConfig {
		if args, ok := c.Args.(*schedulerconfig.NodeAffinityArgs); ok {
			args.AddedAffinity = added
		}
	}
	f, err := placing.Framework(tb.Context(), registry, profile, snapshot, nominated)
	if err != nil {
		tb.Fatal(err)
	}
	state := model.NewState()
	state.AddScheduler("volcano")
	for _, n := range nodes {
		state.UpsertNode(n)
	}
	for _, p := range running {
		state.UpsertPod(p)
	}
	p := planner.New(f, planner.NewDevices(nil))
	p.Arrange = func(*model.Job) gang.Arrangement { return gang.Arrangement{Order: byPriority, Part: alike} }
	p.SampleSize = placing.UpstreamSample
	p.ReservationCanFail = func(*corev1.Pod) bool { return false }
	p.Ours = func(pod types.UID) bool { return state.Task(pod) != nil }
	return &fixture{state: state, planner: p, nodes: nodes, snapshot: snapshot, nominated: nominated}
}

func byPriority(a, b *model.Task) int { return int(b.Priority) - int(a.Priority) }

func alike(*model.Task) int { return 0 }

// nominations is a nominator that is told which pods are nominated to which nodes.
type nominations struct {
	fwk.PodNominator
	pods map[string][]fwk.PodInfo
}

func (n *nominations) NominatedPodsForNode(node string) []fwk.PodInfo { return n.pods[node] }

func (s nodeShape) node(i int) *corev1.Node {
	prefix := s.prefix
	if prefix == "" {
		prefix = "node"
	}
	name := fmt.Sprintf("%s-%d", prefix, i)
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
		Spec:       corev1.NodeSpec{Taints: s.taints},
		Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse(s.cpu), corev1.ResourceMemory: resource.MustParse(s.memory),
			corev1.ResourcePods: resource.MustParse("110"),
		}},
	}
	if s.devices != "" {
		n.Status.Allocatable["nvidia.com/gpu"] = resource.MustParse(s.devices)
	}
	maps.Copy(n.Labels, s.labels)
	if s.change != nil {
		s.change(i, n)
	}
	return n
}

var created = metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))

func pod(name, cpu string) *corev1.Pod {
	p := builders.Pod("default", name).CreationTimestamp(created)
	if cpu == "" {
		return p.Container("").Obj()
	}
	return p.Req(builders.CPU(cpu)).Obj()
}

func onNode(p *corev1.Pod, node string) *corev1.Pod {
	p.Spec.NodeName = node
	p.Status.Phase = corev1.PodRunning
	return p
}

// gangSpec is a PodGroup and its pods.
type gangSpec struct {
	name  string
	group model.Group
	pods  []*corev1.Pod
}

// gangOf returns a gang of size equal pods.
func gangOf(name string, least, size int, cpu string, change ...func(i int, p *corev1.Pod)) gangSpec {
	g := gangSpec{name: name, group: model.Group{Queue: model.DefaultQueue, MinMember: least, Created: created.Time}}
	for i := range size {
		p := pod(fmt.Sprintf("%s-%d", name, i), cpu)
		p.Annotations[model.GroupNameAnnotation] = name
		p.Labels["gang"] = name
		for _, c := range change {
			c(i, p)
		}
		g.pods = append(g.pods, p)
	}
	return g
}

// labelledAlike takes the name of the gang out of the labels.
func labelledAlike(_ int, p *corev1.Pod) { p.Labels = map[string]string{"app": "x"} }

// job puts the gang into the model and returns its job.
func (w *fixture) job(g gangSpec) *model.Job {
	key := model.JobKey{Source: model.FromVolcano, Namespace: "default", Name: g.name}
	w.state.UpsertGroup(key, &g.group)
	for _, p := range g.pods {
		w.state.UpsertPod(p)
	}
	return w.state.Job(key)
}

func (w *fixture) plan(tb testing.TB, job *model.Job) gang.Plan {
	tb.Helper()
	plan, err := w.planner.Plan(tb.Context(), asking(job))
	if err != nil {
		tb.Fatal(err)
	}
	return plan
}

// asking asks for a job whose queue has room for all of it.
func asking(job *model.Job) gang.Request {
	return gang.Request{Job: job, Budget: func() gang.Budget { return &policy.Budget{} }}
}
