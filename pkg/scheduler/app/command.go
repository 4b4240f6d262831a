// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package app builds the scheduler's command line: upstream's options, set-up and run loop around our plugins.
package app

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apiserver/pkg/server"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/cli/globalflag"
	basecompatibility "k8s.io/component-base/compatibility"
	"k8s.io/component-base/featuregate"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/component-base/term"
	"k8s.io/component-base/version/verflag"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/caldera-scheduler/caldera/pkg/metrics"
	"github.com/caldera-scheduler/caldera/pkg/plugins"
	"github.com/caldera-scheduler/caldera/pkg/scheduler/core"
	"github.com/caldera-scheduler/caldera/pkg/scheduler/reload"
	"github.com/caldera-scheduler/caldera/pkg/scheduler/upstream/podstatus"
	"github.com/caldera-scheduler/caldera/pkg/scheduler/upstream/prequeue"
	"github.com/caldera-scheduler/caldera/pkg/scheduler/upstream/skiprecheck"
)

// flags are those that upstream does not have.
type flags struct {
	volcanoFile string
	latencies   bool
	views       viewFlags
	skew        skew
}

// New returns the command of the scheduler, with plugins and policies from outside of this module. It differs from upstream's in one default: pods that wait in Permit are
// not nominated through the API first, which would be one more write for each member of a gang.
func New(outside plugins.Extensions) *cobra.Command {
	SetFeatureDefaults()
	opts := options.NewOptions()
	var f flags
	cmd := &cobra.Command{
		Use:   "kube-scheduler",
		Short: "Schedule pods, one by one and in gangs",
		Long: `The Kubernetes scheduler with Caldera's plugins: gangs that start whole or not at all, queues, and everything
kube-scheduler does for ordinary pods. Flags, configuration and endpoints are those of kube-scheduler.`,
		Args: cobra.NoArgs,
		// Feature gates are set before RunE.
		PersistentPreRunE: func(*cobra.Command, []string) error { return opts.ComponentGlobalsRegistry.Set() },
		RunE:              func(cmd *cobra.Command, _ []string) error { return run(cmd, opts, &f, outside) },
	}
	sets := opts.Flags
	sets.FlagSet("misc").StringVar(&f.volcanoFile, volcanoFlag, "", "The path to a volcano-scheduler.conf: its actions, tiers and configurations take "+
		"the place of what --config says about them. Without --config the scheduler is a second one, for pods with schedulerName: volcano.")
	sets.FlagSet("metrics").BoolVar(&f.latencies, "volcano-metrics", false, "Serve Volcano's metrics of latencies too. "+
		"Those of single jobs are up to three series for each PodGroup that exists.")
	f.views.add(sets.FlagSet("visibility"))
	verflag.AddFlags(sets.FlagSet("global"))
	globalflag.AddGlobalFlags(sets.FlagSet("global"), cmd.Name(), logs.SkipLoggingConfigurationFlags())
	for _, set := range sets.FlagSets {
		cmd.Flags().AddFlagSet(set)
	}
	columns, _, _ := term.TerminalSize(cmd.OutOrStdout())
	cliflag.SetUsageAndHelpFunc(cmd, *sets, columns)
	return cmd
}

// SetFeatureDefaults sets the defaults of the feature gates in which this scheduler differs from upstream. It must be
// called before flags are built.
func SetFeatureDefaults() {
	utilruntime.Must(utilfeature.DefaultMutableFeatureGate.OverrideDefault(features.NominatedNodeNameForExpectation, false))
}

// refuseWorkloads says what to change if upstream's own scheduling of PodGroups is on. It keeps the pods of a group in its queue as one
// entity, where no queue of ours orders them, and places them by itself. Here Caldera reads Kubernetes' PodGroups.
func refuseWorkloads(gate featuregate.FeatureGate) error {
	if !gate.Enabled(features.GenericWorkload) {
		return nil
	}
	return fmt.Errorf("the feature gate %s is on in this process, in which kube-scheduler would place PodGroups beside Caldera: "+
		"leave it out of --feature-gates here; the API server and the controller manager keep it on", features.GenericWorkload)
}

// takeVolcano has upstream's set-up read what a volcano-scheduler.conf comes to; nil if none is given. Its
// tiers may name policies from outside. Done is to be called in the end.
func takeVolcano(opts *options.Options, file string, policies []string) (conf *volcano, done func(), err error) {
	if file == "" {
		return nil, func() {}, nil
	}
	if conf, err = newVolcano(file, opts.ConfigFile); err != nil {
		return nil, nil, err
	}
	conf.flags, conf.reached, conf.policies = opts.Flags.FlagSet("deprecated"), opts.Deprecated, policies
	c, err := conf.translate(conf.content)
	if err != nil {
		return nil, nil, err
	}
	opts.ConfigFile, done, err = asFile(c)
	return conf, done, err
}

// begin sets up what the process has one of: logging and feature gates.
func begin(cmd *cobra.Command, opts *options.Options, f *flags) (gate featuregate.FeatureGate, err error) {
	verflag.PrintAndExitIfRequested()
	if err := f.views.validate(); err != nil {
		return nil, err
	}
	gate = opts.ComponentGlobalsRegistry.FeatureGateFor(basecompatibility.DefaultKubeComponent)
	if err := logsapi.ValidateAndApply(opts.Logs, gate); err != nil {
		return nil, fmt.Errorf("setting up logging: %w", err)
	}
	cliflag.PrintFlags(cmd.Flags())
	// Not before, as it may have something to log, and what is logged depends on gates, too.
	if err := f.skew.find(cmd.Context(), cmd.Flags(), opts); err != nil {
		return nil, err
	}
	return gate, refuseWorkloads(gate)
}

// run is upstream's runCommand with our plugins.
func run(cmd *cobra.Command, opts *options.Options, f *flags, outside plugins.Extensions) error {
	gate, err := begin(cmd, opts, f)
	if err != nil {
		return err
	}
	conf, done, err := takeVolcano(opts, f.volcanoFile, slices.Sorted(maps.Keys(outside.Policies)))
	if err != nil {
		return err
	}
	defer done()
	tuneGC()
	ctx, end := context.WithCancelCause(server.SetupSignalContext())
	defer end(nil)
	tenure := newTenure()
	shared := core.New(core.Options{Policies: outside.Policies, Leads: tenure.holds, Binds: tenure.requests})
	factories, err := outside.All(shared)
	if err != nil {
		return err
	}
	cache := reload.NewPluginCache(factories)
	cc, sched, err := app.Setup(ctx, opts, func(r runtime.Registry) error { return r.Merge(plugins.Joining(shared, cache.Registry())) })
	if err != nil {
		return err
	}
	show(shared, f.latencies)
	Adapt(shared, sched)
	inForce := newInForce(&cc.ComponentConfig)
	if conf != nil {
		profiles := switchable(sched)
		cache.AdoptInitial(cc.ComponentConfig.Profiles, profiles)
		reloader := &reload.Reloader{
			PluginCache: cache, Core: shared, Profiles: profiles, File: conf.file, Content: conf.content, Translate: conf.again,
			Applied: inForce.set,
		}
		go reloader.Run(ctx)
	}
	if err := f.views.serve(shared, opts, cc, sched, inForce.text); err != nil {
		return err
	}
	if err := eventsBehindBinds(ctx, cc.KubeConfig, shared, sched); err != nil {
		return err
	}
	tenure.begin(cc.LeaderElection, sched)
	if err := shareObjects(cc.InformerFactory); err != nil {
		return err
	}
	if mutable, ok := gate.(featuregate.MutableFeatureGate); ok {
		mutable.AddMetrics()
	}
	opts.ComponentGlobalsRegistry.AddMetrics()
	f.skew.watch(ctx, end)
	return app.Run(ctx, cc, sched)
}

// show has the scheduler's endpoints show what it does. Without a batch profile there is nothing to show.
func show(c *core.Core, latencies bool) {
	if c.Dispatcher == nil {
		return
	}
	metrics.Register(c.Dispatcher.View())
	metrics.RegisterStarts(c.State, c.Clock())
	metrics.RegisterEvictions(c.Evictions.Ledger)
	if latencies {
		metrics.RegisterLatencies(c.State, c.Clock())
	}
}

// switchable lets the plugins of a scheduler's profiles be exchanged.
func switchable(sched *scheduler.Scheduler) map[string]*reload.ReloadableFramework {
	switches := make(map[string]*reload.ReloadableFramework, len(sched.Profiles))
	for name, f := range sched.Profiles {
		switches[name] = reload.NewReloadableFramework(f)
		sched.Profiles[name] = switches[name]
	}
	return switches
}

// Adapt fits a scheduler that does not run yet to the core of its plugins. It returns what writes the status of pods that found no node. Without a
// batch profile there is nothing to fit, and it returns nil.
func Adapt(c *core.Core, sched *scheduler.Scheduler) *podstatus.Writer {
	if c.Dispatcher == nil {
		return nil
	}
	prequeue.Install(c, sched)
	skiprecheck.Install(c, sched)
	return podstatus.Install(c.Clock(), sched)
}
