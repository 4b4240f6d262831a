// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reclaim is the plugin Reclaim: when there is no room for the tasks of a turn it looks for pods that may be
// evicted for them, by the actions preempt, reclaim, gangpreempt and gangreclaim as they are configured, and has them
// evicted if that lets the whole gang start.
package reclaim

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/apis/config/validation"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/plugins/gang"
	"github.com/caldera-scheduler/caldera/pkg/plugins/names"
	"github.com/caldera-scheduler/caldera/pkg/preemption"
	"github.com/caldera-scheduler/caldera/pkg/queue/dispatch"
)

// Reclaim makes room.
type Reclaim struct {
	core Core
}

var _ fwk.PostFilterPlugin = &Reclaim{}

// Name is the plugin's name in a KubeSchedulerConfiguration.
const Name = names.Reclaim

// Core is what the plugin asks of its scheduler.
type Core interface {
	// ConfigureEvictions says how evictions are carried out; the first to say so is heeded.
	ConfigureEvictions(args *config.ReclaimArgs)
	// MakeRoom tries to make room for a turn; see preemption.Preemption.
	MakeRoom(ctx context.Context, t preemption.Turn) (preemption.Outcome, error)
}

// New returns the factory of the plugin. All profiles share what carries out evictions, by the arguments of the first.
func New(core Core) func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) {
	return func(_ context.Context, obj runtime.Object, _ fwk.Handle) (fwk.Plugin, error) {
		args, err := validation.Args(obj, validation.ValidateReclaimArgs)
		if err != nil {
			return nil, err
		}
		core.ConfigureEvictions(args)
		return &Reclaim{core: core}, nil
	}
}

// Name returns the plugin's name.
func (pl *Reclaim) Name() string { return Name }

// PostFilter makes room for a turn that was refused, if the policies allow that. Otherwise the reason tells why. Upstream writes the node that is
// named here together with the condition Unschedulable: autoscalers that saw that alone would bring a node for the pod.
func (pl *Reclaim) PostFilter(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, _ fwk.NodeToStatusReader) (*fwk.PostFilterResult, *fwk.Status) {
	refusal := gang.RefusalOf(state)
	if refusal == nil || refusal.Withheld {
		return nil, fwk.NewStatus(fwk.Unschedulable)
	}
	outcome, err := pl.core.MakeRoom(ctx, preemption.Turn{
		Lead: pod, Request: refusal.Request, Planner: refusal.Planner, Doubted: refusal.Doubted, NoRoom: refusal.Reason.FromNodes || refusal.Reason.Kind == model.QueueFull,
	})
	switch {
	case err != nil:
		return nil, fwk.AsStatus(err)
	case outcome.Node != "":
		return framework.NewPostFilterResultWithNominatedNode(outcome.Node), fwk.NewStatus(fwk.Success)
	case outcome.Made:
		return nil, fwk.NewStatus(fwk.Success)
	}
	tell(refusal, outcome)
	return nil, fwk.NewStatus(fwk.Unschedulable)
}

// tell adds to a refusal what the attempt to make room has found out.
func tell(refusal *gang.Refusal, o preemption.Outcome) {
	refusal.Repeated = o.Repeated
	refusal.Again = dispatch.Earliest(refusal.Again, o.Again)
	if o.Reason != (model.Reason{}) {
		refusal.Reason, refusal.Again = o.Reason, o.Again
	}
	if o.Why != nil {
		refusal.Explain(o.Why)
	}
}
