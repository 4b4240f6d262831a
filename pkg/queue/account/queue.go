// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package account keeps what each queue holds, asks for and is due. It follows the jobs one by one: a job that changes
// touches its queue and that queue's ancestors, nothing else.
package account

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// Mode says how what a queue is due is found.
type Mode uint8

// The modes. A scheduler has one.
const (
	// Undivided: queues are due nothing and not limited (neither proportion nor capacity is configured).
	Undivided Mode = iota
	// Proportion divides the cluster by weight among the queues that ask for something.
	Proportion
	// Capacity gives each queue what its object says it deserves; the tree of queues is not looked at.
	Capacity
	// Hierarchy is Capacity at every level of the tree of queues.
	Hierarchy
)

// Usage is what jobs of a queue hold, ask for and keep others from.
type Usage struct {
	// Allocated is what tasks on nodes hold; Requested is that and what waiting tasks ask for.
	Allocated, Requested resource.Vector
	// Inqueue is what jobs that were admitted have not placed yet of their minimums; Elastic what is placed beyond them.
	Inqueue, Elastic resource.Vector
	// Stalled is the part of Inqueue of jobs that nodes have refused for long, or that have failed.
	Stalled resource.Vector
	// Claimed is kept for waiting tasks that were let through the queue's gate.
	Claimed resource.Vector
	// Jobs is the number of jobs, Groups those of them that are PodGroups in each phase.
	Jobs   int
	Groups Groups
}

// Groups are numbers of PodGroups by phase.
type Groups struct{ Pending, Inqueue, Running, Unknown, Completed int }

func (g *Groups) of(phase model.Phase) *int {
	switch phase {
	case model.PhaseInqueue:
		return &g.Inqueue
	case model.PhaseRunning:
		return &g.Running
	case model.PhaseUnknown:
		return &g.Unknown
	case model.PhaseCompleted:
		return &g.Completed
	}
	return &g.Pending
}

func (g *Groups) add(o Groups, n int) {
	g.Pending += n * o.Pending
	g.Inqueue += n * o.Inqueue
	g.Running += n * o.Running
	g.Unknown += n * o.Unknown
	g.Completed += n * o.Completed
}

// replace takes one usage away and adds another.
func (u *Usage) replace(before, after *Usage) {
	u.add(after, 1)
	u.add(before, -1)
}

func (u *Usage) add(o *Usage, n int64) {
	u.Allocated.AddTimes(o.Allocated, n)
	u.Requested.AddTimes(o.Requested, n)
	u.Inqueue.AddTimes(o.Inqueue, n)
	u.Elastic.AddTimes(o.Elastic, n)
	u.Stalled.AddTimes(o.Stalled, n)
	u.Claimed.AddTimes(o.Claimed, n)
	u.Jobs += int(n) * o.Jobs
	u.Groups.add(o.Groups, int(n))
}

// Taken is what limits count: what tasks hold, and what the queue keeps for those that it let through its gate. It is never to be changed.
func (u *Usage) Taken() resource.Vector {
	if u.Claimed.IsZero() {
		return u.Allocated
	}
	held := u.Allocated.Clone()
	held.Add(u.Claimed)
	return held
}

// Committed is what admission counts as taken: what is held and admitted, less what could be given up. It is the caller's to change.
func (u *Usage) Committed() resource.Vector {
	committed := u.Allocated.Clone()
	committed.Add(u.Inqueue)
	committed.Sub(u.Elastic)
	return committed
}

// committed is the same of one resource.
func (u *Usage) committed(name corev1.ResourceName) int64 {
	return u.Allocated.Get(name) + u.Inqueue.Get(name) - u.Elastic.Get(name)
}

// Queue is the account of one queue. It belongs to its Book.
type Queue struct {
	Name string
	// Spec is the queue's object; nil for a queue that does not exist but is named by jobs, and for a root without one.
	Spec *model.Queue
	// Parent is nil for the root and for queues outside the tree; Children are sorted by name. They are kept in all modes,
	// but only Hierarchy looks at them.
	Parent   *Queue
	Children []*Queue
	// depth counts the ancestors; place is the queue's among all by name.
	depth, place int
	// first and end are what Span returns.
	first, end int
	// bounds is what the queue's object bounds.
	bounds resource.Portion
	// Own is the usage of the queue's own jobs; Total that of its descendants too.
	Own, Total Usage
	// Deserved is what the queue is due. It names all resources it is due any of.
	Deserved resource.Portion
	// flow is what Flow returns. Of is nil for a copy, in which it is up to date.
	flow resource.Portion
	of   *Book
	// Guarantee is what is set aside for it: of an inner queue without one, nothing; of the root, that of its children.
	Guarantee resource.Vector
	// Capability is its own bound, with what it inherits from its parent for resources it does not name.
	Capability resource.Limit
	// Real is what it may use at most: its capability, and what the guarantees of others leave.
	Real resource.Limit
	// Share is the dominant part of what it is due that it holds; 1 is exactly its due.
	Share float64
	// recent is what it has held; lately that as of when what queues are due followed it last. LatelyShare is the dominant part of its due
	// that it held lately, or of the cluster if it is due nothing; 0 where that does not count.
	recent      model.Recent
	lately      resource.Portion
	LatelyShare float64
	// Fault says why the queue, with its descendants, is left out of scheduling; zero when it is not.
	Fault model.Reason
}

// usage is what limits and shares of the queue count.
func (q *Queue) usage(mode Mode) *Usage {
	if mode == Hierarchy {
		return &q.Total
	}
	return &q.Own
}

// Leaf reports whether jobs may be submitted to the queue where the tree is looked at.
func (q *Queue) Leaf() bool { return len(q.Children) == 0 }

// Due reports whether the queue deserves anything but pod slots.
func (q *Queue) Due() bool {
	for _, a := range q.Deserved {
		if a.Value > 0 && a.Name != corev1.ResourcePods {
			return true
		}
	}
	return false
}

// share is what Share is to be.
func (q *Queue) share(mode Mode) float64 {
	if mode == Undivided {
		return 0
	}
	if mode != Proportion && !q.Due() {
		// Nothing is due, so whatever is held is borrowed (Volcano pkg/scheduler/plugins/capacity/capacity.go, updateShare).
		return 1
	}
	return q.usage(mode).Allocated.Dominant(q.Deserved)
}

// Branches returns the two queues' ancestors, or the queues themselves, where their paths from the root part: children
// of one queue, or roots of different trees. If one of them is above the other it returns that one twice.
func Branches(a, b *Queue) (x, y *Queue) {
	for a.depth > b.depth {
		a = a.Parent
	}
	for b.depth > a.depth {
		b = b.Parent
	}
	for a.Parent != b.Parent {
		a, b = a.Parent, b.Parent
	}
	return a, b
}
