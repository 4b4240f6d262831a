// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package proportion_test

import (
	"maps"

	corev1 "k8s.io/api/core/v1"

	"github.com/caldera-scheduler/caldera/pkg/queue/proportion"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// amounts are amounts of resources in the units of vectors.
type amounts map[corev1.ResourceName]float64

func amountsOf(p resource.Portion) amounts {
	m := amounts{}
	for _, a := range p {
		m[a.Name] = a.Value
	}
	return m
}

// epsilon is what Volcano takes for equal: 0.1 of its units, which are thousandths of everything but memory.
func epsilon(name corev1.ResourceName) float64 {
	switch name {
	case corev1.ResourceCPU, corev1.ResourceMemory:
		return 0.1
	}
	return 0.0001
}

// empty is Volcano's IsEmpty, which does not look at pods.
func (m amounts) empty() bool {
	for name, value := range m {
		if name != corev1.ResourcePods && value >= epsilon(name) {
			return false
		}
	}
	return true
}

// within is Volcano's LessEqual with missing as zero.
func (m amounts) within(o amounts) bool {
	for name, value := range m {
		if value > o[name] && value-o[name] >= epsilon(name) {
			return false
		}
	}
	return true
}

// round is one round of Volcano's water filling.
type round struct {
	// remaining is what there is to share when the round begins.
	remaining amounts
	// deserved is what each queue has when it ends.
	deserved []amounts
}

// volcano divides in Volcano's rounds (reference section 4.6, step by step), in the simplest way there is.
func volcano(total resource.Vector, demands []proportion.Demand) []round {
	deserved := make([]amounts, len(demands))
	for i := range deserved {
		deserved[i] = amounts{}
	}
	meet := make([]bool, len(demands))
	remaining := amountsOf(total.Portion())
	var rounds []round
	for {
		weights := 0.0
		for i, d := range demands {
			if !meet[i] {
				weights += float64(max(1, d.Weight))
			}
		}
		if weights == 0 {
			return rounds
		}
		r := round{remaining: maps.Clone(remaining)}
		for i, d := range demands {
			if meet[i] {
				continue
			}
			old := maps.Clone(deserved[i])
			deserved[i] = raise(old, r.remaining, float64(max(1, d.Weight))/weights, &d)
			request := amountsOf(d.Request.Portion())
			meet[i] = request.within(deserved[i]) || maps.Equal(old, deserved[i])
			for name, value := range deserved[i] {
				remaining[name] -= value - old[name]
			}
		}
		for name := range remaining {
			remaining[name] = max(0, remaining[name])
		}
		for i := range deserved {
			r.deserved = append(r.deserved, maps.Clone(deserved[i]))
		}
		rounds = append(rounds, r)
		if remaining.empty() || maps.Equal(remaining, r.remaining) {
			return rounds
		}
	}
}

// raise is what one queue deserves after a round.
func raise(old, remaining amounts, part float64, d *proportion.Demand) amounts {
	deserved := maps.Clone(old)
	for name, value := range remaining {
		deserved[name] += value * part
	}
	for name := range deserved {
		if bound, limited := d.Limit.Of(name); limited {
			deserved[name] = min(deserved[name], bound)
		}
		deserved[name] = min(deserved[name], float64(d.Request.Get(name)))
	}
	for _, a := range d.Guarantee {
		deserved[a.Name] = max(deserved[a.Name], float64(a.Value))
	}
	return deserved
}

// bisected divides by halving the interval in which the level lies, with nothing but the definition at hand.
func bisected(total resource.Vector, demands []proportion.Demand) []amounts {
	parts := make([]amounts, len(demands))
	for i := range parts {
		parts[i] = amounts{}
	}
	for _, name := range names {
		whole, weights := float64(total.Get(name)), 0.0
		for _, d := range demands {
			weights += float64(max(1, d.Weight))
		}
		part := func(d *proportion.Demand, from, level float64) float64 {
			most := float64(d.Request.Get(name))
			if bound, limited := d.Limit.Of(name); limited {
				most = min(most, bound)
			}
			return max(float64(d.Guarantee.Get(name)), min(most, from+level*float64(max(1, d.Weight))))
		}
		from := make([]float64, len(demands))
		all := 0.0
		for i := range demands {
			from[i] = part(&demands[i], 0, whole/weights)
			all += from[i]
		}
		if all > whole {
			clear(from)
		}
		low, high := 0.0, 1e18
		for range 200 {
			level := (low + high) / 2
			all = 0
			for i := range demands {
				all += part(&demands[i], from[i], level)
			}
			if all > whole {
				high = level
			} else {
				low = level
			}
		}
		for i := range demands {
			parts[i][name] = part(&demands[i], from[i], low)
		}
	}
	return parts
}
