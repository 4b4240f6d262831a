// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package fragment_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/caldera-scheduler/caldera/pkg/node/fragment"
)

// some are three kinds of equal frequency: half a GPU with 4 cores, two GPUs with 8, and no GPU.
func some() fragment.Kinds {
	return fragment.KindsOf(map[fragment.Demand]int{
		{MilliCPU: 4000, GPUs: 1, Milli: 500}:                1,
		{MilliCPU: 8000, GPUs: 2, Milli: 1000, Models: "T4"}: 1,
		{MilliCPU: 1000}: 1,
	})
}

func TestWhatIsLeftIsOfUse(t *testing.T) {
	for name, tc := range map[string]struct {
		cpu   int64
		left  []int
		model string
		want  float64
	}{
		"nothing is left": {8000, []int{0, 0}, "T4", 0},
		// Of 2000 thousandths the kind without GPUs could use none; the others all.
		"an empty node":              {8000, []int{1000, 1000}, "T4", 2000. / 3},
		"of another model":           {8000, []int{1000, 1000}, "V100", 2 * 2000. / 3},
		"too little CPU for two":     {7999, []int{1000, 1000}, "T4", 2 * 2000. / 3},
		"too little CPU for anybody": {3999, []int{1000, 1000}, "T4", 2000},
		// 400 are too little for half a GPU; two whole ones are not there.
		"a piece that is too small": {8000, []int{400, 1000}, "T4", (400 + 1400 + 1400) / 3.},
	} {
		t.Run(name, func(t *testing.T) {
			if got := some().Lost(tc.cpu, tc.left, tc.model); math.Abs(got-tc.want) > 1e-9 {
				t.Errorf("lost %g, want %g", got, tc.want)
			}
		})
	}
}

func TestRareKindsDoNotCount(t *testing.T) {
	k := fragment.KindsOf(map[fragment.Demand]int{{MilliCPU: 1, GPUs: 1, Milli: 1000}: 96, {MilliCPU: 2, GPUs: 1, Milli: 1000}: 3, {MilliCPU: 3}: 1})
	if k.Len() != 1 {
		t.Errorf("%d kinds, want 1: it alone makes up 95 %%", k.Len())
	}
	// The one that counts can use all.
	if lost := k.Lost(1, []int{1000}, ""); lost != 0 {
		t.Errorf("lost %g, want 0", lost)
	}
}

// TestLossIsBoundedByWhatIsLeft: nothing is lost that is not there, and less CPU never makes less lost.
func TestLossIsBoundedByWhatIsLeft(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		counts := rapid.MapOf(rapid.Custom(func(t *rapid.T) fragment.Demand {
			d := fragment.Demand{MilliCPU: rapid.Int64Range(0, 8).Draw(t, "cpu"), GPUs: rapid.IntRange(0, 3).Draw(t, "gpus")}
			if d.GPUs > 0 {
				d.Milli = rapid.SampledFrom([]int{250, 500, 1000}).Draw(t, "milli")
			}
			return d
		}), rapid.IntRange(1, 5)).Draw(t, "counts")
		k := fragment.KindsOf(counts)
		left := rapid.SliceOfN(rapid.SampledFrom([]int{0, 250, 400, 750, 1000}), 0, 4).Draw(t, "left")
		all := 0.0
		for _, l := range left {
			all += float64(l)
		}
		cpu := rapid.Int64Range(1, 8).Draw(t, "node")
		lost, less := k.Lost(cpu, left, ""), k.Lost(cpu-1, left, "")
		if lost < 0 || lost > all+1e-9 || less < lost-1e-9 {
			t.Fatalf("of %v lost %g with %d cores, %g with one less", left, lost, cpu, less)
		}
	})
}
