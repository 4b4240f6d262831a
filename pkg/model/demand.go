// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"cmp"
	"slices"

	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// LeastSum is, for each resource, the least that any choice of n tasks asks for. The demands may be reordered. Fewer
// than n tasks ask for what all of them do.
func LeastSum(demands []Demand, n int) resource.Vector {
	if total, ok := equalSum(demands, n); ok {
		return total
	}
	var names resource.Vector
	for _, d := range demands {
		names.Max(d.Charge)
	}
	for i := range names {
		name := names[i].Name
		slices.SortFunc(demands, func(x, y Demand) int { return cmp.Compare(x.Charge.Get(name), y.Charge.Get(name)) })
		total, left := int64(0), n
		for _, d := range demands {
			k := min(left, d.Count)
			total = resource.PlusTimes(total, d.Charge.Get(name), int64(k))
			left -= k
		}
		names[i].Value = total
	}
	return names
}

// equalSum is the least sum where all tasks ask for the same, as those do that differ in labels only.
func equalSum(demands []Demand, n int) (total resource.Vector, ok bool) {
	tasks := 0
	for i := range demands {
		if !slices.Equal(demands[i].Charge, demands[0].Charge) {
			return nil, false
		}
		tasks += demands[i].Count
	}
	if len(demands) > 0 {
		total.AddTimes(demands[0].Charge, int64(min(n, tasks)))
	}
	return total, true
}

// Need is, for each resource, the least that the job's next turn asks for.
func (j *Job) Need() resource.Vector {
	n := max(1, j.Requirement().Tasks)
	if total, ok := equalSum(j.Pending, n); ok {
		return total
	}
	return LeastSum(slices.Clone(j.Pending), n)
}

// minimum is what the job needs to start, as its PodGroup says or, where it does not, as its own pods do: what is placed
// already, and what the rest of the minimum asks for. A PodGroup that says nothing of devices has those that its pods do, and so has one whose pods
// share some: who shares what it cannot say.
func (j *Job) minimum() resource.Vector {
	if j.Group == nil || j.Group.MinResources == nil {
		return j.minimumOfPods()
	}
	said := j.Group.MinResources
	if j.Usage.Requested.Devices() == nil || said.Devices() != nil && !j.Usage.Requested.SharesDevices() {
		return said
	}
	said = said.WithoutDevices().Clone()
	said.Add(j.minimumOfPods().Devices())
	return said
}

func (j *Job) minimumOfPods() resource.Vector {
	least := j.Usage.Allocated.Clone()
	if !j.Started() && len(j.Pending) > 0 {
		least.Add(j.Need())
	}
	return least
}

// Claim is what admitting the job promises it: its minimum, less what it has placed already and what waits behind
// scheduling gates. Source: Volcano's GetInqueueResource and DeductSchGatedResources (reference section 2.6), which know
// only minResources.
func (j *Job) Claim() resource.Vector {
	claim := j.minimum().Clone()
	for i := range claim {
		name := claim[i].Name
		claim[i].Value = max(0, max(0, claim[i].Value-j.Usage.Allocated.Get(name))-j.Usage.Gated.Get(name))
	}
	return claim
}

// Inqueue is the claim of a job that was admitted and has not placed all of its minimum; nil for others, and for one that can start on no
// node: what was promised to it is of no use to it, and held against others would keep them waiting for good.
func (j *Job) Inqueue() resource.Vector {
	if !j.Admitted || j.NeverFits || j.Over() || j.Counts.Total() > 0 && j.Counts.ByStatus[Pending] == 0 {
		return nil
	}
	return j.Claim()
}

// Elastic is what the job has placed beyond its minimum.
func (j *Job) Elastic() resource.Vector { return j.Usage.Allocated.Beyond(j.minimum()) }
