// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/caldera-scheduler/caldera/pkg/gang"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/preemption/reserve"
	"github.com/caldera-scheduler/caldera/pkg/queue/dispatch"
)

// request is what to ask of the planner for the whole job: who places its members as they fit has others evicted, and has room reserved, for all
// of them or for none. It leaves all room that is kept for others, also what the job may use now. Room that is reserved for the job is not in its way.
func (a *attempt) request() gang.Request {
	r := a.turn.Request
	r.Job, r.Nominated = a.job, a.Keeper.Holds.KeptFrom(a.job.Key)
	return r
}

// waitAhead makes it the reason that pods in reserved room have not ended, if some have not.
func (a *attempt) waitAhead() {
	left, start := a.Keeper.Awaited(a.job)
	if left == 0 {
		return
	}
	a.outcome.Reason = model.Reason{Kind: model.RoomReserved, Message: a.Keeper.Holds.Told(a.job.Key)}
	now := a.Clock.Now()
	a.outcome.Again = now.Add(dispatch.LookAgain)
	if start.After(now) {
		a.again(start)
	}
}

// reserve has room reserved for the job, in the place of any that is. An error is that of a plugin, which has been told to the dispatcher.
func (a *attempt) reserve(ctx context.Context, may dispatch.Attempt) error {
	if !a.turn.NoRoom && !may.Holds {
		return nil
	}
	ahead, err := a.ahead(ctx, may, time.Time{})
	switch {
	case err != nil:
		return err
	case a.putOff():
	case len(ahead.Leavers) == 0:
		a.Dispatcher.NoneAhead(a.turn.Lead.UID)
		if may.Holds {
			a.Keeper.Abandon(a.job.Key)
		}
	default:
		a.make(ctx, may, ahead)
	}
	return nil
}

// resume has the room reserved that was reserved for the job before the scheduler started: where and by when it was, or else anew. If neither is
// possible the turn is refused, and an ordinary one follows. An error is as that of reserve.
func (a *attempt) resume(ctx context.Context, may dispatch.Attempt) error {
	told := gang.Told{Nodes: map[types.UID]string{}, Start: may.Resumes.Start, Bound: may.Resumes.Bound}
	for node, pods := range may.Resumes.Pods {
		for _, uid := range pods {
			told.Nodes[uid] = node
		}
	}
	ahead, err := a.turn.Planner.Resume(a.request(), a.Keeper.Holds.Outlook(a.job.Key, may.Declared), told)
	switch {
	case err != nil:
		return a.errored(err)
	case len(ahead.Placements) == 0:
		if ahead, err = a.ahead(ctx, may, told.Start); err != nil {
			return err
		}
	}
	if !a.putOff() && len(ahead.Placements) > 0 {
		a.make(ctx, may, ahead)
	}
	return nil
}

// errored tells the dispatcher that the turn has failed.
func (a *attempt) errored(err error) error {
	a.Dispatcher.Errored(a.turn.Lead.UID, err)
	return fmt.Errorf("reserving room for job %s: %w", a.job.Key, err)
}

// ahead plans the job for a time to come.
func (a *attempt) ahead(ctx context.Context, may dispatch.Attempt, by time.Time) (gang.Ahead, error) {
	began := a.Clock.Now()
	ahead, err := a.turn.Planner.Ahead(ctx, a.request(), a.Keeper.Holds.Outlook(a.job.Key, may.Declared), by)
	if err != nil {
		return gang.Ahead{}, a.errored(err)
	}
	klog.FromContext(ctx).V(3).Info("Looked for room to come", "job", a.job.Key, "tasks", len(ahead.Placements), "leavers", len(ahead.Leavers),
		"start", ahead.Start, "took", a.Clock.Since(began))
	return ahead, nil
}

// make keeps the room for the job, and ends its turn with that.
func (a *attempt) make(ctx context.Context, may dispatch.Attempt, ahead gang.Ahead) {
	a.Keeper.Holds.Make(ctx, a.job, ahead, reserve.Terms{Within: may.Within, IfDue: may.IfDue})
	a.Dispatcher.Reserve(a.turn.Lead.UID, dispatch.Room{
		Start: ahead.Start, Bound: ahead.Sure, Guessed: ahead.Guessed, IfDue: may.IfDue, Leavers: slices.Collect(maps.Keys(ahead.Leavers)),
	})
	a.outcome.Made = true
}
