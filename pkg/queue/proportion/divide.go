// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package proportion divides a cluster among queues by weight.
package proportion

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// Demand is what one queue brings to the division.
type Demand struct {
	// Weight is the queue's part of what is shared, relative to the other weights; below 1 counts as 1.
	Weight int64
	// Lately is the part of total that the queue has held on average, 0 to 1 of each resource. Pull is how much of the difference to the part that
	// its weight is of all weights counts, 0 or more.
	Lately resource.Portion
	Pull   float64
	// Request is what the queue's jobs hold and wait for: more than that it does not get.
	Request resource.Vector
	// Guarantee is what it gets at least, whatever it requests and its limit allows.
	Guarantee resource.Vector
	// Limit is what it gets at most, its guarantee aside.
	Limit resource.Limit
}

// Divide shares total among queues by weight. For each resource on its own, every queue gets its even part, which is
// total x weight / all weights, but no more than it requests and its limit allows, and no less than its guarantee. If
// that leaves something, all rise from there at the rate of their weights until it is used up or nobody wants more. If
// it is too much, because guarantees lift some above their even part, the level of the others sinks until it is not.
// The result names every resource of total and of the queue's guarantee, and is in the order of the demands. Units are
// those of the vectors.
//
// A queue that has held more of total lately than its weight is of all weights has a smaller weight, one that has held less a greater one:
//
//	part of all weights + pull x (part of all weights - part held lately), 0 at least
//
// A weight of 0 gets what those with more do not want. Source: KAI-Scheduler's time-based fairshare (docs/time-based-fairshare).
//
// Invariants: guarantee <= part <= max(guarantee, min(request, limit)), and the parts sum up to no more than total
// unless the guarantees alone do.
//
// This is what the rounds of Volcano's water filling converge to (pkg/scheduler/plugins/proportion/proportion.go;
// reference section 4.6), but for two things: rounds end early when only pod slots are left to share, and hand out more
// than total where guarantees lift queues above their even part.
func Divide(total resource.Vector, demands []Demand) []resource.Portion {
	names := total.Clone()
	weights := 0.0
	for i := range demands {
		names.Max(demands[i].Guarantee)
		weights += demands[i].weight()
	}
	parts := make([]resource.Portion, len(demands))
	all := make(resource.Portion, len(demands)*len(names))
	for i := range parts {
		parts[i] = all[i*len(names) : i*len(names) : (i+1)*len(names)]
	}
	spans := make([]span, len(demands))
	edges := make([]float64, 0, 2*len(demands))
	for _, a := range names {
		whole := total.Get(a.Name)
		weightless := false
		for i := range demands {
			spans[i] = demands[i].span(a.Name, weights)
			weightless = weightless || spans[i].weight == 0
		}
		at := share(float64(whole), spans, edges)
		got := func(i int) float64 { return spans[i].at(at) }
		if weightless {
			rest := leftOver(float64(whole), at, spans, demands)
			got = func(i int) float64 { return rest[i] }
		}
		for i := range spans {
			if value := got(i); value > 0 || whole != 0 {
				parts[i] = append(parts[i], resource.Quantity[float64]{Name: a.Name, Value: value})
			}
		}
	}
	return parts
}

// leftOver gives those without weight what the others leave at a level, by the weights that they were given. It returns what all have then.
func leftOver(total, level float64, spans []span, demands []Demand) []float64 {
	parts := make([]Part, len(spans))
	for i := range spans {
		parts[i] = Part{Least: spans[i].at(level), Most: spans[i].most}
		if spans[i].weight == 0 {
			parts[i].Weight = demands[i].weight()
		}
	}
	return Rise(total, parts)
}

func (d *Demand) weight() float64 { return float64(max(1, d.Weight)) }

// rate is the weight of one resource, after what the queue has held of it lately. All is the sum of all weights.
func (d *Demand) rate(name corev1.ResourceName, all float64) float64 {
	if d.Pull == 0 {
		return d.weight()
	}
	return max(0, d.weight()+d.Pull*(d.weight()-d.Lately.Get(name)*all))
}

func (d *Demand) span(name corev1.ResourceName, weights float64) span {
	most := float64(d.Request.Get(name))
	if bound, limited := d.Limit.Of(name); limited {
		most = min(most, bound)
	}
	least := max(0, float64(d.Guarantee.Get(name)))
	return span{weight: d.rate(name, weights), least: least, most: max(most, least)}
}

// span is what a queue may get of one resource: from + weight x level, within least and most. Invariant: 0 <= from,
// 0 <= least <= most, 0 <= weight; what has no weight does not rise.
type span struct{ weight, from, least, most float64 }

// low and high are the levels below and above which the part does not change.
func (s *span) low() float64  { return (s.least - s.from) / s.weight }
func (s *span) high() float64 { return (s.most - s.from) / s.weight }

// at is the queue's part at a level. At the levels low and high it is exactly least and most.
func (s *span) at(level float64) float64 {
	switch {
	case s.weight == 0:
		return s.least
	case level >= s.high():
		return s.most
	case level <= s.low():
		return s.least
	}
	return min(s.most, max(s.least, s.from+s.weight*level))
}

// sum is what all get at a level.
func sum(spans []span, level float64) float64 {
	total := 0.0
	for i := range spans {
		total += spans[i].at(level)
	}
	return total
}

// share finds the level for one resource. If the even parts leave something of total, the spans are changed to rise
// from there. The edges are kept in the given buffer.
func share(total float64, spans []span, edges []float64) float64 {
	weights := 0.0
	for i := range spans {
		weights += spans[i].weight
	}
	if weights == 0 {
		return 0
	}
	if even := total / weights; sum(spans, even) <= total {
		for i := range spans {
			s := &spans[i]
			s.least = s.at(even)
			s.from = s.least
		}
	}
	return level(total, spans, edges)
}

// level finds the highest level at which the parts sum up to no more than total, but 0 at least. Between two
// neighbouring edges, where some part stops or starts to rise, the sum rises linearly.
func level(total float64, spans []span, edges []float64) float64 {
	edges = append(edges[:0], 0)
	for i := range spans {
		if spans[i].weight > 0 {
			edges = append(edges, spans[i].low(), spans[i].high())
		}
	}
	slices.Sort(edges)
	// The first edge at which the sum is too large; the level lies before it.
	i, _ := slices.BinarySearchFunc(edges, total, func(edge, total float64) int {
		if sum(spans, edge) > total {
			return 1
		}
		return -1
	})
	if i == 0 {
		return 0
	}
	below := edges[i-1]
	fixed, rising := 0.0, 0.0
	for k := range spans {
		if s := &spans[k]; s.weight > 0 && s.low() <= below && below < s.high() {
			fixed += s.from
			rising += s.weight
		} else {
			fixed += s.at(below)
		}
	}
	if i == len(edges) || rising == 0 {
		return below
	}
	return max(below, (total-fixed)/rising)
}
