// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// faulty reports whether the queue is left out of scheduling.
func (q *Queue) faulty() bool { return q.Fault != (model.Reason{}) }

// link finds each queue's parent, and the faults that leave a queue and its descendants out.
func (b *Book) link() {
	for _, q := range b.sorted {
		q.checkAmounts()
		b.findParent(q)
	}
	b.cutCycles()
	for _, q := range b.sorted {
		if q.Parent != nil {
			q.Parent.Children = append(q.Parent.Children, q)
		}
		for above := q.Parent; above != nil; above = above.Parent {
			q.depth++
		}
	}
	if b.mode != Hierarchy {
		return
	}
	// What a faulty queue was promised is not held against its parent: the rest is judged as if it did not exist.
	order := b.ordered()
	for _, q := range order {
		q.checkCapability()
	}
	for _, q := range slices.Backward(order) {
		q.checkChildren()
	}
	for _, q := range order {
		q.inheritFault()
	}
}

// findParent sets a queue's parent: the root when it names none.
func (b *Book) findParent(q *Queue) {
	if q.Spec == nil || q.Name == model.RootQueue {
		return
	}
	name := q.Spec.Parent
	if name == "" {
		name = model.RootQueue
	}
	switch parent := b.queues[name]; {
	case parent != nil && (parent.Spec != nil || b.mode == Hierarchy && name == model.RootQueue):
		q.Parent = parent
	case b.mode == Hierarchy:
		q.blame("spec.parent", "its parent %q does not exist: create it, or name another parent", name)
	}
}

// blame records a fault of the queue, unless it has one.
func (q *Queue) blame(field, format string, args ...any) {
	if !q.faulty() {
		q.Fault = model.Reason{
			Kind: model.QueueMisconfigured, Subject: q.Name + " " + field,
			Message: fmt.Sprintf("queue %q is left out: ", q.Name) + fmt.Sprintf(format, args...),
		}
	}
}

// cutCycles takes queues that are their own ancestors out of the tree.
func (b *Book) cutCycles() {
	var circling []*Queue
	for _, q := range b.sorted {
		steps := 0
		for above := q.Parent; above != nil && steps <= len(b.sorted); above = above.Parent {
			if above == q {
				circling = append(circling, q)
				break
			}
			steps++
		}
	}
	for _, q := range circling {
		q.Parent = nil
		if b.mode == Hierarchy {
			q.blame("spec.parent", "its ancestors lead back to itself, by parent %q: name another parent", q.Spec.Parent)
		}
	}
}

// checkAmounts finds what contradicts itself within one object.
func (q *Queue) checkAmounts() {
	if q.Spec == nil {
		return
	}
	for _, field := range []struct {
		name    string
		amounts resource.Vector
	}{
		{"spec.capability", q.Spec.Capability}, {"spec.guarantee.resource", q.Spec.Guarantee}, {"spec.deserved", q.Spec.Deserved},
	} {
		for _, a := range field.amounts {
			if a.Value < 0 {
				q.blame(field.name, "%s of %s is %s: set it to 0 or more", field.name, a.Name, a.Format())
			}
		}
	}
	if a, bound, over := firstOver(q.Spec.Guarantee, q.bounds); over {
		q.blame("spec.guarantee.resource", "it is guaranteed %s of %s, more than its capability of %s: lower the one or raise the other",
			a.Format(), a.Name, bound.Format())
	}
}

// checkCapability finds a queue that may use more than a queue above it.
func (q *Queue) checkCapability() {
	for above := q.Parent; above != nil; above = above.Parent {
		if above.faulty() {
			continue
		}
		if a, bound, over := firstOver(q.capability(), above.bounds); over {
			whose := "its parent's"
			if above != q.Parent {
				whose = fmt.Sprintf("queue %q's", above.Name)
			}
			q.blame("spec.capability", "its capability of %s is %s, more than %s %s: lower it", a.Name, a.Format(), whose, bound.Format())
		}
	}
}

// capability is what the queue's object says.
func (q *Queue) capability() resource.Vector {
	if q.Spec == nil {
		return nil
	}
	return q.Spec.Capability
}

// checkChildren finds children that together are promised more than the queue is. The root promises what its children
// say. A resource that the queue does not name promises nothing either way.
func (q *Queue) checkChildren() {
	if q.Spec == nil || q.Name == model.RootQueue || q.Leaf() {
		return
	}
	var guaranteed, deserved resource.Vector
	for _, child := range q.Children {
		if !child.faulty() {
			guaranteed.Add(child.Spec.Guarantee)
			deserved.Add(child.Spec.Deserved)
		}
	}
	if a, bound, over := firstOver(guaranteed, q.Spec.Guarantee.Portion()); over {
		q.blame("spec.guarantee.resource", "its children are guaranteed %s of %s together, and it only %s: lower theirs or raise its own",
			a.Format(), a.Name, bound.Format())
	}
	if a, bound, over := firstOver(deserved, q.Spec.Deserved.Portion()); over {
		q.blame("spec.deserved", "its children deserve %s of %s together, and it only %s: lower theirs or raise its own",
			a.Format(), a.Name, bound.Format())
	}
}

// inheritFault leaves a queue out when its parent is. A fault of the root, whose promises are those of its children, is
// nobody else's.
func (q *Queue) inheritFault() {
	if q.Parent != nil && q.Parent.faulty() && !q.faulty() && q.Parent.Name != model.RootQueue {
		q.Fault = q.Parent.Fault
	}
}

// firstOver returns the first amount that is above a bound, with the bound. Resources without a bound are not.
func firstOver(amounts resource.Vector, bounds resource.Portion) (over resource.Amount, bound resource.Quantity[float64], found bool) {
	for _, a := range amounts {
		for _, limit := range bounds {
			if limit.Name == a.Name && float64(a.Value) > limit.Value && a.Name != corev1.ResourcePods {
				return a, limit, true
			}
		}
	}
	return over, bound, false
}
