// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package reload

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	v1 "k8s.io/kube-scheduler/config/v1"
	fwk "k8s.io/kube-scheduler/framework"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/backend/api_dispatcher"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	upstream "k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"

	"github.com/caldera-scheduler/caldera/pkg/plugins/names"
)

// PluginCache makes the plugins of profiles, and keeps those whose arguments stay the same: they may follow something outside, or hold
// what they promised.
type PluginCache struct {
	factories frameworkruntime.Registry

	// recorder takes the measurements of all frameworks that are assembled.
	recorder func(context.Context) *metrics.MetricAsyncRecorder

	// mu guards parts: upstream makes the first ones.
	mu    sync.Mutex
	parts []*part
}

// part is a plugin that was made.
type part struct {
	profile, name string
	args          runtime.Object
	plugin        fwk.Plugin
	// stop ends what the plugin does by itself.
	stop context.CancelFunc
}

// NewPluginCache returns a cache with the factories of plugins besides upstream's.
func NewPluginCache(factories frameworkruntime.Registry) *PluginCache {
	k := &PluginCache{factories: factories}
	var once sync.Once
	var recorder *metrics.MetricAsyncRecorder
	k.recorder = func(ctx context.Context) *metrics.MetricAsyncRecorder {
		once.Do(func() { recorder = metrics.NewMetricsAsyncRecorder(recordedMetrics, time.Second, ctx.Done()) })
		return recorder
	}
	return k
}

// Registry makes the plugins of the first profiles.
func (k *PluginCache) Registry() frameworkruntime.Registry {
	registry := frameworkruntime.Registry{}
	for name, factory := range k.factories {
		registry[name] = func(ctx context.Context, args runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
			p, err := newPart(ctx, name, factory, args, handle)
			if err != nil {
				return nil, err
			}
			k.mu.Lock()
			defer k.mu.Unlock()
			k.parts = append(k.parts, p)
			return p.plugin, nil
		}
	}
	return registry
}

func newPart(ctx context.Context, name string, factory frameworkruntime.PluginFactory, args runtime.Object, handle fwk.Handle) (*part, error) {
	stop := context.CancelFunc(func() {})
	if name != names.BatchQueue { // It starts what all plugins share, which lives as long as the scheduler.
		ctx, stop = context.WithCancel(ctx)
	}
	plugin, err := factory(ctx, args, handle)
	if err != nil {
		stop()
		return nil, err
	}
	return &part{profile: handle.ProfileName(), name: name, args: args, plugin: plugin, stop: stop}, nil
}

// AdoptInitial has the cache keep upstream's plugins of the first profiles, too: some of them follow objects for ever, or can be made once
// only. Those that upstream's framework does not show are made again; they hold nothing.
func (k *PluginCache) AdoptInitial(profiles []schedulerconfig.KubeSchedulerProfile, frameworks map[string]*ReloadableFramework) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range profiles {
		p := &profiles[i]
		for _, plugin := range frameworks[p.SchedulerName].EnqueueExtensions() {
			if _, own := k.factories[plugin.Name()]; own || !shown(plugin) {
				continue
			}
			taken := &part{profile: p.SchedulerName, name: plugin.Name(), plugin: plugin, stop: func() {}}
			for _, given := range p.PluginConfig {
				if given.Name == taken.name {
					taken.args = given.Args
				}
			}
			k.parts = append(k.parts, taken)
		}
	}
}

// shown reports whether it is the plugin itself: in the place of one that waits for no events the framework shows something else.
func shown(plugin fwk.Plugin) bool {
	switch plugin.(type) {
	case fwk.PreEnqueuePlugin, fwk.FilterPlugin:
		return true
	}
	return false
}

// Assembly is frameworks for the profiles of a configuration, not in use yet.
type Assembly struct {
	// Frameworks are they by the profiles' names.
	Frameworks map[string]framework.Framework

	cache       *PluginCache
	kept, fresh []*part
}

// Plugins are those of all profiles that are not upstream's, and those of upstream's that were made anew.
func (a *Assembly) Plugins() []fwk.Plugin {
	var all []fwk.Plugin
	for _, p := range slices.Concat(a.kept, a.fresh) {
		all = append(all, p.plugin)
	}
	return all
}

// Use stops the plugins of before that are not part of the assembly.
func (a *Assembly) Use() {
	a.cache.mu.Lock()
	defer a.cache.mu.Unlock()
	for _, p := range a.cache.parts {
		if !slices.Contains(a.kept, p) {
			p.stop()
		}
	}
	a.cache.parts = slices.Concat(a.kept, a.fresh)
}

// Discard stops the plugins that were made for the assembly.
func (a *Assembly) Discard() {
	for _, p := range a.fresh {
		p.stop()
	}
}

// Assemble builds frameworks for profiles, each beside the one that has its name. What is not about plugins they have from there.
func (k *PluginCache) Assemble(ctx context.Context, profiles []schedulerconfig.KubeSchedulerProfile, beside map[string]*ReloadableFramework, parallelism int32) (*Assembly, error) {
	a := &Assembly{Frameworks: map[string]framework.Framework{}, cache: k}
	for i := range profiles {
		p := &profiles[i]
		first := beside[p.SchedulerName]
		if first == nil {
			a.Discard()
			return nil, fmt.Errorf("profile %q is new: restart the scheduler to have it", p.SchedulerName)
		}
		f, err := a.framework(ctx, p, first.Framework, parallelism)
		if err != nil {
			a.Discard()
			return nil, fmt.Errorf("building the profile %q: %w", p.SchedulerName, err)
		}
		a.Frameworks[p.SchedulerName] = f
	}
	return a, nil
}

func (a *Assembly) framework(ctx context.Context, p *schedulerconfig.KubeSchedulerProfile, first framework.Framework, parallelism int32) (framework.Framework, error) {
	registry := frameworkruntime.Registry{}
	for _, factories := range []frameworkruntime.Registry{upstream.NewInTreeRegistry(), a.cache.factories} {
		for name, factory := range factories {
			registry[name] = a.factory(name, factory)
		}
	}
	dispatcher, _ := first.APIDispatcher().(*apidispatcher.APIDispatcher)
	f, err := frameworkruntime.NewFramework(ctx, registry, p,
		frameworkruntime.WithComponentConfigVersion(v1.SchemeGroupVersion.String()),
		frameworkruntime.WithClientSet(first.ClientSet()),
		frameworkruntime.WithKubeConfig(first.KubeConfig()),
		frameworkruntime.WithEventRecorder(first.EventRecorder()),
		frameworkruntime.WithInformerFactory(first.SharedInformerFactory()),
		frameworkruntime.WithSharedDRAManager(first.SharedDRAManager()),
		frameworkruntime.WithSharedCSIManager(first.SharedCSIManager()),
		frameworkruntime.WithSnapshotSharedLister(first.SnapshotSharedLister()),
		frameworkruntime.WithMutableSnapshotLister(first.MutableSnapshotSharedLister()),
		frameworkruntime.WithPodNominator(first),
		frameworkruntime.WithPodActivator(first),
		frameworkruntime.WithExtenders(first.Extenders()),
		frameworkruntime.WithParallelism(int(parallelism)),
		frameworkruntime.WithAPIDispatcher(dispatcher),
		frameworkruntime.WithPodGroupManager(first.PodGroupManager()),
		frameworkruntime.WithMetricsRecorder(a.cache.recorder(ctx)),
		frameworkruntime.WithWaitingPods(frameworkruntime.NewWaitingPodsMap()),
		frameworkruntime.WithPodsInPreBind(frameworkruntime.NewPodsInPreBindMap()),
	)
	if err != nil {
		return nil, err
	}
	f.SetAPICacher(first.APICacher())
	return f, nil
}

// recordedMetrics is upstream's buffer for measurements.
const recordedMetrics = 1000

// factory takes a plugin of before if its arguments are the same, else it makes a new one.
func (a *Assembly) factory(name string, factory frameworkruntime.PluginFactory) frameworkruntime.PluginFactory {
	return func(ctx context.Context, args runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
		if p := a.cache.find(handle.ProfileName(), name, args); p != nil {
			a.kept = append(a.kept, p)
			return p.plugin, nil
		}
		p, err := newPart(ctx, name, factory, args, handle)
		if err != nil {
			return nil, fmt.Errorf("%w: correct its arguments, or restart the scheduler if they are right", err)
		}
		a.fresh = append(a.fresh, p)
		return p.plugin, nil
	}
}

// find returns the plugin that was made with the same arguments; nil when there is none that can be kept.
func (k *PluginCache) find(profile, name string, args runtime.Object) *part {
	if name == names.Gang {
		// It runs the other plugins of the framework it was made for.
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	i := slices.IndexFunc(k.parts, func(p *part) bool {
		return p.profile == profile && p.name == name && equality.Semantic.DeepEqual(p.args, args)
	})
	if i < 0 {
		return nil
	}
	return k.parts[i]
}
