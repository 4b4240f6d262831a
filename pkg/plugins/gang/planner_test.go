// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang_test

import (
	"testing"

	"github.com/caldera-scheduler/caldera/pkg/plugins/gang"
)

// The first rows are those of upstream's own test of its rule (k8s.io/kubernetes v1.37.1
// pkg/scheduler/schedule_one_test.go, TestNumFeasibleNodesToFind), the others are its formula by hand.
func TestSampleSizeIsUpstreams(t *testing.T) {
	for name, tc := range map[string]struct {
		nodes      int
		percentage *int32
		want       int
	}{
		"upstream: few nodes":                       {10, nil, 10},
		"upstream: few nodes, 40 %":                 {10, new(int32(40)), 10},
		"upstream: 1000 nodes":                      {1000, nil, 420},
		"upstream: 1000 nodes, 40 %":                {1000, new(int32(40)), 400},
		"upstream: 6000 nodes":                      {6000, nil, 300},
		"upstream: 6000 nodes, 40 %":                {6000, new(int32(40)), 2400},
		"no nodes":                                  {0, nil, 0},
		"the last small cluster":                    {99, nil, 99},
		"the first large one":                       {100, nil, 100},
		"never fewer than 100":                      {125, new(int32(1)), 100},
		"49 % of 150 are fewer than 100":            {150, nil, 100},
		"the last cluster of more than 5 %":         {5500, nil, 330},
		"5 % from there on":                         {20000, nil, 1000},
		"0 % means that upstream's formula decides": {1000, new(int32(0)), 420},
		"all of them":                               {5000, new(int32(100)), 5000},
	} {
		t.Run(name, func(t *testing.T) {
			if got := gang.SampleSize(tc.nodes, tc.percentage); got != tc.want {
				t.Errorf("sample of %d nodes is %d, want %d", tc.nodes, got, tc.want)
			}
		})
	}
}
