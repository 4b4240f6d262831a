// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"context"
	"slices"

	fwk "k8s.io/kube-scheduler/framework"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

const (
	// cachedShapes is how many shapes are remembered from one plan to the next.
	cachedShapes = 16
	// mostFreed is how many nodes that were refused, and have room by now, are looked at one by one; where there are more, the nodes are
	// sampled anew.
	mostFreed = 64
	// mostUses is how often the candidates of a shape are used before the nodes are sampled anew.
	mostUses = 64
)

// classCache remembers the candidates of shapes, so that many equal jobs in a row, and the single tasks of an elastic one,
// do not each filter and score the same sample of nodes. A node that changed since is recognised by its generation and
// looked at again; upstream's opportunistic batching does the same for single pods. Of nodes that were refused, those that
// changed are looked at again where all nodes had been looked at: there is a sample otherwise without them.
type classCache struct {
	shapes map[model.Class]*class
	// nodes is the number of nodes the candidates were chosen from.
	nodes int
}

// keep remembers the classes of a plan that held.
func (m *classCache) keep(a *attempt) {
	if m.nodes != len(a.overlay.nodes) || len(m.shapes) > cachedShapes || m.shapes == nil {
		m.shapes, m.nodes = map[model.Class]*class{}, len(a.overlay.nodes)
	}
	for _, c := range a.classes {
		if c.reusable() {
			if c.exhausted {
				c.newest, c.filled = newest(a.overlay.nodes), c.refusedOf(a.overlay.copies)
			}
			c.attempt = nil
			m.shapes[a.planner.shapeOf(c.task)] = c
		}
	}
}

// reusable reports whether the candidates of the class may be used by another plan.
func (c *class) reusable() bool { return c.servesOthers() && c.heap.Len() > 0 && c.uses < mostUses }

// adopt takes over the candidates that an earlier plan found for the shape, and looks at those again whose nodes
// changed since. It does nothing when there are none, or when they were chosen under other conditions.
func (c *class) adopt(ctx context.Context) error {
	a := c.attempt
	m := &a.planner.cache
	shape := a.planner.shapeOf(c.task)
	old := m.shapes[shape]
	if old == nil || m.nodes != len(a.overlay.nodes) || !c.seesLike(&old.plugins) {
		return nil
	}
	delete(m.shapes, shape)
	infos := slices.Grow(a.planner.lists.infos[:0], old.heap.Len())
	for _, e := range old.heap.Items() {
		info := a.overlay.at(e.node)
		if info != e.info && info.Node().Name != e.info.Node().Name {
			return nil
		}
		infos = append(infos, info)
	}
	a.planner.lists.infos = infos
	if alike, err := c.scoresLike(ctx, &old.plugins, infos); !alike || err != nil {
		return err
	}
	freed := c.freedSince(old)
	if len(freed) > mostFreed {
		return nil
	}
	c.candidates = old.candidates
	c.uses++
	a.remembered = true
	var changed []*candidate
	for i, e := range c.heap.Items() {
		if infos[i].GetGeneration() != e.generation {
			changed = append(changed, e)
		}
	}
	for _, e := range changed {
		if err := c.renew(ctx, e); err != nil {
			return err
		}
	}
	return c.admit(ctx, freed)
}

// newest returns the highest generation of the nodes: every later change of one of them has a higher one.
func newest(nodes []fwk.NodeInfo) int64 {
	generation := int64(0)
	for _, n := range nodes {
		generation = max(generation, n.GetGeneration())
	}
	return generation
}

// freedSince returns the nodes that another class of the shape refused when it looked at all of them, that changed since, and that have
// room now as far as their idle resources go.
func (c *class) freedSince(old *class) []int {
	if !old.exhausted {
		return nil
	}
	var freed []int
	for i, base := range c.attempt.overlay.nodes {
		if (base.GetGeneration() <= old.newest && !old.filled.Has(i)) || old.entry(i) != nil {
			continue
		}
		if old.trustRequests && room(c.attempt.overlay.at(i), c.task.Request) == 0 {
			continue
		}
		freed = append(freed, i)
	}
	return freed
}

// admit makes candidates of those of the nodes that pass the filters.
func (c *class) admit(ctx context.Context, nodes []int) error {
	for _, i := range nodes {
		e := newCandidate(c.attempt.overlay, i)
		if c.places(ctx, e.info) == 0 || !c.runFilters(ctx, e.info).IsSuccess() {
			continue
		}
		e.rank = c.rank(i)
		if err := c.scores.first(ctx, c, e); err != nil {
			return err
		}
		c.add(e)
	}
	return nil
}
