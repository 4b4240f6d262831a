// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"slices"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// MayFit is a cheap necessary condition, tested before a plan is attempted again: the tasks that a turn must place ask
// for no more than all nodes have idle together, and each fits the largest node. It never refuses what a plan would
// accept; a device that no node lists is left to the plan.
func MayFit(job *model.Job, totals model.Totals) bool {
	if totals.Nodes == 0 {
		return false
	}
	must := max(1, job.Requirement().Tasks)
	var fitting []model.Demand
	count := 0
	for _, d := range job.Pending {
		if listed(d.Request, totals.Allocatable).Exceeding(totals.Largest) == nil {
			fitting = append(fitting, d)
			count += d.Count
		}
	}
	if count < must {
		return false
	}
	return leastSum(fitting, must, totals.Allocatable).Exceeding(totals.Idle()) == nil
}

// leastSum is, for each resource, the least that any choice of n tasks asks for.
func leastSum(demands []model.Demand, n int, names resource.Vector) resource.Vector {
	sum := make(resource.Vector, 0, len(names))
	for _, a := range names {
		slices.SortFunc(demands, func(x, y model.Demand) int {
			return int(min(1, max(-1, x.Request.Get(a.Name)-y.Request.Get(a.Name))))
		})
		total, left := int64(0), n
		for _, d := range demands {
			k := min(left, d.Count)
			total += int64(k) * d.Request.Get(a.Name)
			left -= k
		}
		sum = append(sum, resource.Amount{Name: a.Name, Value: total})
	}
	return sum
}

// listed keeps the resources of v that the nodes list.
func listed(v, names resource.Vector) resource.Vector {
	kept := make(resource.Vector, 0, len(v))
	for _, a := range v {
		if names.Get(a.Name) > 0 {
			kept = append(kept, a)
		}
	}
	return kept
}
