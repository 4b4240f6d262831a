// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fragment measures what is left of the GPUs of a node and is of no use: fragmentation as in "Beware of Fragmentation: Scheduling GPU-Sharing
// Workloads with Fragmentation Gradient Descent" (Weng et al., USENIX ATC 2023).
package fragment

import (
	"cmp"
	"slices"
	"strings"
)

// Whole is a GPU, in the unit of this package: thousandths.
const Whole = 1000

// Demand is the CPU and the GPUs that a pod asks for.
type Demand struct {
	MilliCPU int64
	// GPUs is how many it asks for, Milli how much of each, in thousandths; both 0: none.
	GPUs, Milli int
	// Models are those of GPUs that it accepts, joined with "|"; empty: all.
	Models string
}

// kind is a demand, and which part of the pods has it.
type kind struct {
	Demand
	models []string
	part   float64
}

// Kinds are the demands of usual pods, and how usual each is.
type Kinds struct{ kinds []kind }

// usual is the part of all pods that kinds are to make up.
const usual = 0.95

// KindsOf are the most frequent of some demands, which make up 95 % of them; of equal frequency the larger one is first. Counts says how often there
// is each.
func KindsOf(counts map[Demand]int) Kinds {
	var all []kind
	pods := 0
	for d, n := range counts {
		k := kind{Demand: d, part: float64(n)}
		if d.Models != "" {
			k.models = strings.Split(d.Models, "|")
		}
		all = append(all, k)
		pods += n
	}
	slices.SortFunc(all, func(a, b kind) int {
		return -cmp.Or(cmp.Compare(a.part, b.part), cmp.Compare(a.MilliCPU, b.MilliCPU), cmp.Compare(a.Milli, b.Milli),
			cmp.Compare(a.GPUs, b.GPUs), cmp.Compare(a.Models, b.Models))
	})
	var k Kinds
	sum := 0.0
	for _, one := range all {
		if sum >= usual*float64(pods) {
			break
		}
		k.kinds = append(k.kinds, one)
		sum += one.part
	}
	for i := range k.kinds {
		k.kinds[i].part /= sum
	}
	return k
}

// Len is how many kinds there are.
func (k Kinds) Len() int { return len(k.kinds) }

// Lost is what the average pod could not use of what is left on a node, in thousandths of a GPU: all of it where the pod asks for no GPU or does not
// fit, else the pieces that are too small for it. Left is what is left of each GPU.
func (k Kinds) Lost(milliCPU int64, left []int, model string) float64 {
	all := 0
	for _, l := range left {
		all += l
	}
	lost := 0.0
	for i := range k.kinds {
		lost += k.kinds[i].part * float64(k.kinds[i].unused(milliCPU, left, model, all))
	}
	return lost
}

// unused is what a pod of a kind could not use.
func (k *kind) unused(milliCPU int64, left []int, model string, all int) int {
	if k.GPUs == 0 || milliCPU < k.MilliCPU || len(k.models) > 0 && !slices.Contains(k.models, model) {
		return all
	}
	large, small := 0, 0
	for _, l := range left {
		if l >= k.Milli {
			large++
		} else {
			small += l
		}
	}
	if large < k.GPUs {
		return all
	}
	return small
}
