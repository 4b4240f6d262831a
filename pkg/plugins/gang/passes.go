// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"context"
	"slices"

	"github.com/caldera-scheduler/caldera/pkg/gang"
	"github.com/caldera-scheduler/caldera/pkg/metrics"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/policy"
	"github.com/caldera-scheduler/caldera/pkg/queue/dispatch"
)

// nominated are the tasks for which room is kept from a turn. What is reserved for holders that it passes is not.
func (pl *Gang) nominated(passes []dispatch.Pass) []*model.Task {
	all := pl.parts.Keeper().Kept()
	for _, p := range passes {
		all = slices.DeleteFunc(all, func(t *model.Task) bool { return t.Reserved && t.Job == p.Holder })
	}
	return all
}

// plan plans a turn, and has it counted how long that takes.
func (pl *Gang) plan(ctx context.Context, r gang.Request) (gang.Plan, error) {
	began := pl.parts.Clock.Now()
	plan, err := pl.planOrClaim(ctx, r)
	metrics.Planned(len(plan.Placements), err, pl.parts.Clock.Since(began))
	return plan, err
}

// planOrClaim plans a turn. Who finds no room, and has some reserved, may use that though leavers of others are still on the same nodes.
func (pl *Gang) planOrClaim(ctx context.Context, r gang.Request) (gang.Plan, error) {
	plan, err := pl.planner.Plan(ctx, r)
	if err != nil || len(plan.Placements) > 0 || !pl.parts.Keeper().Holds.Has(r.Job.Key) {
		return plan, err
	}
	r.Nominated = pl.parts.Keeper().Holds.KeptFrom(r.Job.Key)
	claimed, err := pl.planner.Claim(ctx, r)
	if err != nil || len(claimed.Placements) == 0 {
		return plan, err
	}
	return claimed, nil
}

// fill notes which pods of a plan use room that is reserved for others.
func (pl *Gang) fill(passes []dispatch.Pass, placements []gang.Placement) {
	for _, p := range passes {
		pl.parts.Keeper().Holds.Fill(p.Holder, placements, p.By == policy.Precedence)
	}
}
