// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	clientfeatures "k8s.io/client-go/features"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/kubernetes/pkg/scheduler"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/utils/clock"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/metrics"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/plugins"
	"github.com/caldera-scheduler/caldera/pkg/preemption/eviction"
	"github.com/caldera-scheduler/caldera/pkg/queue/dispatch"
	"github.com/caldera-scheduler/caldera/pkg/resource"
	"github.com/caldera-scheduler/caldera/pkg/scheduler/app"
	"github.com/caldera-scheduler/caldera/pkg/scheduler/core"
	"github.com/caldera-scheduler/caldera/pkg/simulate/memory"
	"github.com/caldera-scheduler/caldera/pkg/simulate/tap"
	"github.com/caldera-scheduler/caldera/pkg/volcano/profile"
)

// confs are the configurations of the scheduler, as a volcano-scheduler.conf.
var confs = map[string]string{
	// Whatever fits has to start: there is nothing to wait for but room.
	"plain": `
actions: "allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
`,
	// What Volcano's users have, with all that evicts.
	"queues": `
actions: "enqueue, allocate, preempt, reclaim, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
  - name: predicates
  - name: proportion
  - name: nodeorder
`,
	// A queue that lets everybody in, and may hold only so much.
	"limited": `
actions: "allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
- plugins:
  - name: proportion
`,
	// A queue that lets nobody in beyond what it may hold, whoever is stuck.
	"capped": `
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
- plugins:
  - name: proportion
`,
}

// configOf reads a configuration.
func configOf(conf string) (*schedulerconfig.KubeSchedulerConfiguration, error) {
	text, ok := confs[conf]
	if !ok {
		return nil, fmt.Errorf("conf is %q: there is no such configuration", conf)
	}
	read, err := profile.Read(conf, []byte(text), profile.Only)
	if err == nil && conf == "capped" {
		err = noGuests(read)
	}
	return read, err
}

// noGuests has what was promised to jobs that wait lent to nobody.
func noGuests(conf *schedulerconfig.KubeSchedulerConfiguration) error {
	found := false
	for _, profile := range conf.Profiles {
		for _, plugin := range profile.PluginConfig {
			if args, ok := plugin.Args.(*config.BatchQueueArgs); ok {
				args.StalledAfter, found = metav1.Duration{}, true
			}
		}
	}
	if !found {
		return errors.New("the configuration has no BatchQueueArgs")
	}
	return nil
}

// process is a scheduler that runs: all of the real one but its command line, its HTTP endpoints and what it records as events.
type process struct {
	line   *line
	core   *core.Core
	sched  *scheduler.Scheduler
	cancel context.CancelFunc
	// fresh is what its parts remember before they have seen anything.
	fresh map[string]census
	// leading is closed when it begins to act, lost when it is no longer to, ended when nothing of it runs.
	leading, lost, ended chan struct{}
}

// startProcess starts a scheduler. It is under way when this returns, and may still wait for its informers, or for the lease if there is an
// election.
func startProcess(w *wire, conf *schedulerconfig.KubeSchedulerConfiguration, name string, election bool) (*process, error) {
	ctx, cancel := context.WithCancel(context.Background())
	p := &process{
		line: &line{wire: w, name: name, dead: make(chan struct{})}, core: core.New(core.Options{Clock: late{}}), cancel: cancel,
		leading: make(chan struct{}), lost: make(chan struct{}), ended: make(chan struct{}),
	}
	p.line.phase, p.line.plans = p.phase, p.plans
	registry := plugins.Registry(p.core)
	if err := registry.Merge(p.line.moody()); err != nil {
		cancel()
		return nil, err
	}
	config := memory.Config(p.line)
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		cancel()
		return nil, err
	}
	informers := scheduler.NewInformerFactory(kube, 0, nil)
	p.sched, err = scheduler.New(ctx, kube, tap.Core(informers, p.line.lanes()), nil, func(string) events.EventRecorderLogger { return &events.FakeRecorder{} },
		scheduler.WithKubeConfig(config),
		scheduler.WithProfiles(conf.Profiles...),
		scheduler.WithPercentageOfNodesToScore(conf.PercentageOfNodesToScore),
		scheduler.WithFrameworkOutOfTreeRegistry(registry),
		scheduler.WithPodInitialBackoffSeconds(conf.PodInitialBackoffSeconds),
		scheduler.WithPodMaxBackoffSeconds(conf.PodMaxBackoffSeconds),
		scheduler.WithParallelism(1),
	)
	if err != nil {
		cancel()
		return nil, err
	}
	app.Adapt(p.core, p.sched)
	p.fresh = p.census()
	go func() {
		defer close(p.ended)
		informers.StartWithContext(ctx)
		informers.WaitForCacheSyncWithContext(ctx)
		if p.sched.WaitForHandlersSync(ctx) == nil {
			p.act(ctx, kube, name, election)
		}
		<-ctx.Done()
		p.core.Writer.Close()
		informers.Shutdown()
	}()
	return p, nil
}

// act schedules, as soon as the process leads.
func (p *process) act(ctx context.Context, kube kubernetes.Interface, name string, election bool) {
	if !election {
		close(p.leading)
		p.sched.Run(ctx)
		return
	}
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: "caldera-system", Name: "caldera-scheduler"}, Client: kube.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: name},
		},
		// Upstream's defaults.
		LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				close(p.leading)
				p.sched.Run(ctx)
			},
			OnStoppedLeading: func() { close(p.lost) },
		},
	})
}

// phase is how far the turn has come.
func (p *process) phase() dispatch.TurnPhase {
	if d := p.core.Dispatcher; d != nil {
		return d.View().Phase()
	}
	return dispatch.Idle
}

// late is a clock whose timers go off a moment late. Some waits of a scheduler are as long as others, a second mostly, and begin together: which
// of them ended first would be by chance.
type late struct{ clock.RealClock }

const belated = 7 * time.Nanosecond

// NewTimer implements clock.Clock.
func (c late) NewTimer(d time.Duration) clock.Timer { return c.RealClock.NewTimer(d + belated) }

// plans are what a scheduler has decided to evict, and the pods for which it keeps room.
type plans struct {
	decisions []eviction.Decision
	kept      []*corev1.Pod
}

// opening says that gates are still to be taken off; empty if none are.
func (p *process) opening() string {
	if p.core.Gates.Idle() {
		return ""
	}
	return "the scheduler has gates to take off, and does not come to an end with that"
}

// plans are those of the process.
func (p *process) plans() (of plans) {
	if e := p.core.Evictions; e != nil {
		of.decisions = e.Ledger.Decisions()
	}
	for _, t := range p.core.State.Nominated() {
		of.kept = append(of.kept, t.Pod)
	}
	return of
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// kill ends the scheduler as a crash does: nothing of what it does from now on reaches anybody. With orphans, what it had sent does.
func (p *process) kill(orphans bool) {
	p.line.orphans = orphans
	close(p.line.dead)
	p.cancel()
	<-p.ended
}

// prepare starts what lives as long as the test process, which must not happen within a bubble.
func prepare() {
	app.SetFeatureDefaults()
	// What a watch tells in the beginning, instead of a list, reaches handlers in the order of a map, and so the nodes the scheduler.
	utilruntime.Must(utilfeature.DefaultMutableFeatureGate.SetFromMap(map[string]bool{string(clientfeatures.WatchListClient): false}))
	utilruntime.ReallyCrash = true
	// The other handlers space errors out by a clock that is not the bubble's.
	utilruntime.ErrorHandlers = nil
	metrics.Register(nobody{})
	_, err := granted()
	utilruntime.Must(err)
}

// nobody has no queues: those of the bubbles come and go.
type nobody struct{}

// Figures implements metrics.Source.
func (nobody) Figures() []dispatch.QueueFigures { return nil }

// Shares implements metrics.Source.
func (nobody) Shares() map[model.JobKey]float64 { return nil }

// Waiting implements metrics.Source.
func (nobody) Waiting() []dispatch.Waiting { return nil }

// Broken implements metrics.Source.
func (nobody) Broken() map[dispatch.Break]int { return nil }

// BrokenTotals implements metrics.Source.
func (nobody) BrokenTotals() dispatch.BrokenTotals { return dispatch.BrokenTotals{} }

// Slots implements metrics.Source.
func (nobody) Slots(...int64) map[corev1.ResourceName][]int64 { return nil }

// Usable implements metrics.Source.
func (nobody) Usable() resource.Vector { return nil }

// counters are what the scheduler's own metrics have counted in this process: how turns ended in which phase, and how many jobs were placed
// by a sweep.
func counters() (map[string]int, error) {
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		return nil, fmt.Errorf("reading the scheduler's metrics: %w", err)
	}
	counted := map[string]int{}
	for _, f := range families {
		switch f.GetName() {
		case "caldera_turns_total":
			for _, m := range f.GetMetric() {
				label := map[string]string{}
				for _, l := range m.GetLabel() {
					label[l.GetName()] = l.GetValue()
				}
				counted[ending(dispatch.TurnPhase(label["phase"]), dispatch.TurnResult(label["result"]))] = int(m.GetCounter().GetValue())
			}
		case "caldera_missed_wakeups_total":
			counted[swept] = int(f.GetMetric()[0].GetCounter().GetValue())
		}
	}
	return counted, nil
}

// endings are how turns can end, and in which phase, as counters names them. For a turn to be broken that was offered takes a queue that loses a pod,
// which is no fault that is simulated.
var endings = []string{
	ending(dispatch.Offered, dispatch.TurnChanged), ending(dispatch.Offered, dispatch.TurnRefused),
	ending(dispatch.Planning, dispatch.TurnRepeated), ending(dispatch.Planning, dispatch.TurnErrored), ending(dispatch.Planning, dispatch.TurnBroken),
	ending(dispatch.Planning, dispatch.TurnChanged),
	ending(dispatch.Preempting, dispatch.TurnRefused), ending(dispatch.Preempting, dispatch.TurnPipelined), ending(dispatch.Preempting, dispatch.TurnRepeated),
	ending(dispatch.Preempting, dispatch.TurnErrored), ending(dispatch.Preempting, dispatch.TurnBroken), ending(dispatch.Preempting, dispatch.TurnChanged),
	ending(dispatch.Placing, dispatch.TurnPlaced), ending(dispatch.Placing, dispatch.TurnBroken), ending(dispatch.Placing, dispatch.TurnErrored),
	ending(dispatch.Placing, dispatch.TurnChanged),
}

// ending names how a turn ended.
func ending(phase dispatch.TurnPhase, result dispatch.TurnResult) string {
	return fmt.Sprintf("turn %s while %s", result, phase)
}

// swept counts jobs that were placed though nothing seemed to have happened.
const swept = "placed by a sweep"
