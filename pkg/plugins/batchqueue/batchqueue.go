// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package batchqueue is the plugin BatchQueue: it keeps batch pods behind a gate until the dispatcher gives their job
// a turn, and sorts the pods that are let through.
package batchqueue

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/apis/config/validation"
	"github.com/caldera-scheduler/caldera/pkg/plugins/names"
)

// BatchQueue gates and sorts.
type BatchQueue struct {
	core Core
}

var (
	_ fwk.QueueSortPlugin   = &BatchQueue{}
	_ fwk.PreEnqueuePlugin  = &BatchQueue{}
	_ fwk.EnqueueExtensions = &BatchQueue{}
)

// Name is the plugin's name in a KubeSchedulerConfiguration.
const Name = names.BatchQueue

// Core is what the plugin asks of its scheduler.
type Core interface {
	// PolicyNames are those that tiers may name besides the built-in ones.
	PolicyNames() []string
	// Configure takes the arguments of a profile; an error says what is wrong with them.
	Configure(ctx context.Context, handle framework.Framework, args *config.BatchQueueArgs) error
	// Start builds what the plugins of all profiles share, once these exist.
	Start() error
	// Holds reports whether a pod is to wait for the turn of its job.
	Holds(pod *corev1.Pod) bool
	// Urgent reports whether a pod is a planned member of the turn that is on.
	Urgent(pod *corev1.Pod) bool
}

// New returns the factory of the plugin.
func New(core Core) func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) {
	return func(ctx context.Context, obj runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
		check := func(path *field.Path, args *config.BatchQueueArgs) error {
			return validation.ValidateBatchQueueArgs(path, args, core.PolicyNames()...)
		}
		args, err := validation.Args(obj, check)
		if err != nil {
			return nil, err
		}
		f, ok := handle.(framework.Framework)
		if !ok {
			return nil, fmt.Errorf("want the handle to be a framework.Framework, got %T", handle)
		}
		if err := core.Configure(ctx, f, args); err != nil {
			return nil, err
		}
		return &BatchQueue{core: core}, nil
	}
}

// Name returns the plugin's name.
func (pl *BatchQueue) Name() string { return Name }

// EventsToRegister returns nothing: a gating plugin that registers events has all its gated pods evaluated at each of
// them. What can help a job that waits is watched by the dispatcher, which activates the pods itself. By the time it is
// called the plugins of all profiles exist, so it also starts what they share.
func (pl *BatchQueue) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return nil, pl.core.Start()
}

// Less puts the planned members of the turn first, so that nothing takes their nodes in between. All other pods sort
// as upstream's PrioritySort has them: by priority, then by the time they came. Of two that came at the same moment the one with the smaller
// UID is first, so that scheduling cycles come in one order.
func (pl *BatchQueue) Less(a, b fwk.QueuedEntityInfo) bool {
	if x, y := pl.urgent(a), pl.urgent(b); x != y {
		return x
	}
	if p, q := a.GetPriority(), b.GetPriority(); p != q {
		return p > q
	}
	if c := a.GetTimestamp().Compare(b.GetTimestamp()); c != 0 {
		return c < 0
	}
	p, isPod := a.(*framework.QueuedPodInfo)
	q, isToo := b.(*framework.QueuedPodInfo)
	return isPod && isToo && p.Pod.UID < q.Pod.UID
}

// urgent is stable while a pod is in the heap: a member is marked before it is activated and stays one until the turn
// ends, which no member in the heap outlives unless the turn was broken off.
func (pl *BatchQueue) urgent(entity fwk.QueuedEntityInfo) bool {
	info, ok := entity.(*framework.QueuedPodInfo)
	return ok && pl.core.Urgent(info.Pod)
}

// PreEnqueue lets a pod of a batch profile pass only while its job has a turn that includes it.
func (pl *BatchQueue) PreEnqueue(_ context.Context, pod *corev1.Pod) *fwk.Status {
	if pl.core.Holds(pod) {
		return gated
	}
	return nil
}

// gated is shared by all pods behind the gate; the framework only reads it.
var gated = fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "waiting for the turn of its job")
