// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reclaim is the plugin Reclaim: when there is no room for the tasks of a turn it looks for pods that may be
// evicted for them, by the actions preempt, reclaim, gangpreempt and gangreclaim as they are configured, and has them
// evicted if that lets the whole gang start.
package reclaim

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/apis/config/validation"
	"github.com/caldera-scheduler/caldera/pkg/metrics"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/plugins/engine"
	"github.com/caldera-scheduler/caldera/pkg/plugins/gang"
	"github.com/caldera-scheduler/caldera/pkg/plugins/names"
	"github.com/caldera-scheduler/caldera/pkg/queue/dispatch"
)

// Reclaim makes room.
type Reclaim struct {
	engine *engine.Engine
}

var _ fwk.PostFilterPlugin = &Reclaim{}

// Name is the plugin's name in a KubeSchedulerConfiguration.
const Name = names.Reclaim

// New returns the factory of the plugin. All profiles share what carries out evictions, by the arguments of the first.
func New(e *engine.Engine) func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) {
	return func(_ context.Context, obj runtime.Object, _ fwk.Handle) (fwk.Plugin, error) {
		args, ok := obj.(*config.ReclaimArgs)
		if !ok {
			return nil, fmt.Errorf("want args to be of type ReclaimArgs, got %T", obj)
		}
		if err := validation.ValidateReclaimArgs(nil, args); err != nil {
			return nil, err
		}
		e.ConfigureEvictions(args)
		return &Reclaim{engine: e}, nil
	}
}

// Name returns the plugin's name.
func (pl *Reclaim) Name() string { return Name }

// PostFilter makes room for a turn that was refused, if the policies allow that. Otherwise the reason tells why.
func (pl *Reclaim) PostFilter(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, _ fwk.NodeToStatusReader) (*fwk.PostFilterResult, *fwk.Status) {
	refusal := gang.RefusalOf(state)
	if refusal == nil || refusal.Withheld {
		return nil, fwk.NewStatus(fwk.Unschedulable)
	}
	appeal := pl.engine.Dispatcher.Appeal(pod.UID)
	job := appeal.Job
	if job == nil {
		return nil, fwk.NewStatus(fwk.Unschedulable)
	}
	if job.Counts.Nominated > 0 && !pl.wait(job, refusal) {
		// Once the room kept for it has not helped, the next turn, which is about to come, begins anew.
		if !pl.putOff(pod, refusal) {
			pl.engine.Evictions.Abandon(job.Key)
		}
		return nil, fwk.NewStatus(fwk.Unschedulable)
	}
	var kept error
	for _, action := range appeal.Actions {
		done, why, err := pl.try(ctx, pod, job, action, refusal)
		switch {
		case errors.Is(err, errDoubted):
			return nil, fwk.NewStatus(fwk.Unschedulable)
		case err != nil:
			pl.engine.Dispatcher.Errored(pod.UID, err)
			return nil, fwk.AsStatus(err)
		case done:
			pl.engine.Dispatcher.Pipelined(pod.UID)
			return nil, fwk.NewStatus(fwk.Success)
		case why != "":
			kept = errors.Join(kept, fmt.Errorf("%s: %s", action, why))
		}
	}
	if appeal.None != "" {
		kept = errors.Join(kept, errors.New(appeal.None))
	}
	if kept != nil && job.Counts.Nominated == 0 {
		refusal.Explain(kept)
	}
	return nil, fwk.NewStatus(fwk.Unschedulable)
}

// errDoubted is returned when a search for victims was made by a snapshot that is in doubt.
var errDoubted = errors.New("the scheduler's cache does not know of all room")

// doubtPause is how long a job waits whose refusal is in doubt and whose turn has been repeated often enough: the cache needs the CPU to
// learn what it does not know.
const doubtPause = 10 * time.Millisecond

// putOff has the turn repeated, at once or after a pause, if its refusal is in doubt, and reports whether it is. It is called after all
// that is decided by has been read.
func (pl *Reclaim) putOff(pod *corev1.Pod, refusal *gang.Refusal) bool {
	if !refusal.Doubted() {
		return false
	}
	if refusal.Repeated = pl.engine.Dispatcher.Repeat(pod.UID); !refusal.Repeated {
		refusal.Again = dispatch.Earliest(refusal.Again, pl.engine.Clock().Now().Add(doubtPause))
	}
	return true
}

// wait reports whether the job still waits for pods to leave, and makes that the reason.
func (pl *Reclaim) wait(job *model.Job, refusal *gang.Refusal) bool {
	left, until := pl.engine.Evictions.Awaited(job)
	if left == 0 {
		return false
	}
	refusal.Reason = model.Reason{Kind: model.WaitingForVictims, Message: fmt.Sprintf(
		"room is kept for %d tasks; %d pods have yet to leave it", job.Counts.Nominated, left)}
	refusal.Again = until
	return true
}

// try looks for victims by one action and has them evicted. Otherwise it says why there are none.
func (pl *Reclaim) try(ctx context.Context, pod *corev1.Pod, job *model.Job, action config.Action, refusal *gang.Refusal) (done bool, why string, err error) {
	ev := pl.engine.Evictions
	trial := pl.engine.Dispatcher.Trial(pod.UID, action, ev.World(job.Queue))
	if trial == nil {
		return false, "", nil
	}
	need := job.Need()
	need.Sub(job.Usage.Reserved)
	if reason := trial.Entitled(need); reason != (model.Reason{}) {
		return false, reason.Message, nil
	}
	pl.engine.Choose(ctx, action, pod, trial)
	// Who places its members as they fit has others evicted for all of them or for none.
	request := refusal.Request
	request.Job = job
	statement, err := refusal.Planner.Evict(ctx, ev.Search(request, trial))
	if err != nil {
		return false, "", fmt.Errorf("looking for victims for job %s: %w", job.Key, err)
	}
	klog.FromContext(ctx).V(3).Info("Looked for victims", "job", job.Key, "action", action,
		"victims", len(statement.Victims), "tasks", len(statement.Placements), "why", statement.Why)
	metrics.PreemptionAttempt(len(statement.Victims))
	refusal.Again = dispatch.Earliest(refusal.Again, trial.Again())
	if len(statement.Placements) == 0 {
		return false, statement.Why, nil
	}
	if reason, again := pl.engine.Ready(ctx, job, statement.Placements); reason != (model.Reason{}) {
		refusal.Again = dispatch.Earliest(refusal.Again, again)
		return false, reason.Message, nil
	}
	if pl.putOff(pod, refusal) {
		return false, "", errDoubted
	}
	if err := ev.Commit(ctx, action, trial.Rule(), job, statement); err != nil {
		return false, "", err
	}
	return true, "", nil
}
