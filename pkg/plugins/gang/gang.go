// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gang is the plugin Gang: the scheduling cycle of a turn's lead plans the whole gang, the cycles of the other
// members go to their planned nodes, and binding is bounded.
package gang

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultbinder"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/apis/config/validation"
	"github.com/caldera-scheduler/caldera/pkg/gang"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/plugins/batchqueue"
	"github.com/caldera-scheduler/caldera/pkg/plugins/names"
	"github.com/caldera-scheduler/caldera/pkg/plugins/planner"
	"github.com/caldera-scheduler/caldera/pkg/queue/dispatch"
	"github.com/caldera-scheduler/caldera/pkg/requests"
)

// Gang plans and places whole gangs.
type Gang struct {
	handle  framework.Framework
	parts   Parts
	args    config.GangArgs
	planner *gang.Planner
	binder  fwk.BindPlugin
	binds   *requests.Limiter
}

var (
	_ fwk.PreFilterPlugin   = &Gang{}
	_ fwk.FilterPlugin      = &Gang{}
	_ fwk.PostFilterPlugin  = &Gang{}
	_ fwk.ReservePlugin     = &Gang{}
	_ fwk.PermitPlugin      = &Gang{}
	_ fwk.BindPlugin        = &Gang{}
	_ fwk.EnqueueExtensions = &Gang{}
)

// Name is the plugin's name in a KubeSchedulerConfiguration.
const Name = names.Gang

// New returns the factory of the plugin. Each profile bounds its own binds.
func New(parts Parts) func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) {
	devices := planner.NewDevices(func(job model.JobKey) []*resourcev1.AllocationResult { return parts.Keeper().KeptDevices(job) })
	return func(ctx context.Context, obj runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
		args, err := validation.Args(obj, validation.ValidateGangArgs)
		if err != nil {
			return nil, err
		}
		f, ok := handle.(framework.Framework)
		if !ok {
			return nil, fmt.Errorf("want the handle to be a framework.Framework, got %T", handle)
		}
		parts.Attach(f)
		client, err := parts.Binding(f)
		if err != nil {
			return nil, fmt.Errorf("building the client for binds: %w", err)
		}
		binder, err := defaultbinder.New(ctx, nil, bindingHandle{handle, client})
		if err != nil {
			return nil, fmt.Errorf("building the binder: %w", err)
		}
		return &Gang{
			handle:  f,
			parts:   parts,
			args:    *args,
			planner: newPlanner(f, parts, devices),
			binder:  surely{binder.(fwk.BindPlugin), handle.ClientSet()},
			binds: requests.NewLimiter(int(args.BindConcurrency), parts.Clock, requests.Told{
				InLine: func(more int) { parts.Turns().Unbound(more) },
				Aside:  func(namespace string, more int) { parts.Turns().SlowBinds(namespace, more) },
			}),
		}, nil
	}
}

// Name returns the plugin's name.
func (pl *Gang) Name() string { return Name }

// EventsToRegister returns no events: a pod that fails goes back behind the gate, and only the dispatcher brings it
// out again. By the time it is called all plugins of the profile exist, so it also checks that they go together.
func (pl *Gang) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	plugins := pl.handle.ListPlugins()
	listed := func(set schedulerconfig.PluginSet) []string {
		var list []string
		for _, p := range set.Enabled {
			list = append(list, p.Name)
		}
		return list
	}
	var errs []error
	complain := func(format string, a ...any) {
		errs = append(errs, fmt.Errorf("profile %q: "+format, append([]any{pl.handle.ProfileName()}, a...)...))
	}
	if !sets.New(listed(plugins.PreEnqueue)...).Has(batchqueue.Name) {
		complain("plugin %s needs %s at preEnqueue: enable it there or at multiPoint", Name, batchqueue.Name)
	}
	if list := listed(plugins.PreFilter); len(list) == 0 || list[0] != Name {
		complain("plugin %s must be the first at preFilter, where the order is %v: list it at preFilter and at multiPoint", Name, list)
	}
	if list := listed(plugins.Bind); len(list) == 0 || list[0] != Name {
		complain("plugin %s must be the first at bind, where the order is %v: list it at bind and at multiPoint", Name, list)
	}
	if sets.New(listed(plugins.PostFilter)...).Has(defaultpreemption.Name) {
		complain("plugin %s evicts for single pods of a gang: disable it at multiPoint or postFilter", defaultpreemption.Name)
	}
	if order := listed(plugins.PostFilter); slices.Contains(order, Name) && !endsTurns(order) {
		complain("plugin %s must be the first at postFilter, behind %s if that is enabled, where the order is %v: list them so at postFilter and at multiPoint",
			Name, names.Reclaim, order)
	}
	if pl.parts.Rules.PlacesOutside() && !sets.New(listed(plugins.Filter)...).Has(names.Extender) {
		complain("the tiers have an extender with verbs about nodes, and plugin %s, which asks these, is not enabled: enable it at multiPoint with the same verbs in its args, or take them out of the tiers",
			names.Extender)
	}
	for point, set := range map[string]schedulerconfig.PluginSet{
		"filter": plugins.Filter, "postFilter": plugins.PostFilter, "reserve": plugins.Reserve, "permit": plugins.Permit,
	} {
		if !sets.New(listed(set)...).Has(Name) {
			complain("plugin %s is not enabled at %s: enable it at multiPoint", Name, point)
		}
	}
	return nil, errors.Join(errs...)
}

// endsTurns reports whether Gang comes first at PostFilter, with Reclaim before it if that is enabled: a plugin before it
// that fails, or makes room for a single pod, would leave a refused turn without an end.
func endsTurns(order []string) bool {
	if order[0] == names.Reclaim {
		order = order[1:]
	}
	return len(order) > 0 && order[0] == Name && !slices.Contains(order, names.Reclaim)
}

const turnOver = "the turn of its job is over"

// pinKey is where a cycle's pin is kept.
const pinKey fwk.StateKey = Name + "/pin"

// pin is what the turn says about the pod of a cycle.
type pin struct {
	node string
	// turn numbers the turns; smaller is older.
	turn uint64
	// hushed: the event on its PodGroup speaks for the pod.
	hushed bool
}

// Clone implements fwk.StateData.
func (p *pin) Clone() fwk.StateData { return p }

func pinOf(state fwk.CycleState) *pin {
	if data, err := state.Read(pinKey); err == nil {
		return data.(*pin)
	}
	return nil
}

// PreFilter plans the turn if the pod leads it, and pins the pod to its planned node.
func (pl *Gang) PreFilter(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, _ []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	if gang.Planning(state) {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	entry := pl.parts.Turns().Enter(pod.UID)
	switch entry.Verdict {
	case dispatch.Member:
	case dispatch.Lead:
		node, status := pl.lead(ctx, state, pod, entry)
		if !status.IsSuccess() {
			return nil, status
		}
		entry.Node = node
	default:
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, turnOver)
	}
	state.Write(pinKey, &pin{node: entry.Node, turn: entry.Turn, hushed: pl.args.ScheduledEvents == config.PerGang && pl.starts(pod)})
	return &fwk.PreFilterResult{NodeNames: sets.New(entry.Node)}, nil
}

// starts reports whether the pod is one of those with which a Volcano PodGroup has its minimum: that gets an event of its own.
func (pl *Gang) starts(pod *corev1.Pod) bool {
	key := pl.parts.State.JobOf(pod)
	if key.Source != model.FromVolcano {
		return false
	}
	job := pl.parts.State.Summary(key)
	return job != nil && job.Group != nil && !job.Ready()
}

// lead plans the turn and returns the node of the leading pod.
func (pl *Gang) lead(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, entry dispatch.Entry) (string, *fwk.Status) {
	logger, job, began := klog.FromContext(ctx), entry.Job, pl.parts.Clock.Now()
	request := gang.Request{
		Job: job, Budget: func() gang.Budget { return entry.Budget.Clone() }, NodesFirst: entry.NodesFirst,
		Nominated: pl.nominated(entry.Passes), Departures: pl.parts.Keeper().Holds.Departures(), Followers: entry.Followers,
	}
	if reason, again := pl.parts.Rules.ExternalHold(); reason != (model.Reason{}) {
		return "", pl.withhold(ctx, state, pod, &Refusal{Request: request, Reason: reason, Again: again})
	}
	plan, err := gang.Plan{Reason: entry.Limit}, error(nil)
	if entry.Limit == (model.Reason{}) {
		plan, err = pl.plan(ctx, request)
	}
	switch {
	case err != nil:
		pl.parts.Turns().Errored(pod.UID, err)
		return "", fwk.AsStatus(fmt.Errorf("planning job %s: %w", job.Key, err))
	case len(plan.Placements) == 0:
		message := pl.parts.Turns().Settled(pod.UID, plan.Reason).Message
		behind, late := pl.behind(pod, began)
		if behind && pl.parts.Turns().Repeat(pod.UID) {
			logger.V(4).Info("Job is planned again: the scheduler's cache is behind", "job", job.Key)
			return "", fwk.NewStatus(fwk.Unschedulable, message)
		}
		logger.V(3).Info("Job does not fit", "job", job.Key, "reason", plan.Reason.Text())
		state.Write(refusalKey, &Refusal{
			Request: request, Reason: plan.Reason, Planner: pl.planner, Doubts: plan.Doubts, Stale: behind || late,
			Doubted: func() bool {
				return pl.parts.Lag.Doubted(pl.handle.SnapshotSharedLister().NodeInfos(), func(node string) bool {
					return pl.parts.Turns().Concerns(pod.UID, node)
				})
			},
		})
		return "", fwk.NewStatus(fwk.Unschedulable, message)
	}
	if reason, again := pl.parts.Rules.Ready(ctx, job, plan.Placements); reason != (model.Reason{}) {
		return "", pl.withhold(ctx, state, pod, &Refusal{Request: request, Reason: reason, Again: again})
	}
	pl.parts.Keeper().Inherit(job, plan.Placements)
	pl.fill(entry.Passes, plan.Placements)
	pods, nodes := make([]*corev1.Pod, len(plan.Placements)), make([]string, len(plan.Placements))
	for i, p := range plan.Placements {
		pods[i], nodes[i] = p.Task.Pod, p.Node
	}
	logger.V(3).Info("Job planned", "job", job.Key, "pods", len(pods), "fragile", plan.Fragile)
	node := pl.parts.Turns().Planned(pod.UID, pods, nodes, plan.Fragile)
	if node == "" {
		return "", fwk.NewStatus(fwk.Unschedulable, "no node fits it; other members of its job start without it")
	}
	return node, nil
}

// behind reports whether the scheduler's cache lacks room that may be of use to the turn that a pod leads, and was there when it began.
func (pl *Gang) behind(lead *corev1.Pod, began time.Time) (behind, late bool) {
	return pl.parts.Lag.Behind(pl.handle.SnapshotSharedLister().NodeInfos(), began, func(node string) bool {
		return pl.parts.Turns().Concerns(lead.UID, node)
	})
}

// withhold refuses a turn whatever room there is.
func (pl *Gang) withhold(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, refusal *Refusal) *fwk.Status {
	klog.FromContext(ctx).V(3).Info("Job may not start", "job", refusal.Request.Job.Key, "reason", refusal.Reason.Text())
	refusal.Withheld, refusal.Planner = true, pl.planner
	state.Write(refusalKey, refusal)
	return fwk.NewStatus(fwk.Unschedulable, pl.parts.Turns().Settled(pod.UID, refusal.Reason).Message)
}

// PreFilterExtensions returns nil: the pin does not depend on other pods.
func (pl *Gang) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

// Filter keeps a pinned pod off other nodes, a nominated one for instance.
func (pl *Gang) Filter(_ context.Context, state fwk.CycleState, _ *corev1.Pod, node fwk.NodeInfo) *fwk.Status {
	if p := pinOf(state); p != nil && p.node != node.Node().Name {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, elsewhere)
	}
	return nil
}

const elsewhere = "node(s) were not the one planned for the pod"

// PostFilter ends a turn that was refused, and learns that a planned node does not take its pod any more, so that the job
// is planned again.
func (pl *Gang) PostFilter(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, _ fwk.NodeToStatusReader) (*fwk.PostFilterResult, *fwk.Status) {
	if r := RefusalOf(state); r != nil {
		if !r.Repeated {
			pl.parts.Turns().Refused(pod.UID, r.forDispatch())
		}
		return nil, fwk.NewStatus(fwk.Unschedulable)
	}
	p := pinOf(state)
	if p == nil {
		// Its turn was over before anybody looked for a node. Plugins behind this one, which go by what they found then, would fail.
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable)
	}
	klog.FromContext(ctx).V(3).Info("Planned node was lost, planning again", "job", pl.parts.State.JobOf(pod), "pod", klog.KObj(pod), "node", p.node)
	pl.parts.Turns().Lost(pod.UID, pl.parts.State.JobOf(pod))
	return nil, fwk.NewStatus(fwk.Unschedulable)
}

// Reserve records in the model that the pod holds its node. A pod whose turn was broken off since its cycle began gets none: the members
// that were to start with it do not.
func (pl *Gang) Reserve(_ context.Context, state fwk.CycleState, pod *corev1.Pod, nodeName string) *fwk.Status {
	switch {
	case gang.Planning(state):
	case !pl.parts.Turns().MayReserve(pod.UID, nodeName):
		return fwk.NewStatus(fwk.Unschedulable, turnOver)
	default:
		pl.parts.State.Assume(pod.UID, nodeName)
	}
	return nil
}

// Unreserve takes the reservation back and has the job planned again.
func (pl *Gang) Unreserve(_ context.Context, state fwk.CycleState, pod *corev1.Pod, _ string) {
	if !gang.Planning(state) {
		pl.parts.Turns().Unreserved(pod.UID, pl.parts.State.JobOf(pod))
		pl.parts.State.Forget(pod.UID)
	}
}

// Permit ends the turn with the last member. Members wait here only if a reservation of the turn could still fail.
func (pl *Gang) Permit(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ string) (*fwk.Status, time.Duration) {
	if pl.parts.Turns().Reserved(pod.UID) {
		return fwk.NewStatus(fwk.Wait, "waiting for the rest of its gang"), pl.args.ReservationTimeout.Duration
	}
	return nil, 0
}

// Bind binds the pod as soon as it is among those allowed to, pods of older turns first.
func (pl *Gang) Bind(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, nodeName string) *fwk.Status {
	var p pin
	if pinned := pinOf(state); pinned != nil {
		p = *pinned
	}
	seat, err := pl.binds.Acquire(ctx, pod.Namespace, p.turn)
	if err != nil {
		return fwk.AsStatus(fmt.Errorf("waiting to bind: %w", err))
	}
	defer seat.Release()
	status := pl.binder.Bind(ctx, state, pod, nodeName)
	if status.IsSuccess() {
		pl.parts.Turns().Bound(pl.parts.State.JobOf(pod))
		if p.hushed {
			pl.parts.Suppress(pod.UID)
		}
	}
	return status
}
