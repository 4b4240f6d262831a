// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"fmt"

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
	}
	for _, q := range b.sorted {
		if q.Spec == nil || q.Name == model.RootQueue {
			continue
		}
		switch parent := b.queues[parentOf(q.Spec)]; {
		case parent != nil && parent.Spec != nil:
			q.Parent = parent
		case b.mode == Hierarchy:
			q.blame("spec.parent", fmt.Sprintf("its parent %q does not exist: create it, or name another parent", parentOf(q.Spec)))
		}
	}
	b.cutCycles()
	for _, q := range b.sorted {
		if q.Parent != nil {
			q.Parent.Children = append(q.Parent.Children, q)
		}
	}
	b.setDepths()
	if b.mode != Hierarchy {
		return
	}
	for _, q := range b.ordered() {
		q.checkChildren()
		q.checkParent()
	}
}

// parentOf is the name of a queue's parent; the root's when it names none.
func parentOf(spec *model.Queue) string {
	if spec.Parent == "" {
		return model.RootQueue
	}
	return spec.Parent
}

// blame records a fault of the queue, unless it has one.
func (q *Queue) blame(field, what string) {
	if !q.faulty() {
		q.Fault = model.Reason{Kind: model.QueueMisconfigured, Subject: q.Name + " " + field, Message: fmt.Sprintf("queue %q is left out: %s", q.Name, what)}
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
		if b.mode == Hierarchy {
			q.blame("spec.parent", fmt.Sprintf("its ancestors lead back to itself, by parent %q: name another parent", q.Spec.Parent))
		}
	}
	for _, q := range circling {
		q.Parent = nil
	}
}

func (b *Book) setDepths() {
	for _, q := range b.sorted {
		q.depth = 0
		for above := q.Parent; above != nil; above = above.Parent {
			q.depth++
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
				q.blame(field.name, fmt.Sprintf("%s of %s is %s: set it to 0 or more", field.name, a.Name, a.Format()))
			}
		}
	}
	if a, bound, over := firstOver(q.Spec.Guarantee, q.capability()); over {
		q.blame("spec.guarantee.resource", fmt.Sprintf("it is guaranteed %s of %s, more than its capability of %s: lower the one or raise the other",
			a.Format(), a.Name, bound))
	}
}

// checkChildren finds children that together are promised more than the queue is. The root promises what its children
// say. A resource that the queue does not name promises nothing either way.
func (q *Queue) checkChildren() {
	if q.Spec == nil || q.Name == model.RootQueue || q.Leaf() {
		return
	}
	var guaranteed, deserved resource.Vector
	for _, child := range q.Children {
		guaranteed.Add(child.Spec.Guarantee)
		deserved.Add(child.Spec.Deserved)
	}
	if a, bound, over := firstOver(guaranteed, q.Spec.Guarantee.Portion()); over {
		q.blame("spec.guarantee.resource", fmt.Sprintf("its children are guaranteed %s of %s together, and it only %s: lower theirs or raise its own",
			a.Format(), a.Name, bound))
	}
	if a, bound, over := firstOver(deserved, q.Spec.Deserved.Portion()); over {
		q.blame("spec.deserved", fmt.Sprintf("its children deserve %s of %s together, and it only %s: lower theirs or raise its own",
			a.Format(), a.Name, bound))
	}
}

// checkParent passes on the parent's fault, and finds a queue that may use more than its parent.
func (q *Queue) checkParent() {
	if q.Parent == nil {
		return
	}
	if q.Parent.faulty() {
		if !q.faulty() {
			q.Fault = q.Parent.Fault
		}
		return
	}
	bound := q.Parent.capability()
	if a, bound, over := firstOver(q.Spec.Capability, bound); over {
		q.blame("spec.capability", fmt.Sprintf("its capability of %s is %s, more than its parent's %s: lower it",
			a.Name, a.Format(), bound))
	}
}

// firstOver returns the first amount that is above a bound, with the bound. Resources without a bound are not.
func firstOver(amounts resource.Vector, bounds resource.Portion) (over resource.Amount, bound string, found bool) {
	for _, a := range amounts {
		for _, limit := range bounds {
			if limit.Name == a.Name && float64(a.Value) > limit.Value && a.Name != corev1.ResourcePods {
				return a, limit.Format(), true
			}
		}
	}
	return resource.Amount{}, "", false
}
