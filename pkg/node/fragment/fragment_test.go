// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package fragment_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/caldera-scheduler/caldera/pkg/node/fragment"
)

// some are three kinds of equal frequency: half a GPU with 4 cores, two GPUs with 8, and no GPU.
func some() fragment.Kinds {
	return fragment.KindsOf(map[fragment.Demand]float64{
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
			if got := some().Lost(fragment.Left{MilliCPU: tc.cpu, GPUs: tc.left, Model: tc.model}); math.Abs(got-tc.want) > 1e-9 {
				t.Errorf("lost %g, want %g", got, tc.want)
			}
		})
	}
}

// TestAheadOfTheLastPod: pods ask for a GPU and four cores, and a node has four GPUs. A pod without GPUs takes four cores. By the published measure it costs
// nothing, as long as there is CPU for one of the others. It costs something where the CPU did not suffice for all GPUs before.
func TestAheadOfTheLastPod(t *testing.T) {
	k := fragment.KindsOf(map[fragment.Demand]float64{{MilliCPU: 4000, GPUs: 1, Milli: 1000}: 1})
	gpus := []int{1000, 1000, 1000, 1000}
	level := func(cpu int64) int {
		before, after := fragment.Left{MilliCPU: cpu, GPUs: gpus}, fragment.Left{MilliCPU: cpu - 4000, GPUs: gpus}
		if a, b := k.Lost(before), k.Lost(after); a != 0 || b != 0 {
			t.Errorf("of %d lost are %g, and then %g, want nothing", cpu, a, b)
		}
		return k.Level(before, after)
	}
	// There is CPU for five of them before, and for four after.
	if got, want := level(20000), 50; got != want {
		t.Errorf("level %d with enough CPU, want %d", got, want)
	}
	// There is CPU for two of them before, and for one after: a thousand thousandths more have none.
	if got, want := level(8000), 46; got != want {
		t.Errorf("level %d with CPU for two, want %d", got, want)
	}
}

// TestStrandedIsCountedKindByKind compares with a count that looks at each kind, and at no sums.
func TestStrandedIsCountedKindByKind(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		counts := rapid.MapOf(rapid.Custom(func(t *rapid.T) fragment.Demand {
			return fragment.Demand{
				MilliCPU: rapid.Int64Range(0, 12).Draw(t, "cpu"), GPUs: rapid.IntRange(1, 3).Draw(t, "gpus"),
				Milli: rapid.SampledFrom([]int{250, 500, 1000}).Draw(t, "milli"),
			}
		}), rapid.Just(1.)).Draw(t, "counts")
		left := fragment.Left{
			MilliCPU: rapid.Int64Range(0, 40).Draw(t, "left"),
			GPUs:     rapid.SliceOfN(rapid.SampledFrom([]int{0, 250, 400, 750, 1000}), 0, 4).Draw(t, "GPUs"),
		}
		k := fragment.KindsOf(counts)
		want := 0.
		for d := range counts {
			large, usable := 0, 0
			for _, g := range left.GPUs {
				if g >= d.Milli {
					large, usable = large+1, usable+g
				}
			}
			if large < d.GPUs || d.MilliCPU > left.MilliCPU || !k.Has(d) {
				continue
			}
			if d.MilliCPU > 0 {
				want += max(0, float64(usable)-float64(left.MilliCPU)/float64(d.MilliCPU)*float64(d.GPUs*d.Milli)) / float64(k.Len())
			}
		}
		if got := k.Stranded(left); math.Abs(got-want) > 1e-6 {
			t.Fatalf("stranded %g, want %g", got, want)
		}
	})
}

func TestRareKindsDoNotCount(t *testing.T) {
	k := fragment.KindsOf(map[fragment.Demand]float64{{MilliCPU: 1, GPUs: 1, Milli: 1000}: 96, {MilliCPU: 2, GPUs: 1, Milli: 1000}: 3, {MilliCPU: 3}: 1})
	if k.Len() != 1 {
		t.Errorf("%d kinds, want 1: it alone makes up 95 %%", k.Len())
	}
	// The one that counts can use all.
	if lost := k.Lost(fragment.Left{MilliCPU: 1, GPUs: []int{1000}}); lost != 0 {
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
		}), rapid.Float64Range(1, 5)).Draw(t, "counts")
		k := fragment.KindsOf(counts)
		left := rapid.SliceOfN(rapid.SampledFrom([]int{0, 250, 400, 750, 1000}), 0, 4).Draw(t, "left")
		all := 0.0
		for _, l := range left {
			all += float64(l)
		}
		cpu := rapid.Int64Range(1, 8).Draw(t, "node")
		lost, less := k.Lost(fragment.Left{MilliCPU: cpu, GPUs: left}), k.Lost(fragment.Left{MilliCPU: cpu - 1, GPUs: left})
		if lost < 0 || lost > all+1e-9 || less < lost-1e-9 {
			t.Fatalf("of %v lost %g with %d cores, %g with one less", left, lost, cpu, less)
		}
	})
}

// TestWhatAPodLeaves: parts come from the GPU with the least that suffices, and no GPU is given twice.
func TestWhatAPodLeaves(t *testing.T) {
	left := fragment.Left{MilliCPU: 8000, GPUs: []int{1000, 300, 600, 1000}}
	for name, tc := range map[string]struct {
		asks fragment.Demand
		want []int
	}{
		"a part":         {fragment.Demand{GPUs: 1, Milli: 500}, []int{1000, 300, 100, 1000}},
		"a small part":   {fragment.Demand{GPUs: 1, Milli: 300}, []int{1000, 0, 600, 1000}},
		"a whole one":    {fragment.Demand{GPUs: 1, Milli: 1000}, []int{0, 300, 600, 1000}},
		"both":           {fragment.Demand{GPUs: 2, Milli: 1000}, []int{0, 300, 600, 0}},
		"parts of three": {fragment.Demand{GPUs: 3, Milli: 600}, []int{400, 300, 0, 400}},
		"none":           {fragment.Demand{}, []int{1000, 300, 600, 1000}},
		"three":          {fragment.Demand{GPUs: 3, Milli: 1000}, nil},
		"too much CPU":   {fragment.Demand{MilliCPU: 8001}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := left.Without(tc.asks)
			if ok != (tc.want != nil) || ok && !slices.Equal(got.GPUs, tc.want) {
				t.Errorf("got %v, %t, want %v", got.GPUs, ok, tc.want)
			}
			if !slices.Equal(left.GPUs, []int{1000, 300, 600, 1000}) {
				t.Errorf("what was left before is changed to %v", left.GPUs)
			}
		})
	}
}

// TestLevels: half a GPU on one of which half is taken is better than on a whole one, and the half that is left is no loss to those who ask for halves.
func TestLevels(t *testing.T) {
	asks := fragment.Demand{MilliCPU: 4000, GPUs: 1, Milli: 500}
	level := func(left ...int) int {
		before := fragment.Left{MilliCPU: 16000, GPUs: left, Model: "T4"}
		after, ok := before.Without(asks)
		if !ok {
			t.Fatalf("%v do not suffice", left)
		}
		return some().Level(before, after)
	}
	// A third of the pods, which ask for two GPUs, could not use the 500 before: of these a third is won, and a third for those without GPUs.
	if got, want := level(500), 58; got != want {
		t.Errorf("level %d on half a GPU, want %d", got, want)
	}
	// Two whole GPUs are of use to all who ask for GPUs before. After, one and a half are of none to a third.
	if got, want := level(1000, 1000), 41; got != want {
		t.Errorf("level %d on a whole one, want %d", got, want)
	}
	if got, want := some().Level(fragment.Left{}, fragment.Left{}), 50; got != want {
		t.Errorf("level %d on a node without GPUs, want %d", got, want)
	}
}

// TestScarceModels: half of the pods accept T4 only, of which the cluster has a fifth of its GPUs. Weighed up by five, what they cannot use counts five times.
func TestScarceModels(t *testing.T) {
	k := fragment.KindsOf(map[fragment.Demand]float64{{GPUs: 1, Milli: 1000}: 10, {GPUs: 1, Milli: 1000, Models: "T4|P4"}: 10})
	scarce := k.Scarce(map[string]int{"T4": 20, "V100": 80})
	for model, want := range map[string]float64{"T4": 0, "V100": 5. / 6 * 1000} {
		if got := scarce.Lost(fragment.Left{GPUs: []int{1000}, Model: model}); math.Abs(got-want) > 1e-9 {
			t.Errorf("%s: lost %g, want %g", model, got, want)
		}
	}
	if got := k.Lost(fragment.Left{GPUs: []int{1000}, Model: "V100"}); got != 500 {
		t.Errorf("the published measure has changed to %g", got)
	}
	// A model that nobody has is not to be divided by.
	if got := k.Scarce(map[string]int{"V100": 80}).Lost(fragment.Left{GPUs: []int{1000}, Model: "V100"}); got != 500 {
		t.Errorf("lost %g, want 500", got)
	}
}
