// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package core is what all plugins of one scheduler share: the model, the dispatcher, the status writer. Plugin
// factories, which run in no particular order, attach their profiles and configure the policies; when all plugins exist,
// the engine starts.
package core

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/utils/clock"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/gang"
	"github.com/caldera-scheduler/caldera/pkg/metrics"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/model/informer"
	"github.com/caldera-scheduler/caldera/pkg/plugins/names"
	"github.com/caldera-scheduler/caldera/pkg/preemption"
	"github.com/caldera-scheduler/caldera/pkg/preemption/reserve"
	"github.com/caldera-scheduler/caldera/pkg/queue/dispatch"
	"github.com/caldera-scheduler/caldera/pkg/status"
)

// Engine is shared by all plugins of a scheduler.
type Engine struct {
	State *model.State
	// Dispatcher is nil before Start.
	Dispatcher *dispatch.Dispatcher

	// Writer is nil before Start.
	Writer *status.Writer
	// Evictions is nil before Start.
	Evictions *reserve.Keeper
	// Preemption is nil before Start.
	Preemption *preemption.Preemption

	options Options
	// handle is the profile through which the engine acts; nil before Start.
	handle framework.Framework
	// activate moves pods to the active queue, and tells which are not there then; nil before Start.
	activate func(klog.Logger, []*corev1.Pod) []dispatch.Standing
	// rules are those in force; none before Configure.
	rules    atomic.Pointer[Rules]
	complete chan struct{}
	leading  chan struct{}
	leadOnce sync.Once
	// quotas: resource quotas are followed. Only Start and Adopt look at it.
	quotas bool
	// hushed are bound pods whose event is to be left out; nil while no recorder asks for them.
	hushed *sync.Map
	lag    lag

	// mu guards what follows. Plugin factories set start, joined, sorted, profiles and evictionArgs.
	mu       sync.Mutex
	profiles map[string]framework.Framework
	start    func() error
	joined   []fwk.Plugin
	// sorted are the profiles whose pods are in the queue; nil after Start.
	sorted []framework.Framework
	// evictionArgs is nil when no plugin evicts for jobs.
	evictionArgs *config.ReclaimArgs
	// acting: what runs for the rules only has been started.
	acting bool
}

// Options are what an engine can be given instead of what it takes by itself. The zero value is right for a scheduler
// on an API server.
type Options struct {
	// Groups are the group APIs; nil: those of the API server the scheduler is connected to.
	Groups *informer.Clients
	// Clock is the time the dispatcher and the status writer live by; nil: the real one.
	Clock clock.WithTicker
	// Policies are those that tiers may name besides the built-in ones, by their names there.
	Policies map[string]PolicyFactory
	// FlushedStatus leaves it to the caller to have the writer write, by its Flush.
	FlushedStatus bool
}

// New returns an engine without profiles.
func New() *Engine { return NewWith(Options{}) }

// NewWith returns an engine without profiles that differs from production's.
func NewWith(o Options) *Engine {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	state := model.NewState()
	e := &Engine{
		State: state, options: o, profiles: map[string]framework.Framework{}, complete: make(chan struct{}), leading: make(chan struct{}),
		lag: lag{clock: o.Clock, task: state.Task},
	}
	e.rules.Store(&Rules{})
	return e
}

// Configure sets the policies by which the engine decides, and the profile through which it acts. Upstream gives all
// profiles the same arguments of the QueueSort plugin, so that the first call decides.
func (e *Engine) Configure(ctx context.Context, handle framework.Framework, args *config.BatchQueueArgs) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.Dispatcher == nil {
		e.sorted = append(e.sorted, handle)
	}
	if e.start != nil {
		return nil
	}
	rules, err := e.Prepare(ctx, handle, args, nil)
	if err != nil {
		return err
	}
	e.rules.Store(rules)
	e.start = sync.OnceValue(func() error { return e.build(ctx, handle) })
	return nil
}

// Join tells the engine of a plugin of its first profiles.
func (e *Engine) Join(plugin fwk.Plugin) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.joined = append(e.joined, plugin)
}

// Attach makes the pods of a profile tasks. Pods of profiles that are not attached are usage only.
func (e *Engine) Attach(handle framework.Framework) {
	e.State.AddScheduler(handle.ProfileName())
	e.mu.Lock()
	defer e.mu.Unlock()
	e.profiles[handle.ProfileName()] = handle
}

// Start builds the parts and begins to watch, once. All profiles must have been attached.
func (e *Engine) Start() error { return e.start() }

// ActivateBy has pods moved to the active queue by another function than the handle's. It must be called before the scheduler runs.
func (e *Engine) ActivateBy(activate func(klog.Logger, []*corev1.Pod) []dispatch.Standing) {
	e.activate = activate
}

// Pods lists the pods that the scheduler's informer has. It must not be called before Start.
func (e *Engine) Pods() corelisters.PodLister {
	return e.handle.SharedInformerFactory().Core().V1().Pods().Lister()
}

// Batch reports whether a pod belongs to a batch profile.
func (e *Engine) Batch(pod *corev1.Pod) bool { return e.State.Schedules(pod.Spec.SchedulerName) }

// Holds reports whether a pod waits for the turn of its job: it belongs to a batch profile, and there is no turn that includes it.
func (e *Engine) Holds(pod *corev1.Pod) bool {
	return e.State.Schedules(pod.Spec.SchedulerName) && !e.Dispatcher.Gate(pod.UID)
}

// Clock is the time the engine lives by.
func (e *Engine) Clock() clock.WithTicker { return e.options.Clock }

// Arrange says how the policies would have the tasks of a job tried.
func (e *Engine) Arrange(job *model.Job) gang.Arrangement {
	order, part := e.rules.Load().policies.Arrange(job)
	return gang.Arrangement{Order: order, Part: part}
}

// Complete is closed once the model holds all that was there at the start. Nothing has been decided by then unless the
// engine leads.
func (e *Engine) Complete() <-chan struct{} { return e.complete }

// Lead lets the engine act: hand out turns and write to the API server. Before, it only watches. It may be called
// any number of times.
func (e *Engine) Lead() { e.leadOnce.Do(func() { close(e.leading) }) }

// led reports whether the engine acts.
func (e *Engine) led() bool {
	select {
	case <-e.leading:
		return true
	default:
		return false
	}
}

// build creates the parts and begins to watch.
func (e *Engine) build(ctx context.Context, handle framework.Framework) error {
	logger := klog.FromContext(ctx).WithName("caldera")
	ctx = klog.NewContext(ctx, logger)
	groups, err := e.Groups(handle)
	if err != nil {
		return err
	}
	writer, err := status.NewAt(e.options.Clock, groups.Volcano, handle.ClientSet(), e.State)
	if err != nil {
		return fmt.Errorf("building the status writer: %w", err)
	}
	e.Writer, e.handle = writer, handle
	e.activate = func(logger klog.Logger, pods []*corev1.Pod) []dispatch.Standing {
		handle.Activate(logger, byName(pods))
		return nil
	}
	rules := e.rules.Load()
	rules.use(e.joined)
	if err := rules.check(e.evictionArgs != nil); err != nil {
		return err
	}
	e.warnOfPreemption(logger)
	e.Evictions = e.newEvictions(handle, writer)
	e.Dispatcher = dispatch.New(dispatch.Config{
		State:     e.State,
		Rules:     rules.forDispatch(),
		MayFit:    gang.MayFit,
		NeverFits: gang.NeverFits,
		Checks:    e.checks,
		Lead:      func(job *model.Job) *model.Task { return e.Arrange(job).Order.Lead(job) },
		Activate:  func(pods []*corev1.Pod) []dispatch.Standing { return e.activate(logger, pods) },
		Settle:    func(members []types.UID, bind bool) { settle(handle, members, bind) },
		Report:    writer.Waits,
		Fault:     writer.QueueFault,
		Release:   func(t dispatch.Trouble) { e.release(ctx, t) },
		Tell:      e.tellBroken,
		Recorder:  metrics.Recorder{},
		Clock:     e.options.Clock,
	})
	e.Preemption = &preemption.Preemption{Dispatcher: e.Dispatcher, Keeper: e.Evictions, Outside: e, Clock: e.options.Clock}
	writer.FollowQueues(e.queueFacts)
	e.State.Witness(e.lag.notify)
	e.State.Observe(e.Dispatcher.Notify)
	e.State.Observe(writer.Notify)
	factory := handle.SharedInformerFactory()
	synced, err := informer.Core(e.State, factory)
	if err != nil {
		return err
	}
	if e.quotas = rules.policies.Quotas; e.quotas {
		quotas, err := informer.Quotas(e.State, factory)
		if err != nil {
			return err
		}
		synced = append(synced, quotas)
	}
	go e.run(ctx, handle, groups, synced)
	return nil
}

// queueFacts is what the status of queues tells.
func (e *Engine) queueFacts() []status.QueueFacts {
	var facts []status.QueueFacts
	for _, q := range e.Dispatcher.Figures() {
		if object := e.State.Queue(q.Name); object != nil {
			facts = append(facts, status.QueueFacts{Queue: object, Allocated: q.Total.Allocated, Groups: q.Groups})
		}
	}
	return facts
}

// Groups returns the APIs of batch schedulers, Volcano's among them.
func (e *Engine) Groups(handle fwk.Handle) (informer.Clients, error) {
	if e.options.Groups != nil {
		return *e.options.Groups, nil
	}
	if handle.KubeConfig() == nil {
		return informer.Clients{}, errors.New("there is no API server to connect to")
	}
	// Custom resources are not served as protobuf, which the scheduler's own connection asks for.
	config := rest.CopyConfig(handle.KubeConfig())
	config.ContentType, config.AcceptContentTypes = "application/json", "application/json"
	return informer.NewClients(config)
}

// run watches from the start, so that a standby is ready at once, and acts once the scheduler leads.
func (e *Engine) run(ctx context.Context, handle fwk.Handle, groups informer.Clients, synced []cache.InformerSynced) {
	logger := klog.FromContext(ctx)
	watching, watchCtx := errgroup.WithContext(ctx)
	watching.Go(func() error { return informer.Finished(ctx, e.State, handle.ClientSet()) })
	watching.Go(func() error { return informer.Groups(ctx, e.State, groups) })
	watching.Go(func() error {
		if !cache.WaitForCacheSync(watchCtx.Done(), synced...) {
			return fmt.Errorf("waiting for nodes and pods: %w", context.Cause(watchCtx))
		}
		return nil
	})
	if err := watching.Wait(); err != nil {
		if ctx.Err() == nil {
			logger.Error(err, "Cannot watch the cluster; no batch pod will be scheduled")
		}
		return
	}
	logger.V(2).Info("Model is complete")
	close(e.complete)
	select {
	case <-ctx.Done():
		return
	case <-e.leading:
	}
	e.State.Lead()
	if !e.options.FlushedStatus {
		e.Writer.StartEvents()
		go e.Writer.Run(ctx)
	}
	go e.Evictions.Run(ctx)
	e.mu.Lock()
	e.acting = true
	e.animate(ctx, e.rules.Load())
	e.mu.Unlock()
	e.Dispatcher.Run(ctx)
}

// settle ends the wait of gang members in Permit.
func settle(handle fwk.Handle, members []types.UID, bind bool) {
	for _, uid := range members {
		waiting := handle.GetWaitingPod(uid)
		switch {
		case waiting == nil:
		case bind:
			waiting.Allow(names.Gang)
		default:
			waiting.Reject(names.Gang, "a member of its gang could not be reserved")
		}
	}
}

func byName(pods []*corev1.Pod) map[string]*corev1.Pod {
	named := make(map[string]*corev1.Pod, len(pods))
	for _, pod := range pods {
		named[pod.Namespace+"/"+pod.Name] = pod
	}
	return named
}
