// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	clocktesting "k8s.io/utils/clock/testing"
	volcanoinformers "volcano.sh/apis/pkg/client/informers/externalversions"

	"github.com/caldera-scheduler/caldera/pkg/plugins"
	"github.com/caldera-scheduler/caldera/pkg/plugins/names"
	"github.com/caldera-scheduler/caldera/pkg/scheduler/app"
	"github.com/caldera-scheduler/caldera/pkg/scheduler/core"
	"github.com/caldera-scheduler/caldera/pkg/simulate/memory"
	"github.com/caldera-scheduler/caldera/pkg/simulate/scenario"
	"github.com/caldera-scheduler/caldera/pkg/simulate/tap"
)

// cluster is an API in memory and the scheduler that runs on it.
type cluster struct {
	ctx     context.Context
	cancel  context.CancelFunc
	options Options

	clock    *clocktesting.FakeClock
	api      *memory.API
	receipts *receipts
	kube     informers.SharedInformerFactory
	groups   volcanoinformers.SharedInformerFactory
	core     *core.Core
	sched    *scheduler.Scheduler
	// asking: the scheduling loop has finished with the pod before, and asks for the next.
	asking  atomic.Bool
	running sync.WaitGroup

	initial Figures
	// boundIn is the round in which each pod was bound.
	boundIn map[types.UID]int
	// disrupted is how many disruptions happened by the end of the last round.
	disrupted int
	// recreated is how many of the disrupted pods have come back, if they are to.
	recreated int
	// limit is the scheduling cycle at which a round that does not come to rest is given up.
	limit int64
}

// setFeatureDefaults sets the feature gates, which belong to the process, as the scheduler's binary has them. The pods
// that upstream's preemption of single pods evicts are deleted before the scheduling cycle ends and not beside it, where
// nothing could tell that it is not done yet.
var setFeatureDefaults = sync.OnceFunc(func() {
	app.SetFeatureDefaults()
	utilruntime.Must(utilfeature.DefaultMutableFeatureGate.OverrideDefault(features.SchedulerAsyncPreemption, false))
})

// newCluster builds everything and starts nothing.
func newCluster(ctx context.Context, objects []scenario.Object, o Options) (*cluster, error) {
	setFeatureDefaults()
	c := &cluster{options: o, clock: clocktesting.NewFakeClock(o.Now), boundIn: map[types.UID]int{}, limit: mostCycles}
	c.ctx, c.cancel = context.WithCancel(ctx)
	var err error
	if c.api, err = memory.New(c.clock); err != nil {
		return nil, err
	}
	for _, object := range objects {
		if err := c.api.Add(object); err != nil {
			return nil, fmt.Errorf("setting up the scenario: %w", err)
		}
	}
	c.receipts = &receipts{api: c.api}
	kube, groups := c.api.Kube(), c.api.Groups()
	c.groups = volcanoinformers.NewSharedInformerFactory(groups.Volcano, 0)
	groups.VolcanoInformers = tap.Volcano(c.groups, c.receipts.between)
	c.kube = scheduler.NewInformerFactory(kube, 0, nil)
	c.core = core.New(core.Options{Groups: &groups, Clock: c.clock, FlushedStatus: true, AllAtHand: true, Policies: o.Extensions.Policies})
	config := o.Config
	registry := plugins.Registry(c.core)
	if err := registry.Merge(plugins.Joining(c.core, o.Extensions.Plugins)); err != nil {
		c.stop()
		return nil, fmt.Errorf("adding plugins to the scheduler: %w", err)
	}
	c.sched, err = scheduler.New(c.ctx, kube, tap.Core(c.kube, c.receipts.between), nil, discardEvents,
		scheduler.WithClock(c.clock),
		scheduler.WithComponentConfigVersion(config.APIVersion),
		scheduler.WithProfiles(config.Profiles...),
		scheduler.WithPercentageOfNodesToScore(config.PercentageOfNodesToScore),
		scheduler.WithFrameworkOutOfTreeRegistry(registry),
		scheduler.WithPodInitialBackoffSeconds(config.PodInitialBackoffSeconds),
		scheduler.WithPodMaxBackoffSeconds(config.PodMaxBackoffSeconds),
		scheduler.WithExtenders(config.Extenders...),
		scheduler.WithParallelism(config.Parallelism),
	)
	switch {
	case err != nil:
		c.stop()
		return nil, fmt.Errorf("building the scheduler: %w", err)
	case c.core.Dispatcher == nil:
		c.stop()
		return nil, fmt.Errorf("no profile of the configuration has the plugin %s: enable it in all of them, and %s where there are gangs",
			names.BatchQueue, names.Gang)
	}
	c.core.Dispatcher.Hold()
	app.Adapt(c.core, c.sched)
	next := c.sched.NextEntity
	c.sched.NextEntity = func(logger klog.Logger) (framework.QueuedEntityInfo, error) {
		c.asking.Store(true)
		defer c.asking.Store(false)
		return next(logger)
	}
	return c, nil
}

// discardEvents is the recorder of profiles. What events would say is in the result.
func discardEvents(string) events.EventRecorderLogger { return &events.FakeRecorder{} }

// start begins to watch, takes the figures of the start, and lets the scheduler run.
func (c *cluster) start() error {
	c.kube.StartWithContext(c.ctx)
	c.kube.WaitForCacheSyncWithContext(c.ctx)
	if err := c.sched.WaitForHandlersSync(c.ctx); err != nil {
		return fmt.Errorf("filling the scheduler's cache: %w", context.Cause(c.ctx))
	}
	if err := c.wait(func() string {
		select {
		case <-c.core.Complete():
			return c.receipts.undelivered()
		default:
			return "the model is not complete"
		}
	}); err != nil {
		return err
	}
	c.initial = figuresOf(c.core)
	c.running.Go(func() { c.sched.Run(c.ctx) })
	return nil
}

// stop ends the scheduler and waits for it.
func (c *cluster) stop() {
	c.cancel()
	c.running.Wait()
	if c.core.Writer != nil {
		c.core.Writer.Close()
	}
	c.kube.Shutdown()
	c.groups.Shutdown()
}

// pods returns all pods, by namespace and name.
func (c *cluster) pods() ([]*corev1.Pod, error) {
	list, err := c.api.List(memory.Pods, corev1.SchemeGroupVersion.WithKind("Pod"), "")
	if err != nil {
		return nil, fmt.Errorf("listing pods: %w", err)
	}
	items := list.(*corev1.PodList).Items
	pods := make([]*corev1.Pod, len(items))
	for i := range items {
		pods[i] = &items[i]
	}
	return pods, nil
}

// nodes returns the names of all nodes, sorted.
func (c *cluster) nodes() ([]string, error) {
	list, err := c.api.List(corev1.SchemeGroupVersion.WithResource("nodes"), corev1.SchemeGroupVersion.WithKind("Node"), "")
	if err != nil {
		return nil, fmt.Errorf("listing nodes: %w", err)
	}
	names := []string{}
	for i := range list.(*corev1.NodeList).Items {
		names = append(names, list.(*corev1.NodeList).Items[i].Name)
	}
	return names, nil
}
