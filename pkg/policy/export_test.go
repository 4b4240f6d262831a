// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import "github.com/caldera-scheduler/caldera/pkg/model"

// Ballot is the vote of one policy, and its reason.
type Ballot struct {
	Vote
	model.Reason
}

// TierVote combines votes as admission does.
func TierVote(tiers [][]Ballot) (bool, model.Reason) {
	return tierVote(tiers, func(b Ballot) (Vote, model.Reason) { return b.Vote, b.Reason })
}
