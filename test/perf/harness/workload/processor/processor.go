// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package processor starts processes that have processors for themselves, so that what runs at the same time is disturbed by
// the same things and by nothing of each other.
package processor

import "slices"

// Share divides processors among so many, one at least; nil when there are too few. The shares go round, so that after as many rounds each has had
// all of them.
func Share(processors []int, among, round int) [][]int {
	each := len(processors) / among
	if each == 0 {
		return nil
	}
	shares := slices.Collect(slices.Chunk(processors[:each*among], each))
	turn := round % among
	return slices.Concat(shares[turn:], shares[:turn])
}
