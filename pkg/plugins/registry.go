// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plugins is the list of Caldera's scheduler plugins.
package plugins

import (
	"context"
	"fmt"

	apiruntime "k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	// The plugins' arguments are part of the configuration's scheme.
	_ "github.com/caldera-scheduler/caldera/pkg/apis/config/scheme"
	"github.com/caldera-scheduler/caldera/pkg/plugins/batchqueue"
	"github.com/caldera-scheduler/caldera/pkg/plugins/binpack"
	"github.com/caldera-scheduler/caldera/pkg/plugins/deviceshare"
	"github.com/caldera-scheduler/caldera/pkg/plugins/extender"
	"github.com/caldera-scheduler/caldera/pkg/plugins/gang"
	"github.com/caldera-scheduler/caldera/pkg/plugins/gangpreemption"
	"github.com/caldera-scheduler/caldera/pkg/plugins/mostrequested"
	"github.com/caldera-scheduler/caldera/pkg/plugins/networktopology"
	"github.com/caldera-scheduler/caldera/pkg/plugins/nodegroup"
	"github.com/caldera-scheduler/caldera/pkg/plugins/numaaware"
	"github.com/caldera-scheduler/caldera/pkg/plugins/reclaim"
	"github.com/caldera-scheduler/caldera/pkg/plugins/resourcestrategyfit"
	"github.com/caldera-scheduler/caldera/pkg/plugins/tasktopology"
	"github.com/caldera-scheduler/caldera/pkg/plugins/tdm"
	"github.com/caldera-scheduler/caldera/pkg/plugins/usage"
	"github.com/caldera-scheduler/caldera/pkg/scheduler/core"
)

// table has one line a plugin. To add one: create its folder, add its line, add its args to pkg/apis/config if it has any.
var table = []struct {
	name    string
	factory func(*core.Engine) runtime.PluginFactory
}{
	{batchqueue.Name, func(e *core.Engine) runtime.PluginFactory { return batchqueue.New(e) }},
	{binpack.Name, func(*core.Engine) runtime.PluginFactory { return binpack.New }},
	{deviceshare.Name, func(e *core.Engine) runtime.PluginFactory { return deviceshare.New(e) }},
	{extender.Name, func(e *core.Engine) runtime.PluginFactory { return extender.New(e) }},
	{gang.Name, func(e *core.Engine) runtime.PluginFactory { return gang.New(e) }},
	{gangpreemption.Name, func(e *core.Engine) runtime.PluginFactory { return gangpreemption.New(e) }},
	{mostrequested.Name, func(*core.Engine) runtime.PluginFactory { return mostrequested.New }},
	{networktopology.Name, func(e *core.Engine) runtime.PluginFactory { return networktopology.New(e) }},
	{nodegroup.Name, func(e *core.Engine) runtime.PluginFactory { return nodegroup.New(e) }},
	{numaaware.Name, func(e *core.Engine) runtime.PluginFactory { return numaaware.New(e) }},
	{reclaim.Name, func(e *core.Engine) runtime.PluginFactory { return reclaim.New(e) }},
	{resourcestrategyfit.Name, func(*core.Engine) runtime.PluginFactory { return resourcestrategyfit.New }},
	{tasktopology.Name, func(e *core.Engine) runtime.PluginFactory { return tasktopology.New(e) }},
	{tdm.Name, func(e *core.Engine) runtime.PluginFactory { return tdm.New(e) }},
	{usage.Name, func(*core.Engine) runtime.PluginFactory { return usage.New }},
}

// Registry returns the plugins, all of which share the engine and join it as they are made.
func Registry(e *core.Engine) runtime.Registry { return Joining(e, Factories(e)) }

// Factories returns what makes the plugins, all of which share the engine.
func Factories(e *core.Engine) runtime.Registry {
	registry := runtime.Registry{}
	for _, entry := range table {
		registry[entry.name] = entry.factory(e)
	}
	return registry
}

// Joining has the plugins of a registry join the engine as they are made.
func Joining(e *core.Engine, registry runtime.Registry) runtime.Registry {
	joined := make(runtime.Registry, len(registry))
	for name, factory := range registry {
		joined[name] = func(ctx context.Context, args apiruntime.Object, handle fwk.Handle) (fwk.Plugin, error) {
			plugin, err := factory(ctx, args, handle)
			if err == nil {
				e.Join(plugin)
			}
			return plugin, err
		}
	}
	return joined
}

// Outside is what a scheduler has besides what this module has: docs/extending.md.
type Outside struct {
	// Plugins are plugins of the scheduling framework, for the profiles.
	Plugins runtime.Registry
	// Policies are what tiers may name besides the built-in plugins.
	Policies map[string]core.PolicyFactory
}

// All returns what makes all plugins that are not upstream's. An error tells of a name that is given twice.
func (o Outside) All(e *core.Engine) (runtime.Registry, error) {
	factories := Factories(e)
	if err := factories.Merge(o.Plugins); err != nil {
		return nil, fmt.Errorf("adding plugins to the scheduler: %w", err)
	}
	return factories, nil
}
