// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"context"

	fwk "k8s.io/kube-scheduler/framework"
)

// refined is the score of a plugin before it is rounded.
type refined struct {
	// plugin is its position in the raw scores.
	plugin int
	weight float64
	score  func(fwk.NodeInfo) float64
}

// refineAll finds out what the plugins of a class say of their scores before these are rounded, and what that changes for its candidates. A made-up
// score of 1 tells the weight of a plugin that does not normalise.
func (s *scorer) refineAll(ctx context.Context, c *class) error {
	scores := finely(c.state)
	if len(scores) == 0 || c.heap.Len() == 0 {
		return nil
	}
	ones := c.madeUp([]int64{1}, c.heap.Top().raw)
	if status := c.attempt.planner.Framework.NormalizeScores(ctx, c.state, c.pod, ones); !status.IsSuccess() {
		return c.scoreError(status)
	}
	for i, part := range ones[0].Scores {
		if score := scores[part.Name]; score != nil {
			s.refined = append(s.refined, refined{plugin: i, weight: float64(part.Score), score: score})
		}
	}
	for _, e := range c.heap.Items() {
		s.refine(e)
	}
	return nil
}

// half is the most that rounding changes.
const half = 0.5

// refine finds what rounding took from the total of a candidate. A score that is another by now counts by no more than rounding could.
func (s *scorer) refine(e *candidate) {
	e.fine = 0
	for _, r := range s.refined {
		lost := r.score(e.info) - float64(e.raw[r.plugin].Score)
		e.fine += r.weight * max(-half, min(half, lost))
	}
}
