// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package reload_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	fwk "k8s.io/kube-scheduler/framework"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	upstream "k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"

	"github.com/caldera-scheduler/caldera/internal/testing/placing"
	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/scheduler/reload"
)

// zones is a plugin that takes all pods, and tells which one it is.
type zones struct {
	number int
	ctx    context.Context
	said   *[]string
}

func (*zones) Name() string { return "Zones" }

func (z *zones) Filter(context.Context, fwk.CycleState, *corev1.Pod, fwk.NodeInfo) *fwk.Status {
	*z.said = append(*z.said, fmt.Sprintf("filter %d", z.number))
	return nil
}

func (z *zones) PreBind(context.Context, fwk.CycleState, *corev1.Pod, string) *fwk.Status {
	*z.said = append(*z.said, fmt.Sprintf("prebind %d", z.number))
	return nil
}

func (z *zones) PreBindPreFlight(context.Context, fwk.CycleState, *corev1.Pod, string) (*fwk.PreBindPreFlightResult, *fwk.Status) {
	return nil, nil
}

// bench is a cache, and a profile made of it.
type bench struct {
	cache   *reload.PluginCache
	profile *reload.ReloadableFramework
	made    []*zones
	said    []string
}

// profileWith is a profile with the plugin and arguments of it; a zone named "wrong" is refused.
func profileWith(t *testing.T, zone string) schedulerconfig.KubeSchedulerProfile {
	p := placing.DefaultProfile(t)
	// Before the others, some of which refuse the pod of the tests.
	p.Plugins.MultiPoint.Enabled = slices.Insert(p.Plugins.MultiPoint.Enabled, 0, schedulerconfig.Plugin{Name: "Zones"})
	p.PluginConfig = append(p.PluginConfig, schedulerconfig.PluginConfig{Name: "Zones", Args: &config.TDMArgs{RevocableZones: map[string]string{zone: ""}}})
	return *p
}

func newBench(t *testing.T) *bench {
	t.Helper()
	metrics.Register()
	b := &bench{}
	b.cache = reload.NewPluginCache(frameworkruntime.Registry{"Zones": func(ctx context.Context, args runtime.Object, _ fwk.Handle) (fwk.Plugin, error) {
		if _, wrong := args.(*config.TDMArgs).RevocableZones["wrong"]; wrong {
			return nil, errors.New("the zone is wrong")
		}
		z := &zones{number: len(b.made), ctx: ctx, said: &b.said}
		b.made = append(b.made, z)
		return z, nil
	}})
	registry := upstream.NewInTreeRegistry()
	if err := registry.Merge(b.cache.Registry()); err != nil {
		t.Fatal(err)
	}
	client := fake.NewClientset()
	profile := profileWith(t, "a")
	f, err := frameworkruntime.NewFramework(t.Context(), registry, &profile,
		frameworkruntime.WithClientSet(client),
		frameworkruntime.WithInformerFactory(informers.NewSharedInformerFactory(client, 0)),
		frameworkruntime.WithSnapshotSharedLister(cache.NewSnapshot(nil, nil)),
		frameworkruntime.WithEventRecorder(&events.FakeRecorder{}),
		frameworkruntime.WithWaitingPods(frameworkruntime.NewWaitingPodsMap()),
	)
	if err != nil {
		t.Fatal(err)
	}
	b.profile = reload.NewReloadableFramework(f)
	b.cache.AdoptInitial([]schedulerconfig.KubeSchedulerProfile{profile}, map[string]*reload.ReloadableFramework{profile.SchedulerName: b.profile})
	return b
}

// change has the profile use the plugin with a zone.
func (b *bench) change(t *testing.T, zone string) error {
	t.Helper()
	profile := profileWith(t, zone)
	a, err := b.cache.Assemble(t.Context(), []schedulerconfig.KubeSchedulerProfile{profile}, map[string]*reload.ReloadableFramework{profile.SchedulerName: b.profile}, 1)
	if err != nil {
		return err
	}
	b.profile.To(a.Frameworks[profile.SchedulerName])
	a.Use()
	return nil
}

// running are the numbers of the plugins that have not been stopped.
func (b *bench) running() []int {
	var numbers []int
	for _, z := range b.made {
		if z.ctx.Err() == nil {
			numbers = append(numbers, z.number)
		}
	}
	return numbers
}

func TestPluginsWithTheSameArgumentsAreKeptAndOthersStopped(t *testing.T) {
	b := newBench(t)
	for _, step := range []struct {
		name, zone string
		made       int
		running    []int
	}{
		{"the same", "a", 1, []int{0}},
		{"others", "b", 2, []int{1}},
		{"the same as just now", "b", 2, []int{1}},
		{"the first again", "a", 3, []int{2}},
	} {
		if err := b.change(t, step.zone); err != nil {
			t.Fatal(err)
		}
		if len(b.made) != step.made || !slices.Equal(b.running(), step.running) {
			t.Errorf("%s: %d were made, of which %v run, want %d and %v", step.name, len(b.made), b.running(), step.made, step.running)
		}
	}
}

func TestAProfileThatCannotBeBuiltChangesNothing(t *testing.T) {
	b := newBench(t)
	err := b.change(t, "wrong")
	const want = `building the profile "default-scheduler": initializing plugin "Zones": the zone is wrong: correct its arguments, or restart the scheduler if they are right`
	if err == nil || err.Error() != want {
		t.Errorf("error is %v, want %s", err, want)
	}
	if !slices.Equal(b.running(), []int{0}) {
		t.Errorf("%v run, want the first", b.running())
	}
	profile := profileWith(t, "a")
	profile.SchedulerName = "another"
	_, err = b.cache.Assemble(t.Context(), []schedulerconfig.KubeSchedulerProfile{profile}, nil, 1)
	if err == nil || err.Error() != `profile "another" is new: restart the scheduler to have it` {
		t.Errorf("error is %v", err)
	}
}

// TestACycleGoesOnWithThePluginsItBeganWith: a pod is bound by the plugins that filtered for it.
func TestACycleGoesOnWithThePluginsItBeganWith(t *testing.T) {
	b := newBench(t)
	pod, node := &corev1.Pod{}, framework.NewNodeInfo()
	node.SetNode(&corev1.Node{})
	begin := func() fwk.CycleState {
		state := framework.NewCycleState()
		b.profile.RunPreFilterPlugins(t.Context(), state, pod)
		return state
	}
	before := begin()
	if err := b.change(t, "b"); err != nil {
		t.Fatal(err)
	}
	after := begin()
	b.profile.RunFilterPlugins(t.Context(), before, pod, node)
	b.profile.RunFilterPlugins(t.Context(), after, pod, node)
	b.profile.RunPreBindPlugins(t.Context(), before, pod, "n")
	b.profile.RunPreBindPlugins(t.Context(), after, pod, "n")
	if diff := cmp.Diff([]string{"filter 0", "filter 1", "prebind 0", "prebind 1"}, b.said); diff != "" {
		t.Errorf("(-want,+got)\n%s", diff)
	}
}
