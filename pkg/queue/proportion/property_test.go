// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package proportion_test

import (
	"math"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/caldera-scheduler/caldera/pkg/queue/proportion"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// problem is a division to make.
type problem struct {
	total   resource.Vector
	demands []proportion.Demand
}

// vector draws amounts, some of them zero or missing. With negative amounts it is bad input.
func vector(least, most int64) *rapid.Generator[resource.Vector] {
	return rapid.Custom(func(t *rapid.T) resource.Vector {
		var v resource.Vector
		for _, name := range names {
			if rapid.Bool().Draw(t, "named") {
				v.Add(resource.Vector{{Name: name, Value: rapid.Int64Range(least, most).Draw(t, string(name))}})
			}
		}
		return v
	})
}

// problems draws divisions as accounts pose them: limits are what the guarantees of the others leave, and a capability.
func problems() *rapid.Generator[problem] {
	return rapid.Custom(func(t *rapid.T) problem {
		p := problem{total: vector(0, 100_000).Draw(t, "total")}
		// Round numbers make equal edges, which are the hard ones.
		if step := rapid.SampledFrom([]int64{1, 1000}).Draw(t, "step"); step > 1 {
			for i := range p.total {
				p.total[i].Value -= p.total[i].Value % step
			}
		}
		var capabilities []resource.Portion
		for range rapid.IntRange(1, 6).Draw(t, "queues") {
			d := proportion.Demand{
				Weight: rapid.Int64Range(0, 10).Draw(t, "weight"), Request: vector(0, 100_000).Draw(t, "request"),
			}
			if rapid.Bool().Draw(t, "guaranteed") {
				d.Guarantee = vector(0, 50_000).Draw(t, "guarantee")
			}
			capability := resource.Portion(nil)
			if rapid.Bool().Draw(t, "capable") {
				capability = vector(0, 60_000).Draw(t, "capability").Portion()
			}
			p.demands, capabilities = append(p.demands, d), append(capabilities, capability)
		}
		setLimits(p.total, p.demands, capabilities)
		return p
	})
}

// near is the tolerance for amounts that were found by other additions.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-6+1e-9*math.Abs(b) }

func most(d *proportion.Demand, name corev1.ResourceName) float64 {
	most := float64(d.Request.Get(name))
	if bound, limited := d.Limit.Of(name); limited {
		most = min(most, bound)
	}
	return max(most, float64(d.Guarantee.Get(name)))
}

func TestPartsAreWithinTotalGuaranteeAndLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { inBounds(t, problems().Draw(t, "problem")) })
}

// inBounds checks that no queue gets less than its guarantee or more than it may, and that all is given that is wanted.
func inBounds(t *rapid.T, p problem) {
	parts := proportion.Divide(p.total, p.demands)
	for _, name := range names {
		all, guaranteed, wanted := 0.0, 0.0, 0.0
		for i, part := range parts {
			d := &p.demands[i]
			got := part.Get(name)
			if math.IsNaN(got) || math.IsInf(got, 0) {
				t.Fatalf("queue %d gets %g of %s", i, got, name)
			}
			if least := float64(d.Guarantee.Get(name)); got < least {
				t.Fatalf("queue %d gets %g of %s, guaranteed are %g", i, got, name, least)
			}
			if got > most(d, name) {
				t.Fatalf("queue %d gets %g of %s, at most %g", i, got, name, most(d, name))
			}
			all += got
			guaranteed += float64(d.Guarantee.Get(name))
			wanted += most(d, name)
		}
		whole := float64(p.total.Get(name))
		if all > max(whole, guaranteed) && !near(all, max(whole, guaranteed)) {
			t.Fatalf("%g of %s are given, there are %g and %g are guaranteed", all, name, whole, guaranteed)
		}
		if all < min(whole, wanted) && !near(all, min(whole, wanted)) {
			t.Fatalf("%g of %s are given, there are %g and %g are wanted", all, name, whole, wanted)
		}
	}
}

func TestPartsAreThoseOfTheDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := problems().Draw(t, "problem")
		got := proportion.Divide(p.total, p.demands)
		for i, want := range bisected(p.total, p.demands) {
			for _, name := range names {
				if !near(got[i].Get(name), want[name]) {
					t.Fatalf("queue %d gets %g of %s, want %g", i, got[i].Get(name), name, want[name])
				}
			}
		}
	})
}

func TestPartsAreWhatVolcanosRoundsLeadTo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := problems().Draw(t, "problem")
		got := proportion.Divide(p.total, p.demands)
		rounds := volcano(p.total, p.demands)
		first, last := rounds[0].deserved, rounds[len(rounds)-1].deserved
		for _, name := range names {
			all := 0.0
			for i := range first {
				all += first[i][name]
			}
			if whole := float64(p.total.Get(name)); all > whole+epsilon(name) {
				continue // Volcano hands out more than there is.
			}
			for i := range got {
				// Volcano stops when less than an epsilon is left, of each resource on its own.
				if want := last[i][name]; math.Abs(got[i].Get(name)-want) > 2*0.1+1e-6 {
					t.Fatalf("queue %d gets %g of %s, want %g after %d rounds", i, got[i].Get(name), name, want, len(rounds))
				}
			}
		}
	})
}

func TestPartsDoNotDependOnTheOrderOfQueues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := problems().Draw(t, "problem")
		places := make([]int, len(p.demands))
		for i := range places {
			places[i] = i
		}
		places = rapid.Permutation(places).Draw(t, "order")
		shuffled := make([]proportion.Demand, len(places))
		for i, place := range places {
			shuffled[i] = p.demands[place]
		}
		want, got := proportion.Divide(p.total, p.demands), proportion.Divide(p.total, shuffled)
		for i, place := range places {
			for _, name := range names {
				if !near(got[i].Get(name), want[place].Get(name)) {
					t.Fatalf("queue %d gets %g of %s, in the order %v %g", place, want[place].Get(name), name, places, got[i].Get(name))
				}
			}
		}
	})
}

func TestMoreWeightNeverMeansLess(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := problems().Draw(t, "problem")
		i := rapid.IntRange(0, len(p.demands)-1).Draw(t, "queue")
		heavier := slices.Clone(p.demands)
		heavier[i].Weight = max(1, heavier[i].Weight) + rapid.Int64Range(1, 20).Draw(t, "more")
		before, after := proportion.Divide(p.total, p.demands)[i], proportion.Divide(p.total, heavier)[i]
		for _, name := range names {
			if after.Get(name) < before.Get(name) && !near(after.Get(name), before.Get(name)) {
				t.Fatalf("queue %d gets %g of %s, with more weight %g", i, before.Get(name), name, after.Get(name))
			}
		}
	})
}

func TestBadAmountsGiveNumbersAllTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const huge = math.MaxInt64 / 8
		total := vector(-huge, huge).Draw(t, "total")
		var demands []proportion.Demand
		for range rapid.IntRange(0, 4).Draw(t, "queues") {
			demands = append(demands, proportion.Demand{
				Weight: rapid.Int64().Draw(t, "weight"), Request: vector(-huge, huge).Draw(t, "request"),
				Guarantee: vector(-huge, huge).Draw(t, "guarantee"),
				Limit: resource.Limit{
					Amounts: vector(-huge, huge).Draw(t, "limit").Portion(),
					Unnamed: rapid.SampledFrom([]resource.Unnamed{resource.Nothing, resource.Unlimited, resource.OnlyDevices}).Draw(t, "unnamed"),
				},
			})
		}
		for i, part := range proportion.Divide(total, demands) {
			for _, a := range part {
				if math.IsNaN(a.Value) || math.IsInf(a.Value, 0) || a.Value < 0 {
					t.Fatalf("queue %d gets %g of %s", i, a.Value, a.Name)
				}
			}
		}
	})
}
