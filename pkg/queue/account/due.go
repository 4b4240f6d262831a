// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package account

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/caldera-scheduler/caldera/pkg/queue/proportion"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// capability is the bound that a queue's object sets. An amount of cpu or memory that is not positive sets none, as in
// Volcano.
func (q *Queue) capability() resource.Portion {
	if q.Spec == nil {
		return nil
	}
	var bound resource.Portion
	for _, a := range q.Spec.Capability {
		if a.Value > 0 || a.Name != corev1.ResourceCPU && a.Name != corev1.ResourceMemory {
			bound = append(bound, resource.Quantity[float64]{Name: a.Name, Value: float64(a.Value)})
		}
	}
	return bound
}

// flatLimits sets what each queue may use of the cluster: what the guarantees of the others leave, up to its capability.
// A resource that no node has may not be used.
func (b *Book) flatLimits() {
	var guaranteed resource.Vector
	for _, q := range b.sorted {
		q.Guarantee = nil
		if q.Spec != nil && !q.faulty() {
			q.Guarantee = q.Spec.Guarantee
			guaranteed.Add(q.Guarantee)
		}
	}
	left := b.total.Beyond(guaranteed)
	for _, q := range b.sorted {
		most := left.Clone()
		most.Add(q.Guarantee)
		q.Capability = resource.Limit{Amounts: q.capability(), Unnamed: resource.Unlimited}
		q.Real = resource.Limit{Amounts: most.Portion(), Unnamed: resource.Nothing}
		q.Real.Tighten(q.Capability.Amounts)
	}
}

// byWeight is Volcano's proportion plugin.
func (b *Book) byWeight() {
	b.flatLimits()
	demands := make([]proportion.Demand, len(b.sorted))
	for i, q := range b.sorted {
		demands[i] = proportion.Demand{Weight: 1, Guarantee: q.Guarantee, Limit: q.Real}
		if q.Spec != nil && !q.faulty() {
			demands[i].Weight, demands[i].Request = int64(q.Spec.Weight), q.Own.Requested
		}
	}
	for i, part := range proportion.Divide(b.total, demands) {
		b.sorted[i].Deserved = part
	}
}

// byObject is Volcano's capacity plugin without hierarchy.
func (b *Book) byObject() {
	b.flatLimits()
	for _, q := range b.sorted {
		var deserved resource.Limit
		if q.Spec != nil && !q.faulty() {
			deserved.Amounts = q.Spec.Deserved.Portion()
			deserved.Tighten(q.Real.Amounts)
		}
		q.Deserved = deserved.Amounts.AtLeast(q.Guarantee)
	}
}

// byTree is Volcano's capacity plugin with hierarchy: what a queue deserves and may use is found from the root down.
func (b *Book) byTree() {
	order := b.ordered()
	for _, q := range order {
		q.Guarantee, q.Deserved = nil, nil
		q.Capability = resource.Limit{Unnamed: resource.Unlimited}
		q.Real = resource.Limit{Unnamed: resource.Unlimited}
		if q.Spec != nil && !q.faulty() {
			q.Guarantee, q.Deserved = q.Spec.Guarantee, q.Spec.Deserved.Portion().AtLeast(q.Spec.Guarantee)
			q.Capability.Amounts = q.capability()
		}
	}
	for _, q := range order {
		if q.Parent == nil && len(q.Children) > 0 {
			sumUp(q)
		}
		if q.Parent == nil {
			q.Real.Tighten(q.Capability.Amounts)
			continue
		}
		q.Capability.Inherit(q.Parent.Capability)
		var guaranteed resource.Vector
		for _, sibling := range q.Parent.Children {
			guaranteed.Add(sibling.Guarantee)
		}
		q.Real = q.Parent.Real.Less(guaranteed)
		q.Real.Raise(q.Guarantee)
		q.Real.Tighten(q.Capability.Amounts)
	}
}

// sumUp gives the root what its children are guaranteed and deserve, whatever its object says.
func sumUp(root *Queue) {
	root.Guarantee, root.Deserved = nil, nil
	for _, child := range root.Children {
		root.Guarantee.Add(child.Guarantee)
		root.Deserved = root.Deserved.Plus(child.Deserved)
	}
	root.Guarantee = root.Guarantee.Clone()
}
