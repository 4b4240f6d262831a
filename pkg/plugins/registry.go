// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plugins is the list of Caldera's scheduler plugins.
package plugins

import (
	"context"
	"fmt"

	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	// The plugins' arguments are part of the configuration's scheme.
	_ "github.com/caldera-scheduler/caldera/pkg/apis/config/scheme"
	"github.com/caldera-scheduler/caldera/pkg/plugins/batchqueue"
	"github.com/caldera-scheduler/caldera/pkg/plugins/binpack"
	"github.com/caldera-scheduler/caldera/pkg/plugins/deviceshare"
	"github.com/caldera-scheduler/caldera/pkg/plugins/extender"
	"github.com/caldera-scheduler/caldera/pkg/plugins/extender/votes"
	"github.com/caldera-scheduler/caldera/pkg/plugins/fragmentation"
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
	"github.com/caldera-scheduler/caldera/pkg/policy"
	"github.com/caldera-scheduler/caldera/pkg/preemption/reserve"
	"github.com/caldera-scheduler/caldera/pkg/queue/dispatch"
	"github.com/caldera-scheduler/caldera/pkg/scheduler/core"
)

// table has one line a plugin. To add one: create its folder, add its line, add its args to pkg/apis/config if it has any.
var table = []struct {
	name    string
	factory func(*core.Core) runtime.PluginFactory
}{
	{batchqueue.Name, func(c *core.Core) runtime.PluginFactory { return batchqueue.New(c) }},
	{binpack.Name, func(*core.Core) runtime.PluginFactory { return binpack.New }},
	{deviceshare.Name, func(c *core.Core) runtime.PluginFactory { return deviceshare.New(c.State, c.Clock()) }},
	{extender.Name, func(c *core.Core) runtime.PluginFactory { return extender.New(c.State, c.Clock()) }},
	{fragmentation.Name, func(c *core.Core) runtime.PluginFactory { return fragmentation.New(c.Clock()) }},
	{gang.Name, func(c *core.Core) runtime.PluginFactory { return gang.New(forGang(c)) }},
	{gangpreemption.Name, func(c *core.Core) runtime.PluginFactory { return gangpreemption.New(forPreemption(c)) }},
	{mostrequested.Name, func(*core.Core) runtime.PluginFactory { return mostrequested.New }},
	{networktopology.Name, func(c *core.Core) runtime.PluginFactory { return networktopology.New(c.State, c.Clients) }},
	{nodegroup.Name, func(c *core.Core) runtime.PluginFactory { return nodegroup.New(c.State) }},
	{numaaware.Name, func(c *core.Core) runtime.PluginFactory { return numaaware.New(c.State, c.Clients) }},
	{reclaim.Name, func(c *core.Core) runtime.PluginFactory { return reclaim.New(c) }},
	{resourcestrategyfit.Name, func(*core.Core) runtime.PluginFactory { return resourcestrategyfit.New }},
	{tasktopology.Name, func(c *core.Core) runtime.PluginFactory { return tasktopology.New(c.State) }},
	{tdm.Name, func(c *core.Core) runtime.PluginFactory { return tdm.New(c.State, c.Clock()) }},
	{usage.Name, func(c *core.Core) runtime.PluginFactory { return usage.New(c.State) }},
}

func forGang(c *core.Core) gang.Parts {
	return gang.Parts{
		State: c.State, Clock: c.Clock(), Rules: c.Rules, Lag: c.Lag, Attach: c.Attach, Binding: c.Binding,
		Turns:    func() *dispatch.Dispatcher { return c.Dispatcher },
		Keeper:   func() *reserve.Keeper { return c.Evictions },
		Suppress: c.Events.Suppress,
	}
}

func forPreemption(c *core.Core) gangpreemption.Parts {
	return gangpreemption.Parts{State: c.State, Clock: c.Clock(), Ordinary: func() *policy.Ordinary {
		if c.Dispatcher == nil {
			return nil
		}
		return c.Dispatcher.Ordinary()
	}}
}

// extenderVotes makes the voter of the extender of the tiers.
func extenderVotes(c *core.Core) core.VoterFactory {
	return func(ctx context.Context, handle fwk.Handle, entry *config.TierPlugin, path *field.Path) (core.Voter, bool, error) {
		v, places, err := votes.OfTier(ctx, handle, c.State, c.Clock(), entry, path)
		if v == nil {
			return nil, places, err
		}
		return v, places, err
	}
}

// Registry returns the plugins. They share the core, and join it as they are made.
func Registry(c *core.Core) runtime.Registry { return Joining(c, Factories(c)) }

// Factories returns what makes the plugins. They share the core. The extender is registered there as a voter.
func Factories(c *core.Core) runtime.Registry {
	c.RegisterVoter(config.PluginExtender, extenderVotes(c))
	registry := runtime.Registry{}
	for _, entry := range table {
		registry[entry.name] = entry.factory(c)
	}
	return registry
}

// Joining has the plugins of a registry join the core as they are made.
func Joining(c *core.Core, registry runtime.Registry) runtime.Registry {
	joined := make(runtime.Registry, len(registry))
	for name, factory := range registry {
		joined[name] = func(ctx context.Context, args apiruntime.Object, handle fwk.Handle) (fwk.Plugin, error) {
			plugin, err := factory(ctx, args, handle)
			if err == nil {
				c.Join(plugin)
			}
			return plugin, err
		}
	}
	return joined
}

// Extensions are the plugins and policies of a scheduler that are not in this module: docs/extending.md.
type Extensions struct {
	// Plugins are plugins of the scheduling framework, for the profiles.
	Plugins runtime.Registry
	// Policies are what tiers may name besides the built-in plugins.
	Policies map[string]core.PolicyFactory
}

// All returns what makes all plugins that are not upstream's. An error tells of a name that is given twice.
func (o Extensions) All(c *core.Core) (runtime.Registry, error) {
	factories := Factories(c)
	if err := factories.Merge(o.Plugins); err != nil {
		return nil, fmt.Errorf("adding plugins to the scheduler: %w", err)
	}
	return factories, nil
}
