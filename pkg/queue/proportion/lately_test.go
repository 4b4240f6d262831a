// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package proportion_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/caldera-scheduler/caldera/pkg/queue/proportion"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// gpus is an amount of GPUs.
func gpus(n int64) resource.Vector { return resource.Vector{{Name: "nvidia.com/gpu", Value: n}} }

// part is a part of all GPUs.
func part(p float64) resource.Portion {
	return resource.Portion{{Name: "nvidia.com/gpu", Value: p}}
}

// The first example is that of design section 5: what A held for two half-lives leaves it nothing while B asks for all.
func TestWhoHeldMoreLatelyGetsLess(t *testing.T) {
	type queue struct {
		weight, asks int64
		lately       float64
		guarantee    int64
		want         float64
	}
	for name, tc := range map[string]struct {
		pull   float64
		queues []queue
	}{
		"A held 0.75 of all, B nothing": {2, []queue{
			{weight: 1, asks: 16, lately: 0.75, want: 0}, {weight: 1, asks: 16, want: 16},
		}},
		"what B does not want is for A all the same": {2, []queue{
			{weight: 1, asks: 16, lately: 0.75, want: 15}, {weight: 1, asks: 1, want: 1},
		}},
		"A has a guarantee": {2, []queue{
			{weight: 1, asks: 16, lately: 0.75, guarantee: 4, want: 4}, {weight: 1, asks: 16, want: 12},
		}},
		// Weights 0.5 + (0.5 - 0.625) = 0.375 and 0.5 + (0.5 - 0.375) = 0.625 of 1.
		"both held, A more": {1, []queue{
			{weight: 3, asks: 16, lately: 0.625, want: 6}, {weight: 3, asks: 16, lately: 0.375, want: 10},
		}},
		"each held what its weight is": {1, []queue{
			{weight: 3, asks: 16, lately: 0.75, want: 12}, {weight: 1, asks: 16, lately: 0.25, want: 4},
		}},
		"it does not count": {0, []queue{
			{weight: 1, asks: 16, lately: 1, want: 8}, {weight: 1, asks: 16, want: 8},
		}},
		"one alone, that held all": {10, []queue{{weight: 1, asks: 16, lately: 1, want: 16}}},
		// The cluster shrank after they held it: their parts of what there is are more than all of it. What is left goes by weight.
		"nobody has any weight left": {10, []queue{
			{weight: 3, asks: 16, lately: 1, want: 12}, {weight: 1, asks: 16, lately: 1, want: 4},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var demands []proportion.Demand
			for _, q := range tc.queues {
				demands = append(demands, proportion.Demand{
					Weight: q.weight, Request: gpus(q.asks), Guarantee: gpus(q.guarantee), Limit: resource.Limit{Unnamed: resource.Unlimited},
					Lately: part(q.lately), Pull: tc.pull,
				})
			}
			for i, got := range proportion.Divide(gpus(16), demands) {
				if want := tc.queues[i].want; math.Abs(got.Get("nvidia.com/gpu")-want) > 1e-9 {
					t.Errorf("queue %d is due %v, want %v", i, got.Get("nvidia.com/gpu"), want)
				}
			}
		})
	}
}

// lately draws divisions in which it counts what queues have held.
func lately() *rapid.Generator[problem] {
	return rapid.Custom(func(t *rapid.T) problem {
		p := problems().Draw(t, "problem")
		pull := rapid.SampledFrom([]float64{0.5, 1, 10}).Draw(t, "pull")
		for i := range p.demands {
			p.demands[i].Pull = pull
			for _, name := range names {
				held := rapid.SampledFrom([]float64{0, 0.1, 0.5, 1}).Draw(t, "held")
				p.demands[i].Lately = p.demands[i].Lately.Plus(resource.Portion{{Name: name, Value: held}})
			}
		}
		return p
	})
}

func TestPartsAreWithinBoundsWhateverWasHeldLately(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { inBounds(t, lately().Draw(t, "problem")) })
}

func TestWhoHeldLessLatelyIsDueNoLess(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := lately().Draw(t, "problem")
		i := rapid.IntRange(0, len(p.demands)-1).Draw(t, "queue")
		before := proportion.Divide(p.total, p.demands)[i]
		p.demands[i].Lately = p.demands[i].Lately.Times(rapid.Float64Range(0, 1).Draw(t, "less"))
		after := proportion.Divide(p.total, p.demands)[i]
		for _, name := range names {
			if b, a := before.Get(name), after.Get(name); a < b && !near(a, b) {
				t.Fatalf("it held less and is due %g of %s, %g before", a, name, b)
			}
		}
	})
}
