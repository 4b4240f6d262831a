// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import "github.com/caldera-scheduler/caldera/pkg/model"

// The rules by which the answers of policies are combined (Volcano pkg/scheduler/framework/session_plugins.go).

// firstNonZero returns the first answer that is an opinion.
func firstNonZero[P any](policies []P, compare func(P) int) int {
	for _, p := range policies {
		if c := compare(p); c != 0 {
			return c
		}
	}
	return 0
}

// tierVote walks the tiers until one has permitted; one rejection met on the way denies. Nobody asked, or nobody with
// an opinion: permitted. It returns the reason of the rejection.
func tierVote[P any](tiers [][]P, ask func(P) (Vote, model.Reason)) (permitted bool, why model.Reason) {
	for _, tier := range tiers {
		seen := false
		for _, p := range tier {
			switch vote, reason := ask(p); {
			case vote < 0:
				return false, reason
			case vote > 0:
				seen = true
			}
		}
		if seen {
			return true, model.Reason{}
		}
	}
	return true, model.Reason{}
}
