// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sandbox is a scheduler on an API in memory, and the time it lives in: what a simulation and a replay step through time. The
// scheduler is the real one, with its plugins, dispatcher and caches. Its clock stands still until somebody sets it, and a job's turn begins when
// nothing is moving any more, so that nothing depends on how fast the machine is.
package sandbox

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/scheduler"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	clocktesting "k8s.io/utils/clock/testing"
	volcanoinformers "volcano.sh/apis/pkg/client/informers/externalversions"

	"github.com/caldera-scheduler/caldera/pkg/plugins"
	"github.com/caldera-scheduler/caldera/pkg/plugins/names"
	"github.com/caldera-scheduler/caldera/pkg/scheduler/app"
	"github.com/caldera-scheduler/caldera/pkg/scheduler/core"
	"github.com/caldera-scheduler/caldera/pkg/scheduler/upstream/podstatus"
	"github.com/caldera-scheduler/caldera/pkg/simulate/memory"
	"github.com/caldera-scheduler/caldera/pkg/simulate/memory/fakes"
	"github.com/caldera-scheduler/caldera/pkg/simulate/scenario"
	"github.com/caldera-scheduler/caldera/pkg/simulate/tap"
)

// Options say which scheduler runs, and when it begins.
type Options struct {
	// Config is the scheduler's configuration with defaults.
	Config *schedulerconfig.KubeSchedulerConfiguration
	// Extensions are the plugins and policies that the scheduler has besides its own.
	Extensions plugins.Extensions
	// Now is when it begins.
	Now time.Time
	// Retried: a pod whose cycle failed is tried again by Retry alone, and not when its backoff is over: upstream looks for that beside its clock.
	Retried bool
	// Patience is how long (of real time) nothing at all may happen while something is still moving; 0: a minute. It only bounds how long a
	// fault of the scheduler is waited for.
	Patience time.Duration
}

// defaultPatience is the default of Options.Patience.
const defaultPatience = time.Minute

// Sandbox is an API in memory and the scheduler that runs on it. One goroutine may use it at a time.
type Sandbox struct {
	// API holds the objects. Whoever changes some calls Settle before the next look.
	API *memory.API
	// Clock is the scheduler's time.
	Clock *clocktesting.FakeClock
	// Core is what the scheduler's plugins share.
	Core *core.Core

	// life is the context in which schedulers run, ctx that of the one that does.
	life     context.Context
	ctx      context.Context
	cancel   context.CancelFunc
	options  Options
	receipts *receipts
	kube     informers.SharedInformerFactory
	groups   volcanoinformers.SharedInformerFactory
	sched    *scheduler.Scheduler
	statuses *podstatus.Writer
	flying   flying
	landings *landings
	// asking: the scheduling loop has finished with the pod before, and asks for the next.
	asking  *atomic.Bool
	running sync.WaitGroup
	// limit is the scheduling cycle beyond which there is no progress any more.
	limit int64
}

// setFeatureDefaults sets the feature gates, which belong to the process, as the scheduler's binary has them. The pods
// that upstream's preemption of single pods evicts are deleted before the scheduling cycle ends and not beside it, where
// nothing could tell that it is not done yet.
var setFeatureDefaults = sync.OnceFunc(func() {
	app.SetFeatureDefaults()
	utilruntime.Must(utilfeature.DefaultMutableFeatureGate.OverrideDefault(features.SchedulerAsyncPreemption, false))
})

// New builds everything and starts nothing. The objects are those of scenario.Complete and are not changed. An error says which object cannot
// be, or what is wrong with the configuration.
func New(ctx context.Context, objects []scenario.Object, o Options) (*Sandbox, error) {
	if o.Config == nil {
		return nil, errors.New("the options have no scheduler configuration")
	}
	if o.Patience == 0 {
		o.Patience = defaultPatience
	}
	setFeatureDefaults()
	s := &Sandbox{options: o, Clock: clocktesting.NewFakeClock(o.Now), life: ctx}
	var err error
	if s.API, err = memory.New(s.Clock); err != nil {
		return nil, err
	}
	for _, object := range objects {
		if err := s.API.Add(object); err != nil {
			return nil, fmt.Errorf("setting up the objects: %w", err)
		}
	}
	if err := s.build(); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

// build builds the scheduler.
func (s *Sandbox) build() error {
	s.ctx, s.cancel = context.WithCancel(s.life)
	s.limit, s.flying, s.landings, s.asking = mostCycles, newFlying(), &landings{}, &atomic.Bool{}
	s.receipts = &receipts{api: s.API}
	kube, groups := fakes.Kube(s.API), fakes.Groups(s.API)
	s.groups = volcanoinformers.NewSharedInformerFactory(groups.Volcano, 0)
	groups.VolcanoInformers = tap.Volcano(s.groups, s.receipts.between)
	s.kube = scheduler.NewInformerFactory(kube, 0, nil)
	s.Core = core.New(core.Options{Groups: &groups, Clock: s.Clock, FlushedStatus: true, AllAtHand: true, Policies: s.options.Extensions.Policies})
	config := s.options.Config
	registry := plugins.Registry(s.Core)
	if err := registry.Merge(plugins.Joining(s.Core, s.options.Extensions.Plugins)); err != nil {
		return fmt.Errorf("adding plugins to the scheduler: %w", err)
	}
	var err error
	s.sched, err = scheduler.New(s.ctx, kube, tap.Core(s.kube, s.receipts.between), nil, discardEvents,
		scheduler.WithClock(s.Clock),
		scheduler.WithComponentConfigVersion(config.APIVersion),
		scheduler.WithProfiles(config.Profiles...),
		scheduler.WithPercentageOfNodesToScore(config.PercentageOfNodesToScore),
		scheduler.WithFrameworkOutOfTreeRegistry(registry),
		scheduler.WithPodInitialBackoffSeconds(s.backoff(config.PodInitialBackoffSeconds)),
		scheduler.WithPodMaxBackoffSeconds(s.backoff(config.PodMaxBackoffSeconds)),
		scheduler.WithExtenders(config.Extenders...),
		scheduler.WithParallelism(config.Parallelism),
	)
	switch {
	case err != nil:
		return fmt.Errorf("building the scheduler: %w", err)
	case s.Core.Dispatcher == nil:
		return fmt.Errorf("no profile of the configuration has the plugin %s: enable it in all of them, and %s where there are gangs",
			names.BatchQueue, names.Gang)
	}
	s.Core.Dispatcher.Hold()
	s.statuses = app.Adapt(s.Core, s.sched)
	for name, f := range s.sched.Profiles {
		s.sched.Profiles[name] = oneByOne{f, s.landings}
	}
	s.observe()
	return nil
}

// observe notes what the scheduling loop takes and gives back. The loop of a scheduler that was ended may go on for a moment, so that each has notes of its own.
func (s *Sandbox) observe() {
	asking, flying, landings := s.asking, s.flying, s.landings
	next := s.sched.NextEntity
	s.sched.NextEntity = func(logger klog.Logger) (framework.QueuedEntityInfo, error) {
		asking.Store(true)
		entity, err := next(logger)
		flying.took(entity)
		asking.Store(false)
		return entity, err
	}
	fail := s.sched.FailureHandler
	s.sched.FailureHandler = func(ctx context.Context, f framework.Framework, info *framework.QueuedPodInfo, status *fwk.Status, nominating *fwk.NominatingInfo, start time.Time) {
		fail(ctx, f, info, status, nominating, start)
		landings.drop(info.Pod.UID)
		flying.fell(info.Pod)
	}
}

// forEver is a backoff in seconds that never ends.
const forEver = int64(100 * 365 * 24 * time.Hour / time.Second)

// backoff is how long the scheduler keeps a pod back whose cycle failed, in seconds.
func (s *Sandbox) backoff(configured int64) int64 {
	if s.options.Retried {
		return forEver
	}
	return configured
}

// discardEvents is the recorder of profiles. What events would say is in the result.
func discardEvents(string) events.EventRecorderLogger { return &events.FakeRecorder{} }

// Start begins to watch, and waits until the model has all objects. The scheduler does not run yet.
func (s *Sandbox) Start() error {
	s.kube.StartWithContext(s.ctx)
	s.kube.WaitForCacheSyncWithContext(s.ctx)
	err := s.wait(func() string {
		select {
		case <-s.Core.Complete():
			return s.receipts.undelivered()
		default:
			return "the model is not complete"
		}
	})
	if err != nil {
		return err
	}
	// It looks ten times a second, so it is not asked before it has nothing to wait for.
	if err := s.sched.WaitForHandlersSync(s.ctx); err != nil {
		return fmt.Errorf("filling the scheduler's cache: %w", context.Cause(s.ctx))
	}
	return nil
}

// Run lets the scheduler run in the background until Stop.
func (s *Sandbox) Run() { s.running.Go(func() { s.sched.Run(s.ctx) }) }

// Restart ends the scheduler as a crash would, and has a new one run on what the API holds.
func (s *Sandbox) Restart() error {
	s.Stop()
	if err := s.build(); err != nil {
		return err
	}
	if err := s.Start(); err != nil {
		return err
	}
	s.Run()
	return nil
}

// Stop ends the scheduler and waits for it.
func (s *Sandbox) Stop() {
	s.cancel()
	s.running.Wait()
	if s.Core != nil && s.Core.Writer != nil {
		s.Core.Writer.Close()
	}
	if s.kube != nil {
		s.kube.Shutdown()
		s.groups.Shutdown()
	}
}
