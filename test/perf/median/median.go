// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package median is what measurements report of several runs.
package median

import "slices"

// Of returns the median; of an even number of values it is between the two in the middle. There must be at least one.
func Of[T ~int64 | ~float64](values []T) T {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
