// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package usage_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	upstream "k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	"k8s.io/utils/clock"

	"github.com/caldera-scheduler/caldera/pkg/gang"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/plugins/usage"
	"github.com/caldera-scheduler/caldera/pkg/plugins/usage/source"
	"github.com/caldera-scheduler/caldera/pkg/policy"
)

type noNominations struct{ fwk.PodNominator }

func (noNominations) NominatedPodsForNode(string) []fwk.PodInfo { return nil }

// planner plans on nodes of 8 cores and 16 Gi, by their loads alone.
func planner(t *testing.T, pl *usage.Usage, names ...string) *gang.Planner {
	t.Helper()
	metrics.Register()
	has := corev1.ResourceList{"cpu": resource.MustParse("8"), "memory": resource.MustParse("16Gi"), "pods": resource.MustParse("110")}
	var nodes []*corev1.Node
	for _, name := range names {
		nodes = append(nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Capacity: has, Allocatable: has}})
	}
	registry := upstream.NewInTreeRegistry()
	registry[usage.Name] = func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) { return pl, nil }
	f, err := frameworkruntime.NewFramework(t.Context(), registry, &schedulerconfig.KubeSchedulerProfile{
		SchedulerName: "volcano",
		Plugins: &schedulerconfig.Plugins{
			MultiPoint: schedulerconfig.PluginSet{Enabled: []schedulerconfig.Plugin{{Name: usage.Name, Weight: 5}}},
			QueueSort:  schedulerconfig.PluginSet{Enabled: []schedulerconfig.Plugin{{Name: "PrioritySort"}}},
			Bind:       schedulerconfig.PluginSet{Enabled: []schedulerconfig.Plugin{{Name: "DefaultBinder"}}},
		},
	},
		frameworkruntime.WithClientSet(fake.NewClientset()),
		frameworkruntime.WithInformerFactory(informers.NewSharedInformerFactory(fake.NewClientset(), 0)),
		frameworkruntime.WithSnapshotSharedLister(cache.NewSnapshot(nil, nodes)),
		frameworkruntime.WithEventRecorder(&events.FakeRecorder{}),
		frameworkruntime.WithPodNominator(noNominations{}),
	)
	if err != nil {
		t.Fatal(err)
	}
	return &gang.Planner{
		Order:              func(*model.Task, *model.Task) int { return 0 },
		Framework:          f,
		NewState:           func() fwk.CycleState { return framework.NewCycleState() },
		NewPodInfo:         func(p *corev1.Pod) (fwk.PodInfo, error) { return framework.NewPodInfo(p) },
		RemovePod:          func(n fwk.NodeInfo, p *corev1.Pod) error { return n.RemovePod(klog.Background(), p) },
		SampleSize:         func(nodes int) int { return nodes },
		ReservationCanFail: func(*corev1.Pod) bool { return false },
	}
}

// gangOf is a job of pods of 2 cores and 4 Gi.
func gangOf(name string, size int) *model.Job {
	state := model.NewState()
	state.AddScheduler("volcano")
	key := model.JobKey{Source: model.FromVolcano, Namespace: "default", Name: name}
	state.UpsertGroup(key, &model.Group{Queue: model.DefaultQueue, MinMember: size, Created: now})
	requests := corev1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("4Gi")}
	for i := range size {
		member := fmt.Sprintf("%s-%d", name, i)
		state.UpsertPod(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "default", Name: member, UID: types.UID(member), Annotations: map[string]string{model.GroupNameAnnotation: name},
			},
			Spec: corev1.PodSpec{SchedulerName: "volcano", Containers: []corev1.Container{{
				Name: "c", Resources: corev1.ResourceRequirements{Requests: requests, Limits: requests},
			}}},
		})
	}
	return state.Job(key)
}

func TestMembersOfAGangThatArePlannedCountAsLoad(t *testing.T) {
	s := &changing{}
	tell := func(loads map[string]float64) {
		s.loads = map[string]source.Load{}
		for name, percent := range loads {
			sample := source.Sample{Percent: percent, Time: clock.RealClock{}.Now()}
			s.loads[name] = source.Load{CPU: sample, Memory: sample}
		}
	}
	pl := usage.Build(argsWith(nil), s, clock.RealClock{})
	p := planner(t, pl, "a", "b", "c")
	for i, step := range []struct {
		name  string
		loads map[string]float64
		want  map[string]int
	}{
		// A member is taken to use 17.5 %, so that the second finds 57.5 % on a, the third 61 % on b and the fourth 75 % on a.
		{"the members spread over the idle nodes", map[string]float64{"a": 40, "b": 43.5, "c": 90}, map[string]int{"a": 2, "b": 2}},
		{"the next gang goes by the loads of the next round", map[string]float64{"a": 90, "b": 90, "c": 10}, map[string]int{"c": 4}},
	} {
		tell(step.loads)
		if err := pl.Ask(t.Context()); err != nil {
			t.Fatal(err)
		}
		plan, err := p.Plan(t.Context(), gang.Request{Job: gangOf(fmt.Sprintf("g%d", i), 4), Budget: func() gang.Budget { return &policy.Budget{} }})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]int{}
		for _, placed := range plan.Placements {
			got[placed.Node]++
		}
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("%s: members by node (-want,+got)\n%s%s", step.name, diff, plan.Reason.Message)
		}
	}
}
