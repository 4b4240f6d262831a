// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package median_test

import (
	"testing"

	"github.com/caldera-scheduler/caldera/test/perf/median"
)

func TestOf(t *testing.T) {
	for name, tc := range map[string]struct {
		values []float64
		want   float64
	}{
		"one":            {[]float64{3}, 3},
		"an odd number":  {[]float64{9, 1, 4}, 4},
		"an even number": {[]float64{10, 1, 2, 4}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			if got := median.Of(tc.values); got != tc.want {
				t.Errorf("the median of %v is %v, want %v", tc.values, got, tc.want)
			}
		})
	}
}
