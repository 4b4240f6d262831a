// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package fragment

import "slices"

// Stranded is what would be left over by the average pod if only its like came.
func (k Kinds) Stranded(l Left) float64 {
	_, stranded := k.losses(l)
	return stranded
}

// Has reports whether a demand is among the kinds.
func (k Kinds) Has(d Demand) bool {
	return slices.ContainsFunc(k.chosen, func(p popular) bool { return p.Demand == d })
}
