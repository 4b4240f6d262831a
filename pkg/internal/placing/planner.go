// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package placing

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	upstream "k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"

	"github.com/caldera-scheduler/caldera/pkg/gang"
	"github.com/caldera-scheduler/caldera/pkg/model"
)

// Planner plans on nodes with pods by what they have room for, and by the plugin of a name and factory with a weight of 1. The tasks of a job
// are tried as arrange says; nil: by their names.
func Planner(
	t testing.TB, nodes []*corev1.Node, pods []*corev1.Pod, arrange func(*model.Job) gang.Arrangement,
	name string, factory frameworkruntime.PluginFactory,
) *gang.Planner {
	t.Helper()
	metrics.Register()
	registry := plugins.NewInTreeRegistry()
	registry[name] = factory
	f, err := frameworkruntime.NewFramework(t.Context(), registry, &schedulerconfig.KubeSchedulerProfile{
		SchedulerName: "volcano",
		Plugins: &schedulerconfig.Plugins{
			MultiPoint: schedulerconfig.PluginSet{Enabled: []schedulerconfig.Plugin{{Name: name, Weight: 1}}},
			PreFilter:  schedulerconfig.PluginSet{Enabled: []schedulerconfig.Plugin{{Name: upstream.NodeResourcesFit}}},
			Filter:     schedulerconfig.PluginSet{Enabled: []schedulerconfig.Plugin{{Name: upstream.NodeResourcesFit}}},
			QueueSort:  schedulerconfig.PluginSet{Enabled: []schedulerconfig.Plugin{{Name: upstream.PrioritySort}}},
			Bind:       schedulerconfig.PluginSet{Enabled: []schedulerconfig.Plugin{{Name: upstream.DefaultBinder}}},
		},
		PluginConfig: []schedulerconfig.PluginConfig{{Name: upstream.NodeResourcesFit, Args: &schedulerconfig.NodeResourcesFitArgs{
			ScoringStrategy: &schedulerconfig.ScoringStrategy{Type: schedulerconfig.LeastAllocated},
		}}},
	},
		frameworkruntime.WithClientSet(fake.NewClientset()),
		frameworkruntime.WithInformerFactory(informers.NewSharedInformerFactory(fake.NewClientset(), 0)),
		frameworkruntime.WithSnapshotSharedLister(cache.NewSnapshot(pods, nodes)),
		frameworkruntime.WithEventRecorder(&events.FakeRecorder{}),
		frameworkruntime.WithPodNominator(noNominations{}),
	)
	if err != nil {
		t.Fatal(err)
	}
	return planner(f, arrange)
}

// planner plans with a profile.
func planner(f framework.Framework, arrange func(*model.Job) gang.Arrangement) *gang.Planner {
	if arrange == nil {
		arrange = func(*model.Job) gang.Arrangement {
			return gang.Arrangement{Order: func(_, _ *model.Task) int { return 0 }, Part: func(*model.Task) int { return 0 }}
		}
	}
	return &gang.Planner{
		Arrange:            arrange,
		Framework:          f,
		NewState:           func() fwk.CycleState { return framework.NewCycleState() },
		NewPodInfo:         func(p *corev1.Pod) (fwk.PodInfo, error) { return framework.NewPodInfo(p) },
		RemovePod:          func(n fwk.NodeInfo, p *corev1.Pod) error { return n.RemovePod(klog.Background(), p) },
		SampleSize:         func(nodes int) int { return nodes },
		ReservationCanFail: func(*corev1.Pod) bool { return false },
	}
}
