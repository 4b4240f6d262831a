// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/scheduler"

	"github.com/caldera-scheduler/caldera/pkg/plugins"
	"github.com/caldera-scheduler/caldera/pkg/scheduler/core"
	"github.com/caldera-scheduler/caldera/pkg/scheduler/upstream/prequeue"
	"github.com/caldera-scheduler/caldera/pkg/scheduler/upstream/skiprecheck"
	"github.com/caldera-scheduler/caldera/pkg/volcano/profile"
)

// schedulerOnStage is all of the real scheduler but its command line, its HTTP endpoints, its lease and its events.
type schedulerOnStage struct {
	core      *core.Core
	sched     *scheduler.Scheduler
	informers informers.SharedInformerFactory
}

// newScheduler builds the scheduler with the shipped configuration, as pkg/scheduler/app does. That package also has the command line and the endpoints of
// kube-scheduler, which are 200 packages to build.
func newScheduler(ctx context.Context, config *rest.Config, client kubernetes.Interface) (*schedulerOnStage, error) {
	if err := utilfeature.DefaultMutableFeatureGate.OverrideDefault(features.NominatedNodeNameForExpectation, false); err != nil {
		return nil, fmt.Errorf("setting the scheduler's feature gates: %w", err)
	}
	conf, err := profile.Only.Config()
	if err != nil {
		return nil, err
	}
	s := &schedulerOnStage{core: core.New(core.Options{}), informers: scheduler.NewInformerFactory(client, 0, nil)}
	s.sched, err = scheduler.New(ctx, client, s.informers, nil, discardEvents,
		scheduler.WithKubeConfig(config),
		scheduler.WithComponentConfigVersion(conf.APIVersion),
		scheduler.WithProfiles(conf.Profiles...),
		scheduler.WithPercentageOfNodesToScore(conf.PercentageOfNodesToScore),
		scheduler.WithFrameworkOutOfTreeRegistry(plugins.Registry(s.core)),
		scheduler.WithPodInitialBackoffSeconds(conf.PodInitialBackoffSeconds),
		scheduler.WithPodMaxBackoffSeconds(conf.PodMaxBackoffSeconds),
		scheduler.WithExtenders(conf.Extenders...),
		scheduler.WithParallelism(conf.Parallelism),
	)
	if err != nil {
		return nil, fmt.Errorf("building the scheduler: %w", err)
	}
	prequeue.Install(s.core, s.sched)
	skiprecheck.Install(s.core, s.sched)
	return s, nil
}

// discardEvents is the recorder of profiles. The screen shows what is on PodGroups and pods, which say the same.
func discardEvents(string) events.EventRecorderLogger { return &events.FakeRecorder{} }

// run schedules until ctx ends.
func (s *schedulerOnStage) run(ctx context.Context) error {
	s.informers.StartWithContext(ctx)
	defer func() {
		s.core.Writer.Close()
		s.informers.Shutdown()
	}()
	s.informers.WaitForCacheSyncWithContext(ctx)
	if err := s.sched.WaitForHandlersSync(ctx); err != nil {
		return fmt.Errorf("filling the scheduler's cache: %w", err)
	}
	s.sched.Run(ctx)
	return nil
}
