// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"context"
	"testing"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	"k8s.io/kubernetes/pkg/scheduler"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/profile"

	"github.com/caldera-scheduler/caldera/manifests"
	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/plugins"
	"github.com/caldera-scheduler/caldera/pkg/plugins/names"
	"github.com/caldera-scheduler/caldera/pkg/scheduler/app"
	"github.com/caldera-scheduler/caldera/pkg/scheduler/core"
	"github.com/caldera-scheduler/caldera/pkg/visibility"
	volcanoprofile "github.com/caldera-scheduler/caldera/pkg/volcano/profile"
	"github.com/caldera-scheduler/caldera/pkg/volcano/schedulerconf"
)

func init() { app.SetFeatureDefaults() }

// StartScheduler runs the scheduler with the shipped configuration until the test ends or stop is called; stop returns
// when it has ended.
func (e *Env) StartScheduler(t *testing.T) (stop func()) {
	t.Helper()
	return e.startScheduler(t, Config(t))
}

// StartSchedulerWith does the same with the queues and tiers of a volcano-scheduler.conf, and with further changes.
func (e *Env) StartSchedulerWith(t *testing.T, conf string, changes ...func(*schedulerconfig.KubeSchedulerConfiguration)) (stop func()) {
	t.Helper()
	args, err := schedulerconf.Parse([]byte(conf))
	if err != nil {
		t.Fatal(err)
	}
	c := Config(t)
	for i := range c.Profiles {
		for k := range c.Profiles[i].PluginConfig {
			if plugin := &c.Profiles[i].PluginConfig[k]; plugin.Name == names.BatchQueue {
				plugin.Args = args.DeepCopy()
			}
		}
	}
	for _, change := range changes {
		change(c)
	}
	return e.startScheduler(t, c)
}

// StartSchedulerBy does the same with all that a volcano-scheduler.conf says, as --volcano-conf does: the plugins of the profile, too.
func (e *Env) StartSchedulerBy(t *testing.T, conf string) (stop func()) {
	t.Helper()
	c, err := volcanoprofile.Read("volcano-scheduler.conf", []byte(conf), volcanoprofile.Only)
	if err != nil {
		t.Fatal(err)
	}
	return e.startScheduler(t, c)
}

// Queues changes what queues and jobs are decided by.
func Queues(change func(*config.BatchQueueArgs)) func(*schedulerconfig.KubeSchedulerConfiguration) {
	return func(c *schedulerconfig.KubeSchedulerConfiguration) { arguments(c, change) }
}

// Evictions changes by what evictions are carried out.
func Evictions(change func(*config.ReclaimArgs)) func(*schedulerconfig.KubeSchedulerConfiguration) {
	return func(c *schedulerconfig.KubeSchedulerConfiguration) { arguments(c, change) }
}

// arguments changes the arguments of one type in all profiles.
func arguments[A any](c *schedulerconfig.KubeSchedulerConfiguration, change func(*A)) {
	for i := range c.Profiles {
		for _, plugin := range c.Profiles[i].PluginConfig {
			if args, ok := any(plugin.Args).(*A); ok {
				change(args)
			}
		}
	}
}

func (e *Env) startScheduler(t *testing.T, c *schedulerconfig.KubeSchedulerConfiguration) (stop func()) {
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.Verbosity(1)))
	ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), logger))
	run := e.build(ctx, t, c)
	done := make(chan struct{})
	go func() {
		defer close(done)
		run()
	}()
	stop = func() {
		cancel()
		<-done
	}
	t.Cleanup(stop)
	return stop
}

// Config reads the shipped configuration as the scheduler does: strictly, with defaults.
func Config(t *testing.T) *schedulerconfig.KubeSchedulerConfiguration {
	t.Helper()
	data, err := manifests.All.ReadFile("config/scheduler-config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	object, _, err := scheme.Codecs.UniversalDecoder().Decode(data, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return object.(*schedulerconfig.KubeSchedulerConfiguration)
}

// build makes a scheduler as kube-scheduler's own set-up does, minus what it has one of in a process: servers, metrics
// endpoints, leader election.
func (e *Env) build(ctx context.Context, t *testing.T, c *schedulerconfig.KubeSchedulerConfiguration) (run func()) {
	rest := e.RESTConfig()
	rest.QPS, rest.Burst = c.ClientConnection.QPS, int(c.ClientConnection.Burst)
	client, err := kubernetes.NewForConfig(rest)
	if err != nil {
		t.Fatal(err)
	}
	dynamicClient, err := dynamic.NewForConfig(rest)
	if err != nil {
		t.Fatal(err)
	}
	factory := scheduler.NewInformerFactory(client, 0, nil)
	dynamicFactory := dynamicinformer.NewDynamicSharedInformerFactory(dynamicClient, 0)
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()})
	shared := core.New(core.Options{})
	sched, err := scheduler.New(ctx, client, factory, dynamicFactory, profile.NewRecorderFactory(broadcaster),
		scheduler.WithProfiles(c.Profiles...),
		scheduler.WithKubeConfig(rest),
		scheduler.WithComponentConfigVersion(c.APIVersion),
		scheduler.WithFrameworkOutOfTreeRegistry(plugins.Registry(shared)),
		scheduler.WithParallelism(c.Parallelism),
		scheduler.WithPodInitialBackoffSeconds(c.PodInitialBackoffSeconds),
		scheduler.WithPodMaxBackoffSeconds(c.PodMaxBackoffSeconds),
	)
	if err != nil {
		t.Fatal(err)
	}
	app.Adapt(shared, sched)
	e.Core = shared
	return func() {
		defer broadcaster.Shutdown()
		if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
			t.Error(err)
		}
		factory.Start(ctx.Done())
		dynamicFactory.Start(ctx.Done())
		factory.WaitForCacheSync(ctx.Done())
		if err := sched.WaitForHandlersSync(ctx); err != nil {
			return
		}
		sched.Run(ctx)
		factory.Shutdown()
	}
}

// Views are what the scheduler shows of itself.
func (e *Env) Views() *visibility.Views {
	return visibility.New(visibility.Source{State: e.Core.State, Dispatch: e.Core.Dispatcher.View(), Ledger: e.Core.Evictions.Ledger, Clock: e.Core.Clock()})
}
