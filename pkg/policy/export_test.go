// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// Ballot is the vote of one policy, and its reason.
type Ballot struct {
	Vote
	model.Reason
}

// TierVote combines votes as admission does.
func TierVote(tiers [][]Ballot) (bool, model.Reason) {
	return tierVote(tiers, func(b Ballot) (Vote, model.Reason) { return b.Vote, b.Reason })
}

// Entitled is what Seek says of a need, without beginning a search.
func (t *Trial) Entitled(need resource.Vector) model.Reason {
	if t.ruleSet.inside() || t.ruleSet.completes() {
		return model.Reason{}
	}
	return t.rules.mayTake(t.own.queue, t.own.job, need)
}
