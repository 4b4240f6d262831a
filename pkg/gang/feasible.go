// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// MayFit is a cheap necessary condition, tested before a plan is attempted again: the tasks that a turn must place ask
// for no more than is idle together on the nodes that some task may go to, and each fits the largest node. It never refuses what a plan would
// accept; a device that no node lists is left to the plan.
func MayFit(job *model.Job, totals model.Totals) bool {
	if totals.Nodes == 0 {
		return false
	}
	must := max(1, job.Requirement().Tasks)
	var fitting []model.Demand
	count := 0
	for _, d := range job.Pending {
		if !exceeds(d.Request, totals.Largest) {
			fitting = append(fitting, d)
			count += d.Count
		}
	}
	if count < must {
		return false
	}
	return listed(model.LeastSum(fitting, must), totals.Allocatable).Exceeding(totals.IdleForTasks()) == nil
}

// NeverFits reports whether a job cannot start however empty the nodes are: too many of its pods ask for more than the largest node has.
// A job whose pods are not all there is not judged yet. It never says so of a job that a plan would place on empty nodes; a device that
// no node lists is left to the plan.
func NeverFits(job *model.Job, totals model.Totals) bool {
	if totals.Nodes == 0 || job.Counts.Total() < job.Min() {
		return false
	}
	small := job.Counts.ByStatus[model.Pending]
	for _, d := range job.Pending {
		if exceeds(d.Request, totals.Largest) {
			small -= d.Count
		}
	}
	return small < job.Requirement().Tasks
}

// exceeds reports whether a request is for more of a resource than any node has that lists it.
func exceeds(request, largest resource.Vector) bool {
	for _, a := range request {
		if most := largest.Get(a.Name); most > 0 && a.Value > most {
			return true
		}
	}
	return false
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
