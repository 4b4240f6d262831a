// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package preemption has others evicted for a job that has no room. One call tries it for a turn: the policies say who may be evicted
// (pkg/policy), the planner finds out whose eviction makes room for the whole job (pkg/gang), the room is kept for the job (reserve), and
// the API server is asked (eviction). The package rebalance says whom to evict for nobody's sake.
package preemption

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/gang"
	"github.com/caldera-scheduler/caldera/pkg/metrics"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/policy"
	"github.com/caldera-scheduler/caldera/pkg/preemption/reserve"
	"github.com/caldera-scheduler/caldera/pkg/queue/dispatch"
)

// Turn is a turn for which there is no room.
type Turn struct {
	// Lead is the pod whose cycle it is.
	Lead *corev1.Pod
	// Request is what was asked of the planner, and Planner whom.
	Request gang.Request
	Planner *gang.Planner
	// Doubted reports whether by now the cache, by which the turn was refused, does not know of room that may be of use to it. Nobody is
	// evicted by such a refusal, and no room given up: what is decided by it may be for nothing.
	Doubted func() bool
	// NoRoom: nodes, or its queue, have no room for it.
	NoRoom bool
}

// Outcome is what comes of an attempt. The zero value: nobody can help, and nothing more is known than before.
type Outcome struct {
	// Made: room is being made, and kept for the job. The turn is over.
	Made bool
	// Node is where pods leave for the lead, if they do.
	Node string
	// Repeated: the turn is over, and will be repeated.
	Repeated bool
	// Reason is why the job waits, if it is another one than that there is no room; Why tells why nobody is evicted; nil: not worth telling.
	Reason model.Reason
	Why    error
	// Again is when to try again though nothing happens; zero: never.
	Again time.Time
}

// Extension is who has a say in evictions besides the policies: a scheduler extender.
type Extension interface {
	// Choose lets it choose among the candidates of a trial for the job whose turn the pod leads, if the tiers say so.
	Choose(ctx context.Context, action config.Action, lead *corev1.Pod, trial *policy.Trial)
	// Ready says why a job is not ready with these placements, and when to try again; the zero Reason when it is.
	Ready(ctx context.Context, job *model.Job, placements []gang.Placement) (reason model.Reason, again time.Time)
}

// Preemption tries to make room. All fields are required.
type Preemption struct {
	Dispatcher *dispatch.Dispatcher
	Keeper     *reserve.Keeper
	Extension  Extension
	Clock      clock.PassiveClock
}

// Try makes room for a turn, if the policies allow that. Else the outcome tells why. An error is that of a plugin, which has been told to the
// dispatcher.
func (p *Preemption) Try(ctx context.Context, t Turn) (Outcome, error) {
	may := p.Dispatcher.MayPreempt(t.Lead.UID)
	job := may.Job
	if job == nil {
		return Outcome{}, nil
	}
	a := &attempt{Preemption: p, turn: t, job: job}
	switch {
	case may.Resumes != nil:
		return a.outcome, a.resume(ctx, may)
	case a.beginsAnew(may):
		return a.outcome, nil
	}
	var kept error
	for _, action := range may.Actions {
		why, err := a.try(ctx, action)
		switch {
		case errors.Is(err, errDoubted):
			return a.outcome, nil
		case err != nil:
			p.Dispatcher.Errored(t.Lead.UID, err)
			return a.outcome, err
		case a.outcome.Made:
			p.Dispatcher.Pipelined(t.Lead.UID)
			return a.outcome, nil
		case why != "":
			kept = errors.Join(kept, fmt.Errorf("%s: %s", action, why))
		}
	}
	if may.None != "" {
		kept = errors.Join(kept, errors.New(may.None))
	}
	if job.Counts.Nominated == 0 {
		a.outcome.Why = kept
	}
	if may.Reserves && a.outcome.Reason == (model.Reason{}) {
		return a.outcome, a.reserve(ctx, may)
	}
	return a.outcome, nil
}

// beginsAnew reports whether the room that is kept for the job has not helped, or is kept no more: the next turn, which is about to come, begins anew.
func (a *attempt) beginsAnew(may dispatch.Attempt) bool {
	switch held := a.Keeper.Holds.Has(a.job.Key); {
	case held && !may.Holds:
		a.Keeper.Abandon(a.job.Key)
		return true
	case held:
		a.waitAhead()
		return false
	case a.job.Counts.Nominated == 0 || a.wait():
		return false
	}
	if !a.putOff() {
		a.Keeper.Abandon(a.job.Key)
	}
	return true
}

// errDoubted is returned when a search for victims was made by a snapshot that is in doubt.
var errDoubted = errors.New("the scheduler's cache does not know of all room")

// doubtPause is how long a job waits whose refusal is in doubt and whose turn has been repeated often enough: the cache needs the CPU to
// learn what it does not know.
const doubtPause = 10 * time.Millisecond

// attempt is one call of Try.
type attempt struct {
	*Preemption
	turn    Turn
	job     *model.Job
	outcome Outcome
}

// again has the job tried again at a time, or before.
func (a *attempt) again(at time.Time) { a.outcome.Again = dispatch.Earliest(a.outcome.Again, at) }

// putOff has the turn repeated, at once or after a pause, if its refusal is in doubt, and reports whether it is. It is called after all
// that is decided by has been read.
func (a *attempt) putOff() bool {
	if !a.turn.Doubted() {
		return false
	}
	if a.outcome.Repeated = a.Dispatcher.Repeat(a.turn.Lead.UID); !a.outcome.Repeated {
		a.again(a.Clock.Now().Add(doubtPause))
	}
	return true
}

// wait reports whether the job still waits for pods to leave, and makes that the reason.
func (a *attempt) wait() bool {
	left, until := a.Keeper.Awaited(a.job)
	if left == 0 {
		return false
	}
	a.outcome.Reason = model.Reason{Kind: model.WaitingForVictims, Message: fmt.Sprintf(
		"room is kept for %d tasks; %d pods have yet to leave it", a.job.Counts.Nominated, left)}
	a.outcome.Again = until
	return true
}

// try looks for victims by one action and has them evicted. Otherwise it says why there are none.
func (a *attempt) try(ctx context.Context, action config.Action) (why string, err error) {
	began := a.Clock.Now()
	trial := a.Dispatcher.Trial(a.turn.Lead.UID, action, a.Keeper.World(a.job.Queue))
	if trial == nil {
		return "", nil
	}
	need := a.job.Need()
	need.Sub(a.job.Usage.Reserved)
	if reason := trial.Seek(need); reason != (model.Reason{}) {
		return reason.Message, nil
	}
	a.Extension.Choose(ctx, action, a.turn.Lead, trial)
	statement, err := a.turn.Planner.Evict(ctx, a.Keeper.Search(a.request(), trial))
	if err != nil {
		return "", fmt.Errorf("looking for victims for job %s: %w", a.job.Key, err)
	}
	klog.FromContext(ctx).V(3).Info("Looked for victims", "job", a.job.Key, "action", action,
		"victims", len(statement.Victims), "tasks", len(statement.Placements), "why", statement.Why)
	metrics.PreemptionAttempt(action, len(statement.Victims), a.Clock.Since(began))
	a.again(trial.Again())
	if len(statement.Placements) == 0 {
		return statement.Why, nil
	}
	if reason, again := a.Extension.Ready(ctx, a.job, statement.Placements); reason != (model.Reason{}) {
		a.again(again)
		return reason.Message, nil
	}
	if a.putOff() {
		return "", errDoubted
	}
	err = a.Keeper.Commit(ctx, action, trial.Rule(), a.job, statement)
	a.outcome.Made = err == nil
	if i := slices.IndexFunc(statement.Placements, func(p gang.Placement) bool { return p.Task.UID == a.turn.Lead.UID }); i >= 0 {
		a.outcome.Node = statement.Placements[i].Node
	}
	return "", err
}
