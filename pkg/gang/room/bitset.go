// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package room

import "math/bits"

const wordBits = 64

// bitset is a set of small numbers.
type bitset []uint64

// newBitset returns an empty set with room for numbers below n.
func newBitset(n int) bitset { return make(bitset, (n+wordBits-1)/wordBits) }

func (b bitset) has(i int) bool {
	word := i / wordBits
	return word < len(b) && b[word]&(1<<(i%wordBits)) != 0
}

// set puts a number in, or takes it out.
func (b *bitset) set(i int, in bool) {
	if !in {
		b.clear(i)
		return
	}
	for i/wordBits >= len(*b) {
		*b = append(*b, 0)
	}
	(*b)[i/wordBits] |= 1 << (i % wordBits)
}

func (b bitset) clear(i int) {
	if word := i / wordBits; word < len(b) {
		b[word] &^= 1 << (i % wordBits)
	}
}

// all yields the numbers in ascending order.
func (b bitset) all(yield func(int) bool) {
	for word, left := range b {
		for ; left != 0; left &= left - 1 {
			if !yield(word*wordBits + bits.TrailingZeros64(left)) {
				return
			}
		}
	}
}
