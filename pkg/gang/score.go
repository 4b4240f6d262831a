// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
)

// scorer keeps the scores of a class's candidates. Normalising all of them after every placement would make planning
// quadratic. It is not needed: the plugins whose raw score of a node changes when a pod lands there (fit, balance) do
// not normalise, and those that normalise (taints, affinity) do so by the largest and the smallest raw score, which rarely
// change. Which plugins normalise is found out by giving them made-up scores.
type scorer struct {
	// weight of each plugin, by position in the raw scores; 0 for a plugin that normalises.
	weight []int64
	probed bool
	// skipped are the plugins that the raw scores leave out.
	skipped sets.Set[string]
	// ranges are those of the raw scores by which the candidates were last normalised, by plugin.
	ranges []span
	// stale: the candidates have to be normalised again.
	stale bool
	// refined are the scores that plugins round.
	refined []refined
}

// span is the range of a plugin's raw scores, and how many candidates are at its ends.
type span struct {
	least, most     int64
	atLeast, atMost int
}

// add widens the range for another score.
func (s *span) add(score int64) {
	switch {
	case s.atLeast == 0 || score < s.least:
		s.least, s.atLeast = score, 1
	case score == s.least:
		s.atLeast++
	}
	switch {
	case s.atMost == 0 || score > s.most:
		s.most, s.atMost = score, 1
	case score == s.most:
		s.atMost++
	}
}

// remove takes a score out and reports whether that leaves an end of the range without a candidate.
func (s *span) remove(score int64) bool {
	if score == s.least {
		s.atLeast--
	}
	if score == s.most {
		s.atMost--
	}
	return s.atLeast <= 0 || s.atMost <= 0
}

// lose takes note of a candidate that leaves.
func (s *scorer) lose(e *candidate) {
	for i, weight := range s.weight {
		if weight == 0 && s.ranges[i].remove(e.raw[i].Score) {
			s.stale = true
		}
	}
}

// renormalize normalises the candidates again if their raw scores have another range than when that was last done.
func (s *scorer) renormalize(ctx context.Context, c *class) error {
	if !s.stale || c.heap.Len() == 0 {
		return nil
	}
	return s.normalize(ctx, c)
}

// all scores every candidate of the class from scratch.
func (s *scorer) all(ctx context.Context, c *class) error {
	f := c.attempt.planner.Framework
	infos := make([]fwk.NodeInfo, c.heap.Len())
	for i, e := range c.heap.Items() {
		infos[i] = e.info
	}
	if err := c.prescore(ctx, infos); err != nil {
		return err
	}
	if skipped := c.state.GetSkipScorePlugins(); !skipped.Equal(s.skipped) {
		s.skipped, s.probed, s.weight = skipped, false, nil
	}
	items := c.heap.Items()
	reps, of := asked(len(items), c.scoredAs(items))
	var failure atomic.Pointer[fwk.Status]
	err := c.attempt.each(ctx, len(reps), func(k int) {
		raw, status := f.RunRawScorePlugins(ctx, c.state, c.pod, items[reps[k]].info)
		if !status.IsSuccess() {
			failure.Store(status)
		}
		items[reps[k]].raw = raw
	}, "GangScore")
	for i, e := range items {
		e.raw = items[reps[of[i]]].raw
	}
	if status := failure.Load(); status != nil {
		return c.scoreError(status)
	}
	if err != nil {
		return fmt.Errorf("scoring nodes for pod %s/%s: %w", c.pod.Namespace, c.pod.Name, err)
	}
	if err := s.probe(ctx, c); err != nil {
		return err
	}
	s.refined = nil
	return s.normalize(ctx, c)
}

// likeness is by what candidates are told apart where scores go by looks.
type likeness struct {
	look   int
	images string
}

// scoredAs returns by what candidates have the same raw scores; none has the scores of others where these go by more than looks. Of a pod whose filters do, the
// scores are not known to go by looks only: those of resources that come from claims are counted by node.
func (c *class) scoredAs(items []*candidate) func(i int) (likeness, bool) {
	planner := c.attempt.planner
	looks := planner.looksTo(c.pod, c.nodes)
	if looks == nil || !planner.FiltersByLook(c.state.GetSkipFilterPlugins()) || !planner.ScoresByLook(c.state.GetSkipScorePlugins()) {
		return func(int) (likeness, bool) { return likeness{}, false }
	}
	names := imageNames(c.pod)
	return func(i int) (likeness, bool) {
		e := items[i]
		number, images := looks.of(e.node, e.info)
		l := likeness{look: number}
		if images {
			l.images = imagesOn(e.info, names)
		}
		return l, number != unlike
	}
}

// normalize turns the raw scores of all candidates into totals.
func (s *scorer) normalize(ctx context.Context, c *class) error {
	if s.refined == nil {
		if err := s.refineAll(ctx, c); err != nil {
			return err
		}
	}
	items := c.heap.Items()
	// Those that share their raw scores share what becomes of them.
	reps, of := asked(len(items), func(i int) (*fwk.PluginScore, bool) {
		if len(items[i].raw) == 0 {
			return nil, false
		}
		return &items[i].raw[0], true
	})
	scores := make([]fwk.NodePluginScores, len(reps))
	for k, i := range reps {
		scores[k] = fwk.NodePluginScores{Name: items[i].info.Node().Name, RawScores: items[i].raw}
	}
	if status := c.attempt.planner.Framework.NormalizeScores(ctx, c.state, c.pod, scores); !status.IsSuccess() {
		return c.scoreError(status)
	}
	parts := make([][]int64, len(reps))
	for k := range reps {
		parts[k] = make([]int64, len(scores[k].Scores))
		for j, part := range scores[k].Scores {
			parts[k][j] = part.Score
		}
	}
	for i, e := range items {
		e.parts, e.total = parts[of[i]], scores[of[i]].TotalScore
	}
	c.heap.Init()
	s.ranges, s.stale = make([]span, len(s.weight)), false
	for _, e := range c.heap.Items() {
		for i := range s.ranges {
			s.ranges[i].add(e.raw[i].Score)
		}
	}
	return nil
}

// update scores one candidate again after a pod was planned on it. The scores of plugins that normalise are those from before until
// renormalize is called.
func (s *scorer) update(ctx context.Context, c *class, e *candidate) error {
	raw, status := c.attempt.planner.Framework.RunRawScorePlugins(ctx, c.state, c.pod, e.info)
	if !status.IsSuccess() {
		return c.scoreError(status)
	}
	before := e.raw
	// Others may have the same parts.
	e.raw, e.parts = raw, slices.Clone(e.parts)
	total := int64(0)
	for i := range raw {
		switch {
		case raw[i].Score == before[i].Score:
		case s.weight[i] != 0:
			e.parts[i] = s.weight[i] * raw[i].Score
		default:
			s.stale = true
		}
		total += e.parts[i]
	}
	e.total = total
	s.refine(e)
	return nil
}

// first scores a node that joins the candidates. Where plugins normalise, that is left until renormalize is called.
func (s *scorer) first(ctx context.Context, c *class, e *candidate) error {
	raw, status := c.attempt.planner.Framework.RunRawScorePlugins(ctx, c.state, c.pod, e.info)
	if !status.IsSuccess() {
		return c.scoreError(status)
	}
	e.raw, e.parts, e.total = raw, make([]int64, len(raw)), 0
	for i := range raw {
		e.parts[i] = s.weight[i] * raw[i].Score
		e.total += e.parts[i]
		s.stale = s.stale || s.weight[i] == 0
	}
	s.refine(e)
	return nil
}

// The made-up raw scores. A plugin whose weighted scores are one multiple of all six does not normalise: the sets have
// different maxima, minima and spans, so that scaling to any of these would show.
var probes = [2][3]int64{{1, 2, 3}, {10, 20, 40}}

// madeUp are scores of as many nodes as there are values, to each of which every plugin gives that value.
func (c *class) madeUp(values []int64, plugins []fwk.PluginScore) []fwk.NodePluginScores {
	scores := make([]fwk.NodePluginScores, len(values))
	for n, value := range values {
		scores[n] = fwk.NodePluginScores{Name: c.heap.Items()[n].info.Node().Name, RawScores: make([]fwk.PluginScore, len(plugins))}
		for i, plugin := range plugins {
			scores[n].RawScores[i] = fwk.PluginScore{Name: plugin.Name, Score: value}
		}
	}
	return scores
}

// probe finds the weight of each plugin that does not normalise.
func (s *scorer) probe(ctx context.Context, c *class) error {
	if s.probed || c.heap.Len() < len(probes[0]) {
		// With fewer nodes, normalising all of them is cheap; unknown weights make update do that.
		if s.weight == nil && c.heap.Len() > 0 {
			s.weight = make([]int64, len(c.heap.Top().raw))
		}
		return nil
	}
	s.probed = true
	plugins := c.heap.Top().raw
	s.weight = make([]int64, len(plugins))
	linear := make([]bool, len(plugins))
	for i := range linear {
		linear[i] = true
	}
	for _, probe := range probes {
		scores := c.madeUp(probe[:], plugins)
		if status := c.attempt.planner.Framework.NormalizeScores(ctx, c.state, c.pod, scores); !status.IsSuccess() {
			return c.scoreError(status)
		}
		for n, value := range probe {
			for i, part := range scores[n].Scores {
				if s.weight[i] == 0 {
					s.weight[i] = part.Score / value
				}
				linear[i] = linear[i] && part.Score == s.weight[i]*value
			}
		}
	}
	for i := range linear {
		if !linear[i] {
			s.weight[i] = 0
		}
	}
	return nil
}
