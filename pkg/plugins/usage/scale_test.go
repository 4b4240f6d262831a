// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package usage_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	fwk "k8s.io/kube-scheduler/framework"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	upstream "k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	"k8s.io/utils/clock"

	"github.com/caldera-scheduler/caldera/internal/testing/builders"
	"github.com/caldera-scheduler/caldera/pkg/node/load"
	"github.com/caldera-scheduler/caldera/pkg/plugins/binpack"
	"github.com/caldera-scheduler/caldera/pkg/plugins/usage"
	"github.com/caldera-scheduler/caldera/pkg/volcano/profile"
)

// TestLoadsAndPackingAreOnOneScale is example 3 of the scale (reference 3.3): usage gives P 300 and Q 285, binpack 40 and 80, so that
// Q is better. Scores that were spread over the nodes there are to choose from would turn it round. Weights and arguments are
// those that the tiers become.
func TestLoadsAndPackingAreOnOneScale(t *testing.T) {
	metrics.Register()
	c, err := profile.Read("volcano-scheduler.conf", []byte(`
metrics: {type: prometheus, address: "http://prometheus:9090"}
tiers:
- plugins:
  - name: gang
  - name: usage
  - name: binpack
`), profile.Only)
	if err != nil {
		t.Fatal(err)
	}
	tiers := &c.Profiles[0]
	p := &schedulerconfig.KubeSchedulerProfile{SchedulerName: tiers.SchedulerName, Plugins: &schedulerconfig.Plugins{
		QueueSort: schedulerconfig.PluginSet{Enabled: []schedulerconfig.Plugin{{Name: "PrioritySort"}}},
		Bind:      schedulerconfig.PluginSet{Enabled: []schedulerconfig.Plugin{{Name: "DefaultBinder"}}},
	}}
	for _, plugin := range tiers.Plugins.MultiPoint.Enabled {
		if plugin.Name == usage.Name || plugin.Name == binpack.Name {
			p.Plugins.MultiPoint.Enabled = append(p.Plugins.MultiPoint.Enabled, plugin)
		}
	}
	for _, given := range tiers.PluginConfig {
		if given.Name == binpack.Name {
			p.PluginConfig = append(p.PluginConfig, given)
		}
	}
	loads := told{loads: map[string]load.Load{}}
	for name, memory := range map[string]float64{"P": 50, "Q": 56} {
		at := clock.RealClock{}.Now()
		loads.loads[name] = load.Load{CPU: load.Sample{Percent: 30, Time: at}, Memory: load.Sample{Percent: memory, Time: at}}
	}
	pl := usage.Build(argsWith(nil), &changing{told: loads}, clock.RealClock{})
	if err := pl.Ask(t.Context()); err != nil {
		t.Fatal(err)
	}
	registry := upstream.NewInTreeRegistry()
	registry[usage.Name] = func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) { return pl, nil }
	registry[binpack.Name] = binpack.New
	nodes, running := []*corev1.Node{nodeOfTen("P"), nodeOfTen("Q")}, []*corev1.Pod{podOf("p", "P", "3"), podOf("q", "Q", "7")}
	f, err := frameworkruntime.NewFramework(t.Context(), registry, p,
		frameworkruntime.WithSnapshotSharedLister(cache.NewSnapshot(running, nodes)), frameworkruntime.WithEventRecorder(&events.FakeRecorder{}))
	if err != nil {
		t.Fatal(err)
	}
	infos, err := f.SnapshotSharedLister().NodeInfos().List()
	if err != nil {
		t.Fatal(err)
	}
	state, pod := framework.NewCycleState(), podOf("new", "", "1")
	f.RunPreFilterPlugins(t.Context(), state, pod)
	f.RunPreScorePlugins(t.Context(), state, pod, infos)
	scores, status := f.RunScorePlugins(t.Context(), state, pod, infos)
	if !status.IsSuccess() {
		t.Fatal(status.AsError())
	}
	got := map[string]int64{}
	for _, s := range scores {
		got[s.Name] = s.TotalScore
	}
	if diff := cmp.Diff(map[string]int64{"P": 340, "Q": 365}, got); diff != "" {
		t.Errorf("scores (-want,+got)\n%s", diff)
	}
}

func nodeOfTen(name string) *corev1.Node {
	has := corev1.ResourceList{"cpu": resource.MustParse("10"), "memory": resource.MustParse("64Gi"), "pods": resource.MustParse("110")}
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Capacity: has, Allocatable: has}}
}

// podOf is a pod that asks for cores only; one on a node has run for long.
func podOf(name, node, cpu string) *corev1.Pod {
	p := builders.Pod("default", name).Req(builders.CPU(cpu))
	if node != "" {
		p.Node(node).Phase(corev1.PodRunning).StartTime(metav1.NewTime(now))
	}
	return p.Obj()
}
