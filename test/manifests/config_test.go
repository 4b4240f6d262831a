// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

func TestBatchProfileRunsPluginsInOrder(t *testing.T) {
	profile := profiles(t, "config/scheduler-config.yaml")["volcano"]
	run := expand(t, profile)

	if got := pluginNames(run.QueueSort); !slices.Equal(got, []string{"BatchQueue"}) {
		t.Errorf("queueSort runs %q, want only BatchQueue", got)
	}
	if got := pluginNames(run.PreEnqueue); !slices.Contains(got, "BatchQueue") {
		t.Errorf("preEnqueue runs %q, want BatchQueue among them", got)
	}
	for point, set := range map[string]schedulerconfig.PluginSet{"preFilter": run.PreFilter, "bind": run.Bind} {
		if got := pluginNames(set); len(got) < 2 || got[0] != "Gang" {
			t.Errorf("%s runs %q, want Gang first and upstream's plugins after it", point, got)
		}
	}
	for point, set := range map[string]schedulerconfig.PluginSet{"reserve": run.Reserve, "permit": run.Permit, "postBind": run.PostBind} {
		if got := pluginNames(set); !slices.Contains(got, "Gang") {
			t.Errorf("%s runs %q, want Gang among them", point, got)
		}
	}
	got := pluginNames(run.PostFilter)
	if len(got) < 2 || !slices.Equal(got[:2], []string{"Reclaim", "Gang"}) || slices.Contains(got, names.DefaultPreemption) {
		t.Errorf("postFilter runs %q, want Reclaim and Gang first, and no DefaultPreemption", got)
	}
}

func TestOrdinaryProfileDiffersFromUpstreamInItsQueueAndInWhomItPreempts(t *testing.T) {
	profile := profiles(t, "config/scheduler-config.yaml")["default-scheduler"]
	run := expand(t, profile)
	for point, set := range map[string]schedulerconfig.PluginSet{"preFilter": run.PreFilter, "reserve": run.Reserve, "bind": run.Bind} {
		if got := pluginNames(set); slices.Contains(got, "Gang") {
			t.Errorf("%s runs %q, want no Gang", point, got)
		}
	}
	if got := pluginNames(run.PostFilter); !slices.Equal(got, []string{"GangPreemption"}) {
		t.Errorf("postFilter runs %q, want GangPreemption alone", got)
	}
}

func TestVolcanoOnlyIsTheSameProfile(t *testing.T) {
	both := profiles(t, "config/scheduler-config.yaml")
	alone := profiles(t, "config/volcano-only.yaml")
	if diff := cmp.Diff(map[string]*schedulerconfig.KubeSchedulerProfile{"volcano": both["volcano"]}, alone); diff != "" {
		t.Errorf("volcano-only.yaml differs from profile volcano of scheduler-config.yaml (-both +alone):\n%s", diff)
	}
}

func profiles(t *testing.T, name string) map[string]*schedulerconfig.KubeSchedulerProfile {
	t.Helper()
	byName := map[string]*schedulerconfig.KubeSchedulerProfile{}
	config := loadConfig(t, name)
	for i := range config.Profiles {
		byName[config.Profiles[i].SchedulerName] = &config.Profiles[i]
	}
	return byName
}

// expand lets the real framework decide what runs at each extension point and in which order. The plugins are stand-ins:
// the order depends on their names and on the points they implement, not on what they do.
func expand(t *testing.T, profile *schedulerconfig.KubeSchedulerProfile) *schedulerconfig.Plugins {
	t.Helper()
	if profile == nil {
		t.Fatal("no such profile")
	}
	registry := frameworkruntime.Registry{
		"BatchQueue": factory(&queuePlugin{name: "BatchQueue"}),
		"Gang":       factory(&gangPlugin{cyclePlugin: cyclePlugin{name: "Gang"}}),
	}
	for _, plugin := range profile.Plugins.MultiPoint.Enabled {
		switch plugin.Name {
		case "BatchQueue", "Gang":
		case names.PrioritySort:
			registry[plugin.Name] = factory(&queuePlugin{name: plugin.Name})
		case names.DefaultPreemption, "Reclaim", "GangPreemption":
			registry[plugin.Name] = factory(&preemptionPlugin{name: plugin.Name})
		default:
			registry[plugin.Name] = factory(&cyclePlugin{name: plugin.Name})
		}
	}
	metrics.Register() // The framework counts from its first moment on.
	framework, err := frameworkruntime.NewFramework(t.Context(), registry, profile)
	if err != nil {
		t.Fatal(err)
	}
	return framework.ListPlugins()
}

func factory(plugin fwk.Plugin) frameworkruntime.PluginFactory {
	return func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) { return plugin, nil }
}

func pluginNames(set schedulerconfig.PluginSet) []string {
	var all []string
	for _, plugin := range set.Enabled {
		all = append(all, plugin.Name)
	}
	return all
}

type queuePlugin struct {
	name string
	fwk.QueueSortPlugin
	fwk.PreEnqueuePlugin
}

func (pl *queuePlugin) Name() string { return pl.name }

type cyclePlugin struct {
	name string
	fwk.PreFilterPlugin
	fwk.ReservePlugin
	fwk.PermitPlugin
	fwk.BindPlugin
	fwk.PostBindPlugin
}

func (pl *cyclePlugin) Name() string { return pl.name }

// gangPlugin runs where Gang does.
type gangPlugin struct {
	cyclePlugin
	fwk.PostFilterPlugin
}

func (pl *gangPlugin) Name() string { return pl.name }

type preemptionPlugin struct {
	name string
	fwk.PostFilterPlugin
}

func (pl *preemptionPlugin) Name() string { return pl.name }
