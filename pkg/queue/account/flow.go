// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/caldera-scheduler/caldera/pkg/queue/proportion"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// Flow is what a queue may hold when its siblings leave something of what the queue above them is due; nil where the tree is not looked at. It is never
// to be changed.
//
// A child of the root gets what it deserves, up to what it requests, and its guarantee at least. What a queue gets flows on: each of its children
// gets as much by the same rule, and those that want more share the rest, by what they deserve, up to what they request and may use. What is left
// then goes evenly to those that deserve nothing. Nothing flows from one child of the root to another: nobody was promised it.
//
// For example, of 12 cores of a department one team deserves 8 and is idle. The other one deserves 4 and asks for 10. All 10 flow to it. If the
// first one asks for 8 as well, each gets what it deserves.
func (q *Queue) Flow() resource.Portion {
	if q.of != nil {
		q.of.setFlow()
	}
	return q.flow
}

// Flowing is the part of a need of which the queue's branch below the root is promised anything. Of other resources nothing flows, and nobody
// is bound by that.
func (q *Queue) Flowing(need resource.Vector) resource.Vector {
	top := q
	for top.Parent != nil && top.Parent.Parent != nil {
		top = top.Parent
	}
	return slices.DeleteFunc(need.Clone(), func(a resource.Amount) bool {
		return top.Deserved.Get(a.Name) <= 0 && top.Guarantee.Get(a.Name) <= 0
	})
}

// With returns the queue as if it were due something else. It does not change with the book.
func (q *Queue) With(due resource.Portion) *Queue {
	then := *q
	then.flow, then.of, then.Deserved = q.Flow(), nil, due
	return &then
}

// setFlow finds what flows to each queue.
func (b *Book) setFlow() {
	if b.flowing || b.mode != Hierarchy {
		return
	}
	b.flowing = true
	for _, q := range b.ordered() {
		switch {
		case q.Parent == nil:
			q.flow = nil
		case q.Parent.Parent == nil:
			q.flow = base(q)
		}
		if q.Parent != nil {
			spread(q)
		}
	}
}

// base is what a queue gets of what it deserves.
func base(q *Queue) (base resource.Portion) {
	requested := q.Total.Requested.Counted()
	for _, a := range q.Deserved {
		if least := min(a.Value, float64(requested.Get(a.Name))); least > 0 && a.Name != corev1.ResourcePods {
			base = append(base, resource.Quantity[float64]{Name: a.Name, Value: least})
		}
	}
	return base.AtLeast(q.Guarantee)
}

// spread divides what a queue gets among its children.
func spread(q *Queue) {
	children := slices.DeleteFunc(slices.Clone(q.Children), func(c *Queue) bool {
		c.flow = nil
		return !c.counts()
	})
	for _, c := range children {
		c.flow = base(c)
	}
	for _, a := range q.flow {
		parts := make([]proportion.Part, len(children))
		for i, c := range children {
			parts[i] = partOf(c, a.Name)
		}
		got := proportion.Rise(a.Value, parts)
		// What is left then is nobody's who deserves anything.
		for i := range parts {
			parts[i].Least, parts[i].Weight = got[i], 1
		}
		for i, value := range proportion.Rise(a.Value, parts) {
			raise(children[i], a.Name, value)
		}
	}
}

// partOf is what a queue gets of a resource, and may get more.
func partOf(q *Queue, name corev1.ResourceName) proportion.Part {
	most := float64(q.Total.Requested.Counted().Get(name))
	if bound, limited := q.Real.Of(name); limited {
		most = min(most, bound)
	}
	return proportion.Part{Weight: q.Deserved.Get(name), Least: q.flow.Get(name), Most: most}
}

// raise has more flow to a queue than it got.
func raise(q *Queue, name corev1.ResourceName, value float64) {
	if value > q.flow.Get(name) {
		q.flow = append(slices.DeleteFunc(q.flow, func(a resource.Quantity[float64]) bool { return a.Name == name }),
			resource.Quantity[float64]{Name: name, Value: value})
		slices.SortFunc(q.flow, func(a, b resource.Quantity[float64]) int { return cmp.Compare(a.Name, b.Name) })
	}
}
