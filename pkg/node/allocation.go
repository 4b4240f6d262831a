// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	corev1 "k8s.io/api/core/v1"
)

// Term is one resource by which an allocation is scored.
type Term struct {
	Name corev1.ResourceName
	// Request is what would be taken on top of what is; at least 0.
	Request int64
	// Weight is how much the resource counts; at least 0.
	Weight int64
	// Least: what stays free counts instead of what is taken.
	Least bool
}

// Allocation scores what would be allocated, or stay free, of a node or of many together: the mean by weight, 0 to 1. It is 0
// when something with a weight does not suffice. What there is none of counts as 0, and its weight counts. amounts returns
// what there is of a resource and what is taken. Source: Volcano pkg/scheduler/plugins/binpack/binpack.go, BinPackingScore.
func Allocation(terms []Term, amounts func(corev1.ResourceName) (allocatable, requested int64)) float64 {
	sum, weights := 0.0, int64(0)
	for _, t := range terms {
		weights += t.Weight
		allocatable, requested := amounts(t.Name)
		if t.Weight == 0 || allocatable == 0 {
			continue
		}
		taken := requested + t.Request
		if taken > allocatable {
			return 0
		}
		if t.Least {
			taken = allocatable - taken
		}
		sum += float64(taken) / float64(allocatable) * float64(t.Weight)
	}
	if weights == 0 {
		return 0
	}
	return sum / float64(weights)
}
