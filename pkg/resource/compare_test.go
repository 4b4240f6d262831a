// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package resource_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/caldera-scheduler/caldera/internal/testing/golden"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

func TestComparisonsOfAmounts(t *testing.T) {
	golden.Walk(t, "compare", map[string]func(*golden.Case) string{
		"schedulable": each(func(l, _ *golden.Line) string { return golden.Vector(resource.Schedulable(l.List("of"))) }),
		"besteffort":  each(func(l, _ *golden.Line) string { return yes(l.Amounts("of").BestEffort()) }),
		"within":      each(func(l, _ *golden.Line) string { return yes(l.Amounts("due").Portion().Within(l.Amounts("held"))) }),
		"refuses": each(func(l, options *golden.Line) string {
			limit := limitOf(l, options)
			over := limit.Refuses(l.Amounts("asks"), l.Amounts("held"))
			if len(over) == 0 {
				return "fits"
			}
			return fmt.Sprintf("too much %v", over)
		}),
		"divided": each(func(l, _ *golden.Line) string {
			whole := l.Amounts("whole")
			part := whole.Times(1 / l.Float("among", 1))
			sum := part.Times(l.Float("times", 1))
			return "all is " + yes(sum.Within(whole)) + ", a unit less is " + yes(sum.Within(resource.Vector{{Name: whole[0].Name, Value: whole[0].Value - 1}}))
		}),
		"beyond": each(func(l, _ *golden.Line) string { return golden.Vector(l.Amounts("of").Beyond(l.Amounts("without"))) }),
		"tighten": each(func(l, options *golden.Line) string {
			limit := limitOf(l, options)
			limit.Tighten(l.Amounts("to").Portion())
			return golden.Limit(limit)
		}),
		"atleast": each(func(l, _ *golden.Line) string {
			return golden.Portion(l.Amounts("of").Portion().AtLeast(l.Amounts("floor")))
		}),
		"inherit": each(func(l, _ *golden.Line) string {
			limit := resource.Limit{Amounts: l.Amounts("limit").Portion(), Unnamed: resource.Unlimited}
			limit.Inherit(resource.Limit{Amounts: l.Amounts("parent").Portion(), Unnamed: resource.Unlimited})
			return golden.Limit(limit)
		}),
		"dominant": each(func(l, _ *golden.Line) string {
			return golden.Number(l.Amounts("held").Dominant(l.Amounts("whole").Portion()))
		}),
		"equal":     each(func(l, _ *golden.Line) string { return yes(l.Amounts("a").Equal(l.Amounts("b"))) }),
		"exceeding": each(func(l, _ *golden.Line) string { return golden.Vector(l.Amounts("asks").Exceeding(l.Amounts("has"))) }),
	})
}

// each answers line by line.
func each(answer func(l, options *golden.Line) string) func(*golden.Case) string {
	return func(c *golden.Case) string {
		var b strings.Builder
		for _, l := range c.Lines {
			b.WriteString(answer(l, c.Options) + "\n")
		}
		return b.String()
	}
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func limitOf(l, options *golden.Line) resource.Limit {
	return resource.Limit{Amounts: l.Amounts("limit").Portion(), Unnamed: unnamed[options.Text("others", "nothing")]}
}

var unnamed = map[string]resource.Unnamed{"nothing": resource.Nothing, "unlimited": resource.Unlimited, "devices": resource.OnlyDevices}

// names are the resources of the vectors that rapid draws.
var names = []corev1.ResourceName{"cpu", "memory", "pods", "x/gpu", "y/fpga", "deviceclass/gpu", "memory.deviceclass/gpu"}

func TestLimitsRefuseExactlyWhatDoesNotFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bound, held, ask := vectors().Draw(t, "bound"), vectors().Draw(t, "held"), vectors().Draw(t, "ask")
		unnamed := rapid.SampledFrom([]resource.Unnamed{resource.Nothing, resource.Unlimited, resource.OnlyDevices}).Draw(t, "unnamed")
		over := resource.Limit{Amounts: bound.Portion(), Unnamed: unnamed}.Refuses(ask, held)
		for _, name := range names {
			named := false
			for _, a := range bound {
				named = named || a.Name == name
			}
			want := name != "pods" && ask.Get(name) > 0 && (named || unnamed == resource.Nothing || unnamed == resource.OnlyDevices && !resource.IsDevices(name)) && held.Get(name)+ask.Get(name) > bound.Get(name)
			got := false
			for _, n := range over {
				got = got || n == name
			}
			if got != want {
				t.Fatalf("%s held, %s asked for of %s, limit %s (named: %t): refused is %t", held, ask, name, bound, named, got)
			}
		}
	})
}

func TestTighteningIsTheSmallerLimitEverywhere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := vectors().Draw(t, "a"), vectors().Draw(t, "b")
		for _, unnamed := range []resource.Unnamed{resource.Nothing, resource.Unlimited} {
			limit := resource.Limit{Amounts: a.Portion(), Unnamed: unnamed}
			first := limit.Clone()
			limit.Tighten(b.Portion())
			other := resource.Limit{Amounts: b.Portion(), Unnamed: resource.Unlimited}
			for _, name := range names {
				x, was := first.Of(name)
				y, bounded := other.Of(name)
				got, limited := limit.Of(name)
				want := math.Inf(1)
				if was {
					want = x
				}
				if bounded && (was && has(a, name) || unnamed == resource.Unlimited) {
					want = min(want, y)
				}
				if limited != !math.IsInf(want, 1) || limited && got != want {
					t.Fatalf("%s tightened to %s: %s is %g, want %g", a, b, name, got, want)
				}
			}
			// Twice is once.
			again := limit.Clone()
			again.Tighten(b.Portion())
			if golden.Limit(again) != golden.Limit(limit) {
				t.Fatalf("%s tightened to %s twice is %v, once %v", a, b, again, limit)
			}
		}
	})
}

func has(v resource.Vector, name corev1.ResourceName) bool {
	for _, a := range v {
		if a.Name == name {
			return true
		}
	}
	return false
}

func TestDominantIsTheLargestPart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		held, whole := vectors().Draw(t, "held"), vectors().Draw(t, "whole")
		want := 0.0
		for _, name := range names {
			if whole.Get(name) > 0 {
				want = max(want, float64(held.Get(name))/float64(whole.Get(name)))
			}
		}
		if got := held.Dominant(whole.Portion()); got != want || math.IsNaN(got) || math.IsInf(got, 0) {
			t.Fatalf("%s of %s is %g, want %g", held, whole, got, want)
		}
	})
}
