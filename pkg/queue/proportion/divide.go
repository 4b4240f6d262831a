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
		for i := range demands {
			spans[i] = demands[i].span(a.Name)
		}
		at := share(float64(whole), weights, spans, edges)
		for i, s := range spans {
			if value := s.at(at); value > 0 || whole != 0 {
				parts[i] = append(parts[i], resource.Quantity[float64]{Name: a.Name, Value: value})
			}
		}
	}
	return parts
}

func (d *Demand) weight() float64 { return float64(max(1, d.Weight)) }

func (d *Demand) span(name corev1.ResourceName) span {
	most := float64(d.Request.Get(name))
	if bound, limited := d.Limit.Of(name); limited {
		most = min(most, bound)
	}
	least := max(0, float64(d.Guarantee.Get(name)))
	return span{weight: d.weight(), least: least, most: max(most, least)}
}

// span is what a queue may get of one resource: from + weight x level, within least and most. Invariant: 0 <= from,
// 0 <= least <= most, weight > 0.
type span struct{ weight, from, least, most float64 }

// low and high are the levels below and above which the part does not change.
func (s *span) low() float64  { return (s.least - s.from) / s.weight }
func (s *span) high() float64 { return (s.most - s.from) / s.weight }

// at is the queue's part at a level. At the levels low and high it is exactly least and most.
func (s *span) at(level float64) float64 {
	switch {
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
func share(total, weights float64, spans []span, edges []float64) float64 {
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
		edges = append(edges, spans[i].low(), spans[i].high())
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
		if s := &spans[k]; s.low() <= below && below < s.high() {
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
