// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package processor_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caldera-scheduler/caldera/test/perf/harness/workload/processor"
)

func TestSharesGoRound(t *testing.T) {
	for name, tc := range map[string]struct {
		processors   []int
		among, round int
		want         [][]int
	}{
		"one each":                    {[]int{0, 1}, 2, 0, [][]int{{0}, {1}}},
		"changed in the second round": {[]int{0, 1}, 2, 1, [][]int{{1}, {0}}},
		"and back in the third":       {[]int{0, 1}, 2, 2, [][]int{{0}, {1}}},
		"what is left over is unused": {[]int{2, 3, 5, 7, 8}, 2, 0, [][]int{{2, 3}, {5, 7}}},
		"too few":                     {[]int{0, 1}, 3, 0, nil},
		"none":                        {nil, 1, 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, processor.Share(tc.processors, tc.among, tc.round)); diff != "" {
				t.Errorf("(-want,+got)\n%s", diff)
			}
		})
	}
}
