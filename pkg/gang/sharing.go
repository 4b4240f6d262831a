// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"context"
	"slices"

	fwk "k8s.io/kube-scheduler/framework"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// classOf returns the state of planning shared by all tasks like t. A class whose reservations can fail is begun anew
// for each task, because what one task reserves changes what the next may be promised.
func (a *attempt) classOf(ctx context.Context, t *model.Task) (*class, error) {
	k := a.arrangement.kindOf(t)
	if c := a.classes[k]; c != nil && c.serves(a.job) {
		return c, nil
	}
	if c := a.served[k]; c != nil && c.servesOthers() {
		return c, nil
	}
	c, err := newClass(ctx, a, t)
	if err != nil {
		return nil, err
	}
	if c.kind == k {
		a.classes[k], a.shapes[a.planner.shapeOf(t)] = c, c
	} else {
		a.served[k] = c
	}
	return c, nil
}

// shapeOf is what tasks have in common whose classes may have the same candidates.
func (p *Planner) shapeOf(t *model.Task) model.Class {
	if p.ByLabels() {
		return t.Class
	}
	return t.Shape
}

// servesOthers reports whether the candidates of the class depend on nothing but their nodes and the pod's own spec.
func (c *class) servesOthers() bool { return c.plain() && !scoresLookAround(c.state) }

// plain reports whether, as far as PreFilter tells, the class depends on nothing but nodes and the pod's own spec.
func (c *class) plain() bool {
	a := c.attempt
	return !c.dismissed() && !c.looksAround && !c.canFail && c.only == nil && dependence(c.state)&(OnJob|ScoresOnPodsElsewhere) == 0 &&
		!a.overlay.attracting && len(a.overlay.repelling) == 0 &&
		!slices.ContainsFunc(a.planner.Framework.Extenders(), func(e fwk.Extender) bool { return e.IsInterested(c.pod) })
}

// serves reports whether the class is one for tasks of its kind that a job has. One whose reservations can fail is for a single task.
func (c *class) serves(job *model.Job) bool {
	return !c.canFail && (c.job.Key == job.Key || dependence(c.state)&OnJob == 0)
}

// servedBy returns a class of the attempt, of pods with the same spec, whose candidates are as good for c: labels and namespaces, in which the
// two differ, matter to no plugin.
func (c *class) servedBy(ctx context.Context) (*class, error) {
	other := c.attempt.shapes[c.attempt.planner.shapeOf(c.task)]
	if other == nil || other.kind.part != c.kind.part || !other.servesOthers() || other.heap.Len() == 0 || !c.seesLike(&other.plugins) {
		return nil, nil
	}
	infos := slices.Grow(c.attempt.planner.lists.infos[:0], other.heap.Len())
	for _, e := range other.heap.Items() {
		infos = append(infos, c.attempt.overlay.at(e.node))
	}
	c.attempt.planner.lists.infos = infos
	if alike, err := c.scoresLike(ctx, &other.plugins, infos); !alike || err != nil {
		return nil, err
	}
	return other, nil
}

// scoresLookAround reports whether a score of the class depends on pods of other nodes.
func scoresLookAround(state fwk.CycleState) bool {
	skipped := state.GetSkipScorePlugins()
	return !skipped.Has(interPodAffinity) || !skipped.Has(podTopologySpread)
}
