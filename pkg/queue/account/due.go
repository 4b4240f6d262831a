// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/queue/proportion"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// counts reports whether the queue exists and is not left out.
func (q *Queue) counts() bool { return q.Spec != nil && !q.faulty() }

// ownBounds is what a queue's object bounds. An amount of cpu or memory that is not positive bounds nothing, as in
// Volcano.
func (q *Queue) ownBounds() resource.Portion {
	if q.Spec == nil {
		return nil
	}
	var bounds resource.Portion
	for _, a := range q.Spec.Capability {
		if a.Value > 0 || a.Name != corev1.ResourceCPU && a.Name != corev1.ResourceMemory {
			bounds = append(bounds, resource.Quantity[float64]{Name: a.Name, Value: float64(a.Value)})
		}
	}
	return bounds
}

// setLimits finds what is set aside for each queue and what it may use. Neither depends on jobs.
func (b *Book) setLimits() {
	switch b.mode {
	case Undivided:
	case Proportion, Capacity:
		b.flatLimits()
	case Hierarchy:
		b.treeLimits()
	}
}

// adopt takes the guarantee and the capability of the queue's object; none when there is no object or it is left out.
func (q *Queue) adopt() {
	q.Guarantee, q.Capability = nil, resource.Limit{Unnamed: resource.Unlimited}
	if q.counts() {
		q.Guarantee, q.Capability.Amounts = q.Spec.Guarantee, slices.Clone(q.bounds)
	}
}

// flatLimits sets what each queue may use of the cluster: what the guarantees of the others leave, up to its capability.
// A resource that no node has may not be used. Devices, which nodes do not count, are limited by capability only.
func (b *Book) flatLimits() {
	var guaranteed resource.Vector
	for _, q := range b.sorted {
		q.adopt()
		guaranteed.Add(q.Guarantee)
	}
	left := b.total.Beyond(guaranteed)
	for _, q := range b.sorted {
		most := left.Clone()
		most.Add(q.Guarantee.WithoutDevices())
		q.Real = resource.Limit{Amounts: most.Portion(), Unnamed: resource.OnlyDevices}
		q.Real.Tighten(q.Capability.Amounts)
	}
}

// treeLimits sets what each queue may use from the root down: of what its parent may, what the guarantees of its siblings
// leave, up to its capability. The cluster is no limit.
func (b *Book) treeLimits() {
	order := b.ordered()
	for _, q := range order {
		q.adopt()
		if q.Parent == nil {
			q.Real = q.Capability.Clone()
		} else {
			q.Capability.Inherit(q.Parent.Capability)
		}
	}
	for _, parent := range order {
		if parent.Leaf() {
			continue
		}
		var guaranteed resource.Vector
		for _, q := range parent.Children {
			guaranteed.Add(q.Guarantee)
		}
		if parent.Parent == nil {
			// The root sets aside what its children do, whatever its object says.
			parent.Guarantee = guaranteed
		}
		left := parent.Real.Less(guaranteed)
		for _, q := range parent.Children {
			q.Real = left.Plus(q.Guarantee)
			q.Real.Tighten(q.Capability.Amounts)
		}
	}
}

// setDue finds what each queue is due, and its share of that. It reports whether some queue is due more than before.
func (b *Book) setDue() (grown, shrunk bool) {
	before := make([]resource.Portion, len(b.sorted))
	for i, q := range b.sorted {
		before[i] = q.Deserved
	}
	switch b.mode {
	case Undivided:
	case Proportion:
		b.byWeight()
	case Capacity:
		b.byObject()
	case Hierarchy:
		b.byTree()
	}
	for i, q := range b.sorted {
		q.Share = q.share(b.mode)
		q.LatelyShare = b.shareLately(q)
		grown = grown || !before[i].Covers(q.Deserved)
		shrunk = shrunk || !q.Deserved.Covers(before[i])
	}
	b.shifts.drop()
	return grown, shrunk
}

// byWeight is Volcano's proportion plugin. Queues without jobs take no part: what they are guaranteed bounds the others
// (flatLimits), but is not divided. Nor are devices, of which nodes do not say how many there are.
func (b *Book) byWeight() {
	queues, demands := b.demands()
	for _, q := range b.sorted {
		q.Deserved = nil
	}
	for i, part := range proportion.Divide(b.divided(), demands) {
		queues[i].Deserved = part
	}
}

// demands are the queues that the cluster is divided among, and what they ask for.
func (b *Book) demands() ([]*Queue, []proportion.Demand) {
	queues := make([]*Queue, 0, len(b.sorted))
	demands := make([]proportion.Demand, 0, len(b.sorted))
	for _, q := range b.sorted {
		if q.counts() && q.Own.Jobs > 0 {
			queues = append(queues, q)
			demands = append(demands, proportion.Demand{
				Weight: int64(q.Spec.Weight), Request: q.Own.Requested, Guarantee: q.Guarantee.WithoutDevices(), Limit: q.Real,
				Lately: b.partLately(q), Pull: b.recency.Pull,
			})
		}
	}
	return queues, demands
}

// DueIf tells what queues would be due if the jobs of one asked for so much more. Only where the cluster is divided by
// weight does that depend on what they ask for.
func (b *Book) DueIf(asking *Queue, more resource.Vector) func(*Queue) resource.Portion {
	if b.mode != Proportion || more.IsZero() {
		return func(q *Queue) resource.Portion { return q.Deserved }
	}
	queues, demands := b.demands()
	for i, q := range queues {
		if q == asking {
			demands[i].Request = demands[i].Request.Clone()
			demands[i].Request.Add(more)
		}
	}
	due := make([]resource.Portion, len(b.sorted))
	for i, part := range proportion.Divide(b.divided(), demands) {
		due[queues[i].place] = part
	}
	return func(q *Queue) resource.Portion { return due[q.place] }
}

// DueMayShrink reports whether a queue may come to be due less than it is now because others ask for more, or held less of late. Only where the
// cluster is divided by weight does that depend on them. That somebody submits jobs to the root of all queues is not expected.
func (b *Book) DueMayShrink(q *Queue) bool {
	if b.mode != Proportion {
		return false
	}
	var demands []proportion.Demand
	place := -1
	for _, other := range b.sorted {
		if !other.counts() || other.Name == model.RootQueue && other.Own.Jobs == 0 {
			continue
		}
		if other == q {
			place = len(demands)
		}
		demands = append(demands, proportion.Demand{
			Weight: int64(other.Spec.Weight), Request: b.divided(), Guarantee: other.Guarantee.WithoutDevices(), Limit: other.Real,
		})
	}
	switch {
	case place < 0:
		return true
	case len(demands) == 1:
		return false
	case b.recency.HalfLife > 0:
		return true
	}
	return !proportion.Divide(b.divided(), demands)[place].Covers(q.Deserved)
}

// byObject is Volcano's capacity plugin without hierarchy: what the object says, bounded by what the queue may use.
func (b *Book) byObject() {
	for _, q := range b.sorted {
		q.Deserved = nil
		if q.counts() {
			due := resource.Limit{Amounts: q.Spec.Deserved.Portion()}
			due.Tighten(q.Real.Amounts)
			q.Deserved = positive(due.Amounts).AtLeast(q.Guarantee)
		}
	}
}

// byTree is Volcano's capacity plugin with hierarchy: what the object says, and for the root what its children deserve.
func (b *Book) byTree() {
	for _, q := range b.sorted {
		q.Deserved = nil
		if q.counts() {
			q.Deserved = positive(q.Spec.Deserved.Portion()).AtLeast(q.Guarantee)
		}
	}
	for _, root := range b.sorted {
		if root.Parent == nil && !root.Leaf() {
			root.Deserved = nil
			for _, q := range root.Children {
				root.Deserved = root.Deserved.Plus(q.Deserved)
			}
		}
	}
}

// positive leaves out resources of which there is nothing.
func positive(p resource.Portion) resource.Portion {
	return slices.DeleteFunc(p, func(a resource.Quantity[float64]) bool { return a.Value <= 0 })
}
