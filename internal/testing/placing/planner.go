// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package placing

import (
	"context"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	v1 "k8s.io/kube-scheduler/config/v1"
	fwk "k8s.io/kube-scheduler/framework"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	upstream "k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"

	"github.com/caldera-scheduler/caldera/pkg/gang"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/plugins/planner"
)

// Planner plans on nodes with pods by upstream's default filters, and by the plugin of a name and factory alone among the scores. The tasks of a job
// are tried as arrange says; nil: by their names.
func Planner(
	t testing.TB, nodes []*corev1.Node, pods []*corev1.Pod, arrange func(*model.Job) gang.Arrangement,
	name string, factory frameworkruntime.PluginFactory,
) *gang.Planner {
	t.Helper()
	registry := plugins.NewInTreeRegistry()
	registry[name] = factory
	profile := DefaultProfile(t)
	profile.Plugins.MultiPoint.Enabled = append(profile.Plugins.MultiPoint.Enabled, schedulerconfig.Plugin{Name: name})
	profile.Plugins.PreScore, profile.Plugins.Score = schedulerconfig.PluginSet{}, schedulerconfig.PluginSet{}
	for _, p := range profile.Plugins.MultiPoint.Enabled {
		if p.Name != name {
			profile.Plugins.PreScore.Disabled = append(profile.Plugins.PreScore.Disabled, p)
			profile.Plugins.Score.Disabled = append(profile.Plugins.Score.Disabled, p)
		}
	}
	f, err := Framework(t.Context(), registry, profile, cache.NewSnapshot(pods, nodes), noNominations{})
	if err != nil {
		t.Fatal(err)
	}
	return planning(f, arrange)
}

// Framework is a profile on a snapshot, behind which there is an API server without objects. Its informers end with the context.
func Framework(
	ctx context.Context, registry frameworkruntime.Registry, profile *schedulerconfig.KubeSchedulerProfile, snapshot *cache.Snapshot, nominator fwk.PodNominator,
) (framework.Framework, error) {
	metrics.Register()
	client := fake.NewClientset()
	factory := informers.NewSharedInformerFactory(client, 0)
	f, err := frameworkruntime.NewFramework(ctx, registry, profile,
		frameworkruntime.WithClientSet(client),
		frameworkruntime.WithInformerFactory(factory),
		frameworkruntime.WithSnapshotSharedLister(snapshot),
		frameworkruntime.WithEventRecorder(&events.FakeRecorder{}),
		frameworkruntime.WithPodNominator(nominator),
	)
	if err != nil {
		return nil, fmt.Errorf("building a profile: %w", err)
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	return f, nil
}

// Default plans on a snapshot by upstream's default profile, with as many nodes scored as upstream does by default. No pod is nominated to a node.
func Default(ctx context.Context, snapshot *cache.Snapshot) (*gang.Planner, error) {
	profile, err := Profile()
	if err != nil {
		return nil, err
	}
	f, err := Framework(ctx, plugins.NewInTreeRegistry(), profile, snapshot, noNominations{})
	if err != nil {
		return nil, err
	}
	p := planning(f, nil)
	p.SampleSize = UpstreamSample
	return p, nil
}

// UpstreamSample is how many of so many nodes upstream scores where its configuration does not say.
func UpstreamSample(nodes int) int { return max(100, nodes*max(5, 50-nodes/125)/100) }

// planning is a planner with a profile.
func planning(f framework.Framework, arrange func(*model.Job) gang.Arrangement) *gang.Planner {
	if arrange == nil {
		arrange = func(*model.Job) gang.Arrangement {
			return gang.Arrangement{Order: func(_, _ *model.Task) int { return 0 }, Part: func(*model.Task) int { return 0 }}
		}
	}
	p := planner.New(f, planner.NewDevices(nil))
	p.Arrange = arrange
	p.SampleSize = func(nodes int) int { return nodes }
	p.ReservationCanFail = func(*corev1.Pod) bool { return false }
	p.Ours = func(types.UID) bool { return false } // nobody is nominated
	return p
}

// DefaultProfile is upstream's default profile without what needs a cluster behind it.
func DefaultProfile(t testing.TB) *schedulerconfig.KubeSchedulerProfile {
	t.Helper()
	profile, err := Profile()
	if err != nil {
		t.Fatal(err)
	}
	return profile
}

// Profile is the same for who is no test.
func Profile() (*schedulerconfig.KubeSchedulerProfile, error) {
	var versioned v1.KubeSchedulerConfiguration
	scheme.Scheme.Default(&versioned)
	var config schedulerconfig.KubeSchedulerConfiguration
	if err := scheme.Scheme.Convert(&versioned, &config, nil); err != nil {
		return nil, fmt.Errorf("converting upstream's defaults: %w", err)
	}
	profile := config.Profiles[0]
	without := sets.New(upstream.DynamicResources, upstream.NodeVolumeLimits, upstream.DefaultPreemption, upstream.GangScheduling)
	profile.Plugins.MultiPoint.Enabled = slices.DeleteFunc(profile.Plugins.MultiPoint.Enabled, func(p schedulerconfig.Plugin) bool {
		return without.Has(p.Name)
	})
	return &profile, nil
}
