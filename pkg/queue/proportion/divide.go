// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package proportion divides a cluster among queues by weight.
package proportion

import (
	"cmp"
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
	// Guarantee is what it gets at least, whatever it requests.
	Guarantee resource.Vector
	// Limit is what it gets at most, its guarantee aside.
	Limit resource.Limit
}

// Divide shares total among queues by weighted max-min fairness. For each resource there is one level such that every
// queue gets weight x level, but no more than it requests and its limit allows, and no less than its guarantee; the
// level is the highest at which the parts still sum up to total. The result names every resource of total and of the
// queue's guarantee, and is in the order of the demands.
//
// The level is what Volcano's rounds of water filling converge to (pkg/scheduler/plugins/proportion/proportion.go),
// with two differences: rounds end early when only pod slots are left to share, and can hand out more than total when
// guarantees lift some queues above their part. Here the sum never exceeds total, unless guarantees alone do.
func Divide(total resource.Vector, demands []Demand) []resource.Portion {
	names := total.Clone()
	for _, d := range demands {
		for _, a := range d.Guarantee {
			if i, ok := slices.BinarySearchFunc(names, a.Name, byName); !ok {
				names = slices.Insert(names, i, resource.Amount{Name: a.Name})
			}
		}
	}
	parts := make([]resource.Portion, len(demands))
	for i := range parts {
		parts[i] = make(resource.Portion, 0, len(names))
	}
	spans := make([]span, len(demands))
	edges := make([]float64, 0, 2*len(demands))
	for _, whole := range names {
		for i := range demands {
			spans[i] = demands[i].span(whole.Name)
		}
		at := level(float64(whole.Value), spans, edges)
		for i, s := range spans {
			if value := s.at(at); value > 0 || total.Get(whole.Name) != 0 {
				parts[i] = append(parts[i], resource.Quantity[float64]{Name: whole.Name, Value: value})
			}
		}
	}
	return parts
}

func byName(a resource.Amount, name corev1.ResourceName) int { return cmp.Compare(a.Name, name) }

// span is what a queue may get of one resource. Invariant: 0 <= least <= most, weight >= 1.
type span struct{ weight, least, most float64 }

func (d *Demand) span(name corev1.ResourceName) span {
	most := float64(d.Request.Get(name))
	if bound, limited := d.Limit.Of(name); limited {
		most = min(most, bound)
	}
	least := max(0, float64(d.Guarantee.Get(name)))
	return span{weight: float64(max(1, d.Weight)), least: least, most: max(most, least)}
}

// at is the queue's part at a level.
func (s span) at(level float64) float64 { return min(s.most, max(s.least, s.weight*level)) }

// level finds the highest level at which the parts sum up to no more than total. Between two neighbouring edges, where
// some queue reaches its least or most, the sum grows linearly. The edges are kept in the given buffer.
func level(total float64, spans []span, edges []float64) float64 {
	edges = edges[:0]
	for _, s := range spans {
		edges = append(edges, s.least/s.weight, s.most/s.weight)
	}
	slices.Sort(edges)
	sum := func(level float64) float64 {
		sum := 0.0
		for _, s := range spans {
			sum += s.at(level)
		}
		return sum
	}
	// The first edge at which the sum is too large; the level lies before it.
	i, _ := slices.BinarySearchFunc(edges, total, func(edge, total float64) int {
		if sum(edge) > total {
			return 1
		}
		return -1
	})
	switch i {
	case len(edges):
		if i == 0 {
			return 0
		}
		return edges[i-1]
	case 0:
		return 0
	}
	from := edges[i-1]
	fixed, rising := 0.0, 0.0
	for _, s := range spans {
		if s.least <= s.weight*from && s.weight*from < s.most {
			rising += s.weight
		} else {
			fixed += s.at(from)
		}
	}
	if rising == 0 {
		return from
	}
	return max(from, (total-fixed)/rising)
}
