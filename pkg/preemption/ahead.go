// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/klog/v2"

	"github.com/caldera-scheduler/caldera/pkg/gang"
	"github.com/caldera-scheduler/caldera/pkg/model"
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
	began := a.Clock.Now()
	ahead, err := a.turn.Planner.Ahead(ctx, a.request(), a.Keeper.Holds.Outlook(a.job.Key, may.Declared))
	if err != nil {
		a.Dispatcher.Errored(a.turn.Lead.UID, err)
		return fmt.Errorf("reserving room for job %s: %w", a.job.Key, err)
	}
	klog.FromContext(ctx).V(3).Info("Looked for room to come", "job", a.job.Key, "tasks", len(ahead.Placements), "leavers", len(ahead.Leavers),
		"start", ahead.Start, "took", a.Clock.Since(began))
	switch {
	case a.putOff():
	case len(ahead.Leavers) == 0:
		a.Dispatcher.NoneAhead(a.turn.Lead.UID)
		if may.Holds {
			a.Keeper.Abandon(a.job.Key)
		}
	default:
		a.Keeper.Holds.Make(ctx, a.job, ahead)
		a.Dispatcher.Reserve(a.turn.Lead.UID, dispatch.Room{Start: ahead.Start, Bound: ahead.Sure, Leavers: slices.Collect(maps.Keys(ahead.Leavers))})
		a.outcome.Made = true
	}
	return nil
}
