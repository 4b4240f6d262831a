// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// class is the planning state of the tasks that every node treats alike: they are filtered once and scored once, and
// after a placement only the node just used is looked at again.
type class struct {
	plugins
	candidates
	job  *model.Job
	task *model.Task
	kind kind
	// wanted is how many tasks of the class the turn may place; needed is how many it must.
	wanted, needed int
	// canFail: Reserve may refuse what Filter promised.
	canFail bool
	// seen is how much of the overlay's log the candidates reflect, and met what of it can make no difference any more.
	seen int
	met  map[meeting]bool
	// upset: pods were taken away, or put back, since the class last looked.
	upset bool
	// vetoed are the nodes that have room and that filters refuse.
	vetoed []int
	// rejectedBy is the plugin whose PreFilter left no node; empty for none.
	rejectedBy string
	// shortages are what nodes without room are said to lack, by the set of positions in the request.
	shortages map[uint64][]string
	refusals  refusals
}

// newClass runs PreFilter for the class of a task and replays the pods planned so far. It returns another class of the attempt if that
// serves the task as well.
func newClass(ctx context.Context, a *attempt, t *model.Task) (*class, error) {
	p := a.planner
	info, err := p.NewPodInfo(t.Pod)
	if err != nil {
		return nil, fmt.Errorf("reading pod %s/%s: %w", t.Pod.Namespace, t.Pod.Name, err)
	}
	c := &class{
		plugins:    plugins{attempt: a, pod: t.Pod, podInfo: info, state: p.NewState()},
		candidates: newCandidates(len(a.overlay.nodes), p.start),
		job:        a.job, task: t, kind: a.arrangement.kindOf(t),
		canFail:   p.ReservationCanFail(t.Pod),
		met:       map[meeting]bool{},
		shortages: map[uint64][]string{},
	}
	MarkPlan(c.state, a.job)
	c.demand()
	// Plugins hear one by one of the pods that are planned.
	a.unfollow(ctx)
	result, status, _ := p.Framework.RunPreFilterPlugins(ctx, c.state, t.Pod)
	switch {
	case status.IsRejected():
		c.dismiss(status)
		return c, nil
	case !status.IsSuccess():
		return nil, c.preFilterError(status)
	}
	// Devices of pods that are evicted may be on other nodes.
	c.looksAround = looksAround(t, c.state) || a.clears() && t.Traits&model.HasClaims != 0
	if c.looksAround {
		if err := c.tell(ctx); err != nil {
			return nil, err
		}
	}
	c.seen = len(a.overlay.added)
	c.restrict(result)
	if a.clears() || !c.plain() {
		return c, nil
	}
	if other, err := c.servedBy(ctx); other != nil || err != nil {
		return other, err
	}
	if err := c.adopt(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

// dismiss gives the class up: PreFilter leaves it no node.
func (c *class) dismiss(status *fwk.Status) {
	c.refusals.general = append(c.refusals.general, status.Message())
	c.rejectedBy = status.Plugin()
	c.looksAround = false
	c.clear()
}

// dismissed reports whether PreFilter left no node.
func (c *class) dismissed() bool { return len(c.refusals.general) > 0 }

// tell tells the class's filters of all pods planned and taken away so far.
func (c *class) tell(ctx context.Context) error {
	o := c.attempt.overlay
	for _, gone := range o.gone {
		if err := c.removePod(ctx, c.state, gone, o.at(gone.node)); err != nil {
			return err
		}
	}
	for _, added := range o.added {
		if err := c.addPod(ctx, added.pod, o.at(added.node)); err != nil {
			return err
		}
	}
	if len(o.added) == 0 {
		return nil
	}
	return c.recount(ctx)
}

// demand counts how many tasks of the class the turn wants and how many it cannot do without.
func (c *class) demand() {
	a := c.attempt
	same, others := 0, 0
	for _, t := range a.tasks {
		switch {
		case a.arrangement.kindOf(t) == c.kind:
			same++
		case !t.BestEffort || !a.quota.gang:
			others++
		}
	}
	if c.canFail {
		same = 1
	}
	remaining := a.quota.open
	c.wanted = max(1, min(same, remaining))
	if a.evictor == nil {
		c.needed = max(0, remaining-others)
	}
}

// looksAround reports whether placing a pod elsewhere can change the verdict of a filter for this class.
func looksAround(t *model.Task, state fwk.CycleState) bool {
	if t.Traits&(model.HasPodTerms|model.HasVolumes) != 0 || dependence(state)&OnPodsElsewhere != 0 {
		return true
	}
	// Existing or planned pods may have anti-affinity to this one even if it has no terms of its own.
	skipped := state.GetSkipFilterPlugins()
	return !skipped.Has(interPodAffinity) || !skipped.Has(podTopologySpread)
}

// restrict fixes the nodes to look at.
func (c *class) restrict(result *fwk.PreFilterResult) {
	if result.AllNodes() {
		return
	}
	o := c.attempt.overlay
	for i := range o.nodes {
		c.refusals.node(o, i, restricted)
	}
	c.only = []int{}
	for _, name := range sets.List(result.NodeNames) {
		if i := o.index(name); i >= 0 {
			c.only = append(c.only, i)
			c.refusals.node(o, i, nil)
		}
	}
	for i := range o.nodes {
		if !result.NodeNames.Has(o.nodes[i].Node().Name) {
			c.vetoed = append(c.vetoed, i)
		}
	}
}

// restricted is the reason of nodes that PreFilter left out.
var restricted = []string{"node(s) didn't match the nodes the pod is restricted to"}

// best returns the best node left, or nil, of a class that has caught up: what it returns passes the filters with everything planned so
// far.
func (c *class) best(ctx context.Context) (*candidate, error) {
	for {
		if err := c.scores.renormalize(ctx, c); err != nil {
			return nil, err
		}
		switch {
		case c.heap.Len() > 0:
			return c.heap.Top(), nil
		case c.exhausted:
			return nil, nil
		}
		if err := c.scan(ctx); err != nil {
			return nil, err
		}
	}
}

// catchUp filters and scores again the nodes about which the pods planned since the class last looked may make a difference.
func (c *class) catchUp(ctx context.Context) error {
	if c.dismissed() {
		return nil
	}
	c.looksAround = c.looksAround || len(c.attempt.overlay.repelling) > 0
	added := c.attempt.overlay.added[c.seen:]
	c.seen += len(added)
	if len(added) == 0 && !c.upset {
		return nil
	}
	var err error
	if c.looksAround {
		err = c.reconsider(ctx, added)
	} else {
		err = c.revisit(ctx, added)
	}
	if err == nil && c.heap.Len() > 0 && c.rescores(added) {
		err = c.scores.all(ctx, c)
	}
	return err
}

// revisit looks again at the nodes that got pods.
func (c *class) revisit(ctx context.Context, added []planned) error {
	for _, p := range added {
		e := c.entry(p.node)
		if e == nil || e.generation == c.attempt.overlay.at(p.node).GetGeneration() {
			continue
		}
		if err := c.renew(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// renew filters and scores a candidate again.
func (c *class) renew(ctx context.Context, e *candidate) error {
	e.see(c.attempt.overlay)
	if c.places(ctx, e.info) == 0 {
		c.refusals.node(c.attempt.overlay, e.node, c.insufficient(e.info))
		c.remove(e)
		return nil
	}
	if status := c.runFilters(ctx, e.info); !status.IsSuccess() {
		c.refuse(e, status)
		return nil
	}
	if err := c.scores.update(ctx, c, e); err != nil {
		return err
	}
	c.heap.Put(e)
	return nil
}

// refuse takes a node out of the class for a reason.
func (c *class) refuse(e *candidate, status *fwk.Status) {
	c.refusals.node(c.attempt.overlay, e.node, status.Reasons())
	c.remove(e)
}
