// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gangpreemption is the plugin GangPreemption: upstream's DefaultPreemption for profiles of ordinary pods, which leaves whole gangs
// their minimum, and prefers what broken gangs hold.
package gangpreemption

import (
	"context"
	"fmt"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/apis/scheduling"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
	"k8s.io/utils/clock"

	"github.com/caldera-scheduler/caldera/pkg/apis/config/validation"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/plugins/names"
	"github.com/caldera-scheduler/caldera/pkg/policy"
)

// GangPreemption is upstream's preemption with our rule of who may go.
type GangPreemption struct {
	*defaultpreemption.DefaultPreemption
	parts Parts
	// done is closed when the scheduler ends.
	done <-chan struct{}
	// asking reports whether the API server is being asked to delete pods for a preemptor.
	asking func(preemptor types.UID) bool
	// cycle is what the preemption that is on goes by; nil between two. There is one at a time: all scheduling cycles are one goroutine's.
	cycle atomic.Pointer[cycle]
}

var (
	_ fwk.PostFilterPlugin  = &GangPreemption{}
	_ fwk.PreEnqueuePlugin  = &GangPreemption{}
	_ fwk.EnqueueExtensions = &GangPreemption{}
	_ preemption.Interface  = &GangPreemption{}
)

// Name is the plugin's name in a KubeSchedulerConfiguration.
const Name = names.GangPreemption

// Parts are what the plugin asks of the scheduler that it belongs to.
type Parts struct {
	State *model.State
	Clock clock.WithTicker
	// Ordinary says who may go for an ordinary pod; nil where no profile is a batch profile.
	Ordinary func() *policy.Ordinary
}

// batch reports whether a pod is of a batch profile.
func (p Parts) batch(pod *corev1.Pod) bool { return p.State.Schedules(pod.Spec.SchedulerName) }

// New returns the factory of the plugin.
func New(parts Parts) func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) {
	return func(ctx context.Context, obj runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
		args, err := validation.Args(obj, validation.ValidateGangPreemptionArgs)
		if err != nil {
			return nil, err
		}
		upstream, err := defaultpreemption.New(ctx, &schedulerconfig.DefaultPreemptionArgs{
			MinCandidateNodesPercentage: args.MinCandidateNodesPercentage, MinCandidateNodesAbsolute: args.MinCandidateNodesAbsolute,
		}, handle, feature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate))
		if err != nil {
			return nil, fmt.Errorf("building upstream's preemption: %w", err)
		}
		pl := &GangPreemption{DefaultPreemption: upstream, parts: parts, done: ctx.Done(), asking: upstream.Executor.IsPodRunningPreemption}
		upstream.IsEligiblePod, upstream.MoreImportantVictim = pl.eligible, pl.moreImportant
		// Who was chosen is learned from the search itself.
		upstream.Evaluator.PluginName, upstream.Evaluator.Interface = Name, pl
		return pl, nil
	}
}

// Name returns the plugin's name.
func (pl *GangPreemption) Name() string { return Name }

// PostFilter preempts for a pod. The victims are leaving from now on as far as the model goes: the API server is asked for them later, and
// what they leave of their gangs must not be taken for surplus until then.
func (pl *GangPreemption) PostFilter(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, m fwk.NodeToStatusReader) (*fwk.PostFilterResult, *fwk.Status) {
	c := newCycle(pl.parts)
	pl.cycle.Store(c)
	defer pl.cycle.Store(nil)
	result, status := pl.DefaultPreemption.PostFilter(ctx, state, pod, m)
	if status.IsSuccess() && result != nil && result.NominatingInfo != nil {
		if victims := c.victims[result.NominatedNodeName]; len(victims) > 0 {
			pl.leave(pod.UID, victims)
		}
	}
	return result, status
}

// SelectVictimsOnNode searches as upstream does, and remembers who was found.
func (pl *GangPreemption) SelectVictimsOnNode(ctx context.Context, state fwk.CycleState, preemptor *corev1.Pod, node fwk.NodeInfo,
	possible []*preemption.DomainVictim, budgets []*policyv1.PodDisruptionBudget,
) ([]*corev1.Pod, int, *fwk.Status) {
	victims, violating, status := pl.DefaultPreemption.SelectVictimsOnNode(ctx, state, preemptor, node, possible, budgets)
	if c := pl.cycle.Load(); c != nil && status.IsSuccess() {
		c.found(node.Node().Name, victims)
	}
	return victims, violating, status
}

// OrderedScoreFuncs leaves only those nodes to choose from on which nothing but broken gangs has to go, if there are some; of these upstream's
// order decides. Upstream has no other place where nodes could be told apart without taking its own criteria away.
func (pl *GangPreemption) OrderedScoreFuncs(ctx context.Context, nodes map[string]*extenderv1.Victims) []func(node string) int64 {
	if c := pl.cycle.Load(); c != nil {
		c.preferBroken(nodes)
	}
	return pl.DefaultPreemption.OrderedScoreFuncs(ctx, nodes)
}

// eligible reports whether a victim may go from a node. Pods that the cluster cannot do without may have anybody go, as upstream demands.
func (pl *GangPreemption) eligible(node fwk.NodeInfo, victim preemption.Victim, preemptor *corev1.Pod) bool {
	c := pl.cycle.Load()
	least := corev1helpers.PodPriority(preemptor)
	if c == nil || least >= scheduling.SystemCriticalPriority {
		return true
	}
	for _, info := range victim.Pods() {
		if pod := info.GetPod(); pod.Spec.NodeName == node.Node().Name && pl.parts.batch(pod) && !c.spares(node, least)[pod.UID] {
			return false
		}
	}
	return true
}

// moreImportant is upstream's order of victims, in which what broken gangs hold goes before all others.
func (pl *GangPreemption) moreImportant(a, b preemption.Victim) bool {
	if c := pl.cycle.Load(); c != nil {
		if x, y := c.brokenVictim(a), c.brokenVictim(b); x != y {
			return y
		}
	}
	return preemption.MoreImportantVictim(a, b)
}
