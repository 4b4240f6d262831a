// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import "slices"

// sizes counts things by their size, and knows the least size of which there are any. There are few sizes.
type sizes struct {
	// known are all sizes there ever were, in order, and counts how many there are of each.
	known  []int
	counts []int
}

// count adds so many of a size, or takes them away.
func (s *sizes) count(size, by int) {
	i, ok := slices.BinarySearch(s.known, size)
	if !ok {
		s.known = slices.Insert(s.known, i, size)
		s.counts = slices.Insert(s.counts, i, 0)
	}
	s.counts[i] += by
}

// least is the least size; 0 when there are none.
func (s *sizes) least() int {
	for i, n := range s.counts {
		if n > 0 {
			return s.known[i]
		}
	}
	return 0
}
