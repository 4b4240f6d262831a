// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"context"
	"slices"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// reprieve puts back every victim that is not needed, the dearest first: what was taken for one task may have become
// superfluous by what was taken for a later one. Once it has tried all, none of those left can be put back: each that
// stays takes room, and makes none.
func (e *evictor) reprieve(ctx context.Context) error {
	slices.SortStableFunc(e.taken, func(a, b unit) int { return -e.trial.Compare(a.dearest(), b.dearest()) })
	for i := 0; i < len(e.taken); {
		u := e.taken[i]
		spared, err := e.reprieveUnit(ctx, u)
		if err != nil {
			return err
		}
		if spared {
			e.taken = slices.Delete(e.taken, i, i+1)
		} else {
			i++
		}
	}
	slices.SortStableFunc(e.taken, func(a, b unit) int { return e.trial.Compare(a.dearest(), b.dearest()) })
	return nil
}

// dearest is the victim of a unit that would go last.
func (u unit) dearest() model.Victim { return u.victims[len(u.victims)-1] }

// reprieveUnit puts a unit back if all tasks placed so far still fit with it, and reports whether it did.
func (e *evictor) reprieveUnit(ctx context.Context, u unit) (bool, error) {
	if !e.roomFor(u) {
		return false, nil
	}
	if e.mover != nil {
		if err := e.mover.stay(ctx, u); err != nil {
			return false, err
		}
	}
	for _, r := range u.pods {
		if err := e.putBack(ctx, r); err != nil {
			return false, err
		}
	}
	e.untake(u)
	if e.affords() && e.allFit(ctx, u) {
		return true, nil
	}
	e.charge(u)
	for _, r := range u.pods {
		if err := e.remove(ctx, r); err != nil {
			return false, err
		}
	}
	if e.mover != nil {
		return false, e.mover.goAfterAll(ctx, u)
	}
	return false, nil
}

// affords reports whether the queue may hold all that was placed.
func (e *evictor) affords() bool {
	var all resource.Vector
	for _, p := range e.attempt.placed {
		all.Add(p.Task.Charge)
	}
	budget := e.attempt.budget
	budget.Take(negative(all))
	defer budget.Take(all)
	return budget.Refuses(all) == (model.Reason{})
}

// roomFor reports whether the idle resources of the nodes allow the pods of a unit, which most often they do not.
func (e *evictor) roomFor(u unit) bool {
	for _, v := range u.victims {
		node := e.attempt.overlay.index(v.Task.Node)
		if node >= 0 && room(e.attempt.overlay.at(node), v.Task.Request) == 0 {
			return false
		}
	}
	return true
}

// allFit reports whether the tasks that were placed still fit: those on the nodes of the unit, and those whose filters look
// at pods elsewhere.
func (e *evictor) allFit(ctx context.Context, u unit) bool {
	a := e.attempt
	touched := map[string]bool{}
	for _, v := range u.victims {
		touched[v.Task.Node] = true
	}
	for i, placed := range a.placed {
		c := a.classes[a.arrangement.kindOf(placed.Task)]
		if !touched[placed.Node] && !c.looksAround && len(a.overlay.repelling) == 0 {
			continue
		}
		if !e.fitsBeside(ctx, c, i, u) {
			return false
		}
	}
	return true
}

// fitsBeside reports whether a placed task would still be let onto its node, with a unit back there, if it were not there
// yet.
func (e *evictor) fitsBeside(ctx context.Context, c *class, placed int, u unit) bool {
	a := e.attempt
	p := a.overlay.added[e.spots[placed]]
	info := a.overlay.at(p.node).Snapshot()
	if a.planner.RemovePod(info, p.pod.GetPod()) != nil {
		return false
	}
	for _, r := range u.pods {
		// Nodes do not count who uses a port: what the task took away with it has to be put back.
		if r.node == p.node && a.planner.RemovePod(info, r.pod.GetPod()) == nil {
			info.AddPodInfo(r.pod)
		}
	}
	state := c.state
	if c.looksAround {
		state = c.state.Clone()
		if c.removePod(ctx, state, removed{pod: p.pod, node: p.node}, info) != nil {
			return false
		}
	}
	return c.filterIn(ctx, state, info).IsSuccess()
}
