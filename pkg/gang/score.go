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
	all := make([]marks, len(reps))
	var failure atomic.Pointer[fwk.Status]
	err := c.attempt.each(ctx, len(reps), func(k int) {
		raw, status := f.RunRawScorePlugins(ctx, c.state, c.pod, items[reps[k]].info)
		if !status.IsSuccess() {
			failure.Store(status)
		}
		all[k].raw = raw
	}, "GangScore")
	for i, e := range items {
		e.marks = &all[of[i]]
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

// scoredAs returns by what candidates have the same raw scores: a number for each look, and for each look with some of the pod's images. None has the scores of others
// where these go by more than looks. Of a pod whose filters do, the scores are not known to go by looks only: those of resources that come from claims are counted by
// node.
func (c *class) scoredAs(items []*candidate) func(i int) (number int, compared bool) {
	planner := c.attempt.planner
	looks := planner.looksTo(c.pod, c.nodes)
	if looks == nil || !planner.FiltersByLook(c.state.GetSkipFilterPlugins()) || !planner.ScoresByLook(c.state.GetSkipScorePlugins()) {
		return func(int) (int, bool) { return unlike, false }
	}
	type likeness struct {
		look   int
		images string
	}
	names := imageNames(c.pod)
	withImages := map[likeness]int{}
	return func(i int) (int, bool) {
		e := items[i]
		number, images := looks.of(e.node, e.info)
		if number == unlike || !images {
			return number, number != unlike
		}
		l := likeness{look: number, images: imagesOn(e.info, names)}
		if l.images == "" {
			return number, true
		}
		// Numbers of looks are not negative.
		other, known := withImages[l]
		if !known {
			other = unlike - 1 - len(withImages)
			withImages[l] = other
		}
		return other, true
	}
}

// uncounted is the number of marks that have not been counted yet.
const uncounted = -1

// normalize turns the raw scores of all candidates into totals.
func (s *scorer) normalize(ctx context.Context, c *class) error {
	if s.refined == nil {
		if err := s.refineAll(ctx, c); err != nil {
			return err
		}
	}
	items := c.heap.Items()
	// Those that share their raw scores share what becomes of them.
	for _, e := range items {
		e.number = uncounted
	}
	var scores []fwk.NodePluginScores
	var all []*marks
	for _, e := range items {
		if e.number == uncounted {
			e.number, all = len(all), append(all, e.marks)
			scores = append(scores, fwk.NodePluginScores{Name: e.info.Node().Name, RawScores: e.raw})
		}
	}
	if status := c.attempt.planner.Framework.NormalizeScores(ctx, c.state, c.pod, scores); !status.IsSuccess() {
		return c.scoreError(status)
	}
	for k, m := range all {
		m.parts = make([]int64, len(scores[k].Scores))
		for j, part := range scores[k].Scores {
			m.parts[j] = part.Score
		}
	}
	for _, e := range items {
		e.total = scores[e.number].TotalScore
	}
	c.heap.Init()
	s.ranges, s.stale = make([]span, len(s.weight)), false
	for i, weight := range s.weight {
		if weight != 0 {
			continue
		}
		for _, e := range items {
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
	// Others may have the same marks.
	e.marks = &marks{raw: raw, parts: slices.Clone(e.parts)}
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
	e.marks, e.total = &marks{raw: raw, parts: make([]int64, len(raw))}, 0
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
	known := &c.attempt.planner.weights
	byLook := c.attempt.planner.ScoresByLook(s.skipped)
	if byLook && known.of != nil && known.skipped.Equal(s.skipped) {
		s.weight = known.of
		return nil
	}
	if err := s.weigh(ctx, c); err != nil {
		return err
	}
	if byLook {
		*known = weights{skipped: s.skipped, of: s.weight}
	}
	return nil
}

// weights are those of the plugins that normalise, or do not, whatever the pod, without those that are skipped.
type weights struct {
	skipped sets.Set[string]
	of      []int64
}

// weigh finds the weights by made-up scores.
func (s *scorer) weigh(ctx context.Context, c *class) error {
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
