// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package core builds what all plugins of one scheduler share, and owns its lifecycle: the model, the dispatcher, the status writer, what evicts. It
// decides nothing. Plugin factories, which run in no particular order, attach their profiles and configure the rules; when all plugins exist, the
// core starts.
package core

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/transport"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/utils/clock"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/gang"
	"github.com/caldera-scheduler/caldera/pkg/gang/lag"
	"github.com/caldera-scheduler/caldera/pkg/metrics"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/model/informer"
	"github.com/caldera-scheduler/caldera/pkg/plugins/names"
	"github.com/caldera-scheduler/caldera/pkg/preemption"
	"github.com/caldera-scheduler/caldera/pkg/preemption/release"
	"github.com/caldera-scheduler/caldera/pkg/preemption/reserve"
	"github.com/caldera-scheduler/caldera/pkg/preemption/shuffle"
	"github.com/caldera-scheduler/caldera/pkg/queue/dispatch"
	"github.com/caldera-scheduler/caldera/pkg/queuegate"
	"github.com/caldera-scheduler/caldera/pkg/status"
)

// Core is what the plugins of one scheduler share.
type Core struct {
	State *model.State
	// Rules are those in force.
	Rules *InForce
	// Lag is what the scheduler's cache has yet to learn.
	Lag    *lag.Lag
	Events Events
	// Background is what runs for the rules in force.
	Background Background
	started
	lifecycle

	options  Options
	profiles profiles
	setup    setup
}

// started are the parts that Start builds. Before, all of them are nil.
type started struct {
	Dispatcher *dispatch.Dispatcher
	Writer     *status.Writer
	Evictions  *reserve.Keeper
	// Gates takes the scheduling gate of queues off pods.
	Gates      *queuegate.Opener
	Preemption *preemption.Preemption

	// handle is the profile through which the core acts.
	handle   framework.Framework
	queueing Queueing
	// first is what is done before anything is decided; nil for nothing.
	first func(context.Context)
	// quotas: resource quotas are followed. Only Start and Adopt look at it.
	quotas bool
}

// Options are what a core can be given instead of what it takes by itself. The zero value is right for a scheduler
// on an API server.
type Options struct {
	// Groups are the group APIs; nil: those of the API server the scheduler is connected to.
	Groups *informer.Clients
	// Clock is the time the dispatcher and the status writer live by; nil: the real one.
	Clock clock.WithTickerAndDelayedExecution
	// Policies are those that tiers may name besides the built-in ones, by their names there.
	Policies map[string]PolicyFactory
	// Leads reports whether this scheduler may still have pods evicted, which it may not once its lease has run out; nil: it always may.
	Leads func() bool
	// Binds wraps how requests are sent that bind pods; nil: they are sent as all others.
	Binds transport.WrapperFunc
	// AllAtHand: the informers know of an object before anybody can name it, as they do of objects in memory.
	AllAtHand bool
	// FlushedStatus leaves it to the caller to have the writer write, by its Flush.
	FlushedStatus bool
}

// ownerPatience is how long a pod waits for news of its controller.
func (o Options) ownerPatience() time.Duration {
	if o.AllAtHand {
		return 0
	}
	return informer.OwnerPatience
}

// New returns a core without profiles.
func New(o Options) *Core {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	state := model.NewState()
	return &Core{
		State: state, Rules: newInForce(state), Lag: lag.New(o.Clock, state.Task), options: o, setup: setup{voters: map[string]VoterFactory{}},
		profiles: profiles{attached: map[string]framework.Framework{}}, lifecycle: newLifecycle(),
	}
}

// PolicyNames are the names that tiers may have besides the built-in ones.
func (c *Core) PolicyNames() []string { return slices.Sorted(maps.Keys(c.options.Policies)) }

// Configure sets the rules, and the profile through which the core acts. Upstream gives all profiles the same arguments of the QueueSort plugin, so
// that the first call decides. An error says what is wrong with them.
func (c *Core) Configure(ctx context.Context, handle framework.Framework, args *config.BatchQueueArgs) error {
	c.setup.mu.Lock()
	defer c.setup.mu.Unlock()
	if c.Dispatcher == nil {
		c.profiles.sort(handle)
	}
	if c.setup.start != nil {
		return nil
	}
	rules, err := c.Prepare(ctx, handle, args, nil)
	if err != nil {
		return err
	}
	c.Rules.rules.Store(rules)
	c.setup.start = sync.OnceValue(func() error { return c.build(ctx, handle) })
	return nil
}

// ConfigureEvictions says how evictions are carried out. All profiles share what does that, so that the first call decides.
func (c *Core) ConfigureEvictions(args *config.ReclaimArgs) { c.setup.evictBy(args) }

// Join tells the core of a plugin of its first profiles.
func (c *Core) Join(plugin fwk.Plugin) { c.setup.join(plugin) }

// Attach makes the pods of a profile tasks. Pods of profiles that are not attached are usage only.
func (c *Core) Attach(handle framework.Framework) {
	c.State.AddScheduler(handle.ProfileName())
	c.profiles.attach(handle)
}

// Start builds the parts and begins to watch, once. All profiles must have been attached.
func (c *Core) Start() error { return c.setup.start() }

// Queueing is what waits in front of the scheduling queue.
type Queueing struct {
	// Activate moves pods to the active queue, and tells which are not there then.
	Activate func(klog.Logger, []*corev1.Pod) []dispatch.Standing
	// Admit moves pods to the queue, behind its gate, so that it tells filters of their nominations.
	Admit func(klog.Logger, []*corev1.Pod)
}

// nothingBefore is that of a scheduler whose queue has all pods.
func nothingBefore(handle framework.Framework) Queueing {
	return Queueing{
		Activate: func(logger klog.Logger, pods []*corev1.Pod) []dispatch.Standing {
			handle.Activate(logger, byName(pods))
			return nil
		},
		Admit: func(klog.Logger, []*corev1.Pod) {},
	}
}

// QueueBy has pods moved by other functions than the handle's. It must be called before the scheduler runs.
func (c *Core) QueueBy(q Queueing) { c.queueing = q }

// First has something done once the scheduler leads, before it decides anything. It must be called before the scheduler runs.
func (c *Core) First(do func(context.Context)) { c.first = do }

// Binding is the client by which pods of a batch profile are bound. It has the scheduler's own connection, and its limit.
func (c *Core) Binding(handle framework.Framework) (kubernetes.Interface, error) {
	if c.options.Binds == nil {
		return handle.ClientSet(), nil
	}
	config := rest.CopyConfig(handle.KubeConfig())
	config.Wrap(c.options.Binds)
	config.RateLimiter = handle.ClientSet().CoreV1().RESTClient().GetRateLimiter()
	return kubernetes.NewForConfig(config)
}

// Pods lists the pods that the scheduler's informer has. It must not be called before Start.
func (c *Core) Pods() corelisters.PodLister {
	return c.handle.SharedInformerFactory().Core().V1().Pods().Lister()
}

// Batch reports whether a pod belongs to a batch profile.
func (c *Core) Batch(pod *corev1.Pod) bool { return c.State.Schedules(pod.Spec.SchedulerName) }

// Holds reports whether a pod waits for the turn of its job: it belongs to a batch profile, and there is no turn that includes it.
func (c *Core) Holds(pod *corev1.Pod) bool { return c.Batch(pod) && !c.Dispatcher.Gate(pod.UID) }

// Urgent reports whether a pod is a planned member of the turn that is on.
func (c *Core) Urgent(pod *corev1.Pod) bool { return c.Batch(pod) && c.Dispatcher.Urgent(pod.UID) }

// MakeRoom tries to make room for a turn.
func (c *Core) MakeRoom(ctx context.Context, t preemption.Turn) (preemption.Outcome, error) {
	return c.Preemption.Try(ctx, t)
}

// Clock is the time the core lives by.
func (c *Core) Clock() clock.WithTickerAndDelayedExecution { return c.options.Clock }

// build creates the parts and begins to watch.
func (c *Core) build(ctx context.Context, handle framework.Framework) error {
	logger := klog.FromContext(ctx).WithName("caldera")
	ctx = klog.NewContext(ctx, logger)
	groups, err := c.Clients(handle)
	if err != nil {
		return err
	}
	writer, err := status.NewAt(c.options.Clock, groups.Volcano, handle.ClientSet(), c.State)
	if err != nil {
		return fmt.Errorf("building the status writer: %w", err)
	}
	writer.WriteCoscheduling(groups.Coscheduling)
	c.Writer, c.handle = writer, handle
	c.queueing = nothingBefore(handle)
	rules := c.Rules.current()
	rules.use(c.setup.joined)
	if err := rules.check(ctx, c.setup.evicts()); err != nil {
		return err
	}
	c.profiles.warnOfPreemption(logger)
	c.Evictions = reserve.New(reserve.Config{
		State: c.State, Writer: writer, Profile: handle, Clock: c.options.Clock, Args: c.setup.evictions(),
		Queue: func(pods []*corev1.Pod) { c.queueing.Admit(logger, pods) }, Leads: c.options.Leads,
	})
	c.coolDown(rules)
	releaser := &release.Releaser{State: c.State, Writer: writer, Keeper: c.Evictions, Evicts: c.Rules.Evicts}
	c.Gates = queuegate.NewOpener(ctx, handle.ClientSet(), c.options.Clock, func(t *model.Task, err error) { c.Dispatcher.GateKept(t, err) })
	c.Dispatcher = dispatch.New(dispatch.Config{
		State:     c.State,
		Rules:     rules.forDispatch(),
		MayFit:    gang.MayFit,
		NeverFits: gang.NeverFits,
		Checks:    c.profiles.checks,
		Lead:      func(job *model.Job) *model.Task { return c.Rules.Arrange(job).Order.Lead(job) },
		Activate:  func(pods []*corev1.Pod) []dispatch.Standing { return c.queueing.Activate(logger, pods) },
		Settle:    func(members []types.UID, bind bool) { settle(handle, members, bind) },
		Ungate:    c.Gates.Open,
		Report:    writer.Waits,
		Fault:     writer.QueueFault,
		Release:   func(t dispatch.Trouble) { releaser.Release(ctx, t) },
		Abandon:   c.Evictions.Abandon,
		Tell:      releaser.Tell,
		Recorder:  metrics.Recorder{},
		Clock:     c.options.Clock,
	})
	c.Preemption = &preemption.Preemption{Dispatcher: c.Dispatcher, Keeper: c.Evictions, Extension: c.Rules, Clock: c.options.Clock}
	writer.FollowNumbers(c.Dispatcher.Renewed)
	writer.FollowQueues(func() []status.QueueFacts { return queueFacts(c.State, c.Dispatcher) })
	c.State.ObserveFirst(c.Lag.Notify)
	c.State.Observe(c.Dispatcher.Notify)
	c.State.Observe(writer.Notify)
	owners, synced, err := c.feed(handle, rules)
	if err != nil {
		return err
	}
	go c.run(ctx, owners, groups, synced)
	return nil
}

// feed has the model fed by informers. It returns what feeds pods, and what reports that all else has been delivered.
func (c *Core) feed(handle fwk.Handle, rules *Rules) (*informer.Owners, []cache.DoneChecker, error) {
	factory := handle.SharedInformerFactory()
	owners, err := informer.NewOwners(c.State, factory, handle.ClientSet(), c.options.Clock, c.options.ownerPatience())
	if err != nil {
		return nil, nil, err
	}
	synced, err := informer.Core(c.State, factory)
	if err != nil {
		return nil, nil, err
	}
	if c.quotas = rules.policies.Quotas; c.quotas {
		quotas, err := informer.Quotas(c.State, factory)
		if err != nil {
			return nil, nil, err
		}
		synced = append(synced, quotas)
	}
	return owners, synced, nil
}

// queueFacts is what the status of queues tells.
func queueFacts(state *model.State, d *dispatch.Dispatcher) []status.QueueFacts {
	var facts []status.QueueFacts
	reserved, known := d.View().Reservations()
	for _, q := range d.View().Figures() {
		if object := state.Queue(q.Name); object != nil {
			facts = append(facts, status.QueueFacts{
				Queue: object, Allocated: q.Total.Allocated, Groups: q.Groups, Recent: q.Recent, Forgotten: q.Forgotten,
				Reservation: reserved[q.Name], Decided: known,
			})
		}
	}
	return facts
}

// Clients returns clients of the APIs of batch schedulers, Volcano's among them. It is an informer.Connect.
func (c *Core) Clients(handle fwk.Handle) (informer.Clients, error) {
	if c.options.Groups != nil {
		return *c.options.Groups, nil
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
func (c *Core) run(ctx context.Context, owners *informer.Owners, groups informer.Clients, synced []cache.DoneChecker) {
	logger := klog.FromContext(ctx)
	watching, watchCtx := errgroup.WithContext(ctx)
	watching.Go(func() error { return owners.Run(ctx) })
	watching.Go(func() error { return informer.Finished(ctx, c.State, c.handle.ClientSet(), owners.Seen()) })
	watching.Go(func() error { return informer.Groups(ctx, c.State, groups) })
	watching.Go(func() error { return informer.ClaimTemplates(ctx, c.State, c.handle.ClientSet()) })
	watching.Go(func() error {
		if !cache.WaitFor(watchCtx, "", synced...) {
			return fmt.Errorf("waiting for nodes: %w", context.Cause(watchCtx))
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
	close(c.complete)
	select {
	case <-ctx.Done():
		return
	case <-c.leading:
	}
	if c.first != nil {
		c.first(ctx)
	}
	c.State.Lead()
	if !c.options.FlushedStatus {
		c.Writer.StartEvents()
		go c.Writer.Run(ctx)
	}
	go c.Evictions.Run(ctx)
	go c.Gates.Run(ctx)
	c.Background.begin(ctx, c.Rules, shuffle.Parts{State: c.State, Keeper: c.Evictions, Protection: c.Dispatcher.Protection})
	c.Dispatcher.Run(ctx)
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
