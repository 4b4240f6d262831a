// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"cmp"
	"slices"

	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// Copy is the accounts of all queues as of when it was made, for decisions that play through what would be held if. What
// queues are due, what flows to them, and their shares stay as they were; of what they use, only what is held is copied. It is not safe
// for concurrent use, but does not look at the Book any more.
type Copy struct {
	mode   Mode
	queues []Queue
}

// Copy returns a copy of the accounts. Update must have been called since the last change.
func (b *Book) Copy() *Copy {
	b.setFlow()
	c := &Copy{mode: b.mode, queues: make([]Queue, len(b.sorted))}
	amounts := 0
	for _, q := range b.sorted {
		amounts += len(q.usage(b.mode).Allocated)
	}
	// All vectors lie in one array, and all lists of children in another.
	all, children := make(resource.Vector, 0, amounts), make([]*Queue, 0, len(b.sorted))
	for i, q := range b.sorted {
		from := len(all)
		all = append(all, q.usage(b.mode).Allocated...)
		to := &c.queues[i]
		*to = Queue{
			Name: q.Name, Spec: q.Spec, depth: q.depth, place: i, bounds: q.bounds, Deserved: q.Deserved, flow: q.flow,
			Guarantee: q.Guarantee, Capability: q.Capability, Real: q.Real, Share: q.Share, LatelyShare: q.LatelyShare, Fault: q.Fault,
		}
		to.usage(b.mode).Allocated = all[from:len(all):len(all)]
		if q.Parent != nil {
			to.Parent = &c.queues[q.Parent.place]
		}
		first := len(children)
		for _, child := range q.Children {
			children = append(children, &c.queues[child.place])
		}
		to.Children = children[first:len(children):len(children)]
	}
	return c
}

// Mode returns how what queues are due was found.
func (c *Copy) Mode() Mode { return c.mode }

// Queue returns the account of a queue, or nil.
func (c *Copy) Queue(name string) *Queue {
	i, ok := slices.BinarySearchFunc(c.queues, name, func(q Queue, name string) int { return cmp.Compare(q.Name, name) })
	if !ok {
		return nil
	}
	return &c.queues[i]
}

// Held is what a queue holds by its limits and shares: where the tree is looked at, with those below it.
func (c *Copy) Held(q *Queue) resource.Vector { return q.usage(c.mode).Allocated }

// Hold has a queue hold n times so much more, and, where the tree is looked at, those above it.
func (c *Copy) Hold(q *Queue, amounts resource.Vector, n int64) {
	if c.mode != Hierarchy {
		q.Own.Allocated.AddTimes(amounts, n)
		return
	}
	for ; q != nil; q = q.Parent {
		q.Total.Allocated.AddTimes(amounts, n)
	}
}

// Distance is how far up from a queue one has to go to be above another, the parent being no way at all: 0 for the queue
// itself, its siblings and what is below those.
func (q *Queue) Distance(to *Queue) int {
	x, _ := Branches(q, to)
	return q.depth - x.depth
}

// Apart returns the queue and those above it, up to where the other queue is below too.
func (q *Queue) Apart(other *Queue) (apart []*Queue) {
	for ; q != nil && !q.Above(other); q = q.Parent {
		apart = append(apart, q)
	}
	return apart
}

// Above reports whether a queue is this one or below it.
func (q *Queue) Above(of *Queue) bool {
	for of != nil && of.depth > q.depth {
		of = of.Parent
	}
	return of == q
}

// Ancestor returns the queue so many levels up, or nil.
func (q *Queue) Ancestor(levels int) *Queue {
	for ; levels > 0 && q != nil; levels-- {
		q = q.Parent
	}
	return q
}
