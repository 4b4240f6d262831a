// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"slices"

	"github.com/caldera-scheduler/caldera/pkg/gang"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/policy"
	"github.com/caldera-scheduler/caldera/pkg/queue/dispatch"
)

// nominated are the tasks for which room is kept from a turn. What is reserved for holders that it passes is not.
func (pl *Gang) nominated(passes []dispatch.Pass) []*model.Task {
	all := pl.parts.State.Nominated()
	for _, p := range passes {
		if p.By == policy.Shortly && !pl.parts.Keeper().Holds.Blocked(p.Holder) {
			continue
		}
		all = slices.DeleteFunc(all, func(t *model.Task) bool { return t.Reserved && t.Job == p.Holder })
	}
	return all
}

// fill notes which pods of a plan use room that is reserved for others.
func (pl *Gang) fill(passes []dispatch.Pass, placements []gang.Placement) {
	for _, p := range passes {
		pl.parts.Keeper().Holds.Fill(p.Holder, placements, p.By == policy.Precedence)
	}
}
