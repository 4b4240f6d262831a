// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/queue/account"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// comparePriority puts the queue with the higher spec.priority first.
func comparePriority(a, b *account.Queue) int {
	of := func(q *account.Queue) int32 {
		if q.Spec == nil {
			return 0
		}
		return q.Spec.Priority
	}
	return -cmp.Compare(of(a), of(b))
}

// compareAge puts the older queue first, then the smaller name.
func compareAge(a, b *account.Queue) int {
	of := func(q *account.Queue) (created time.Time) {
		if q.Spec != nil {
			created = q.Spec.Created
		}
		return created
	}
	return cmp.Or(of(a).Compare(of(b)), cmp.Compare(a.Name, b.Name))
}

// proportion is Volcano's plugin of that name: queues share the cluster by weight.
type proportion struct {
	// whole: what no job can use is divided, too.
	whole   bool
	recency account.Recency
}

// byRecency is for policies by which what queues have held may count.
type byRecency interface{ recentUse() account.Recency }

func (p proportion) recentUse() account.Recency { return p.recency }

func (p capacity) recentUse() account.Recency { return p.recency }

// CompareQueues puts the queue that has less of its due first.
func (proportion) CompareQueues(a, b *account.Queue) int {
	return cmp.Or(comparePriority(a, b), cmp.Compare(a.Share, b.Share))
}

// Overused reports whether the queue holds its due of every resource.
func (proportion) Overused(q *account.Queue) bool { return q.Deserved.Within(q.Own.Allocated) }

// besides is a queue's account without what a job of it holds that does not count.
func besides(q *account.Queue, own resource.Vector) *account.Queue {
	if own == nil {
		return q
	}
	then := *q
	then.Own.Allocated, then.Total.Allocated = without(q.Own.Allocated, own), without(q.Total.Allocated, own)
	return &then
}

// without is what is held besides what a job holds that does not count.
func without(held, own resource.Vector) resource.Vector {
	if own == nil {
		return held
	}
	held = held.Clone()
	held.Sub(own)
	return held
}

// Limits bounds a queue by its due. A gang that is larger than that may borrow what nobody else can use.
func (proportion) Limits(q *account.Queue, borrowing bool, yield func(Bound) bool) {
	limit := resource.Limit{Amounts: q.Deserved, Unnamed: resource.OnlyDevices}
	if borrowing {
		limit = q.Real
	} else if devices := q.Real.Amounts.Devices(); devices != nil {
		// The cluster is divided of what nodes have.
		limit = limit.Clone()
		limit.Tighten(devices)
	}
	yield(Bound{Queue: q, Limit: limit, Held: q.Own.Taken()})
}

// limitsBeside bounds a queue by its due, and by what it may hold at most: there all counts.
func (p proportion) limitsBeside(q *account.Queue, own resource.Vector, yield func(Bound) bool) {
	p.Limits(q, false, func(b Bound) bool {
		b.Held = without(b.Held, own)
		if yield(b) {
			p.Limits(q, true, yield)
		}
		return false
	})
}

// limits yields what bounds a queue for a job that holds what does not count by what the queue is due; nil where all counts.
func limits(p Limiter, q *account.Queue, own resource.Vector, borrowing bool, yield func(Bound) bool) {
	if due, ok := p.(dueLimiter); ok && own != nil && !borrowing {
		due.limitsBeside(q, own, yield)
		return
	}
	p.Limits(q, borrowing, yield)
}

func (proportion) Admit(w World, j *Ranked) (Vote, model.Reason) {
	return admitWithin(w, w.Queue, &w.Queue.Own, j)
}

// capacity is Volcano's plugin of that name: queues are due what their objects say, and may borrow up to their
// capability, at every level of the tree if there is one.
type capacity struct {
	tree bool
	// levels is how many queues above one are asked too when it takes from others.
	levels int
	// flow: queues that are asked to themselves also share what their siblings leave.
	flow      bool
	uncounted uncounted
	recency   account.Recency
}

// CompareQueues puts the queue first that has less of its due; among queues with equal parts the one that is due
// anything. In a tree the branches are compared where the queues part; unlike in Volcano their age, and not that of the
// queues, decides between equal ones: a queue of another branch could otherwise come between two of this one.
func (p capacity) CompareQueues(a, b *account.Queue) int {
	if c := comparePriority(a, b); c != 0 {
		return c
	}
	if p.tree {
		if a.Leaf() != b.Leaf() {
			if a.Leaf() {
				return -1
			}
			return 1
		}
		return compareBranches(a, b)
	}
	return compareDue(a, b)
}

// compareBranches compares two queues where their paths part. A queue goes before those below it.
func compareBranches(a, b *account.Queue) int {
	switch x, y := account.Branches(a, b); {
	case x != y:
		return cmp.Or(compareDue(x, y), compareAge(x, y))
	case a == b:
		return 0
	case x == a:
		return -1
	}
	return 1
}

// compareDue puts the queue first that has less of its due; of equal ones one that is due anything. Of two that hold their due the one goes first
// that has held less of it lately, where that counts.
func compareDue(a, b *account.Queue) int {
	if a.Share >= 1 && b.Share >= 1 {
		if c := cmp.Compare(a.LatelyShare, b.LatelyShare); c != 0 {
			return c
		}
	}
	if c := cmp.Compare(a.Share, b.Share); c != 0 || a.Due() == b.Due() {
		return c
	}
	if a.Due() {
		return -1
	}
	return 1
}

// Limits bounds a queue, and every queue above it in the tree, by what it may hold at most.
func (p capacity) Limits(q *account.Queue, _ bool, yield func(Bound) bool) {
	if !p.tree {
		yield(Bound{Queue: q, Limit: q.Real, Held: q.Own.Taken()})
		return
	}
	for ; q != nil; q = q.Parent {
		if !yield(Bound{Queue: q, Limit: q.Real, Held: q.Total.Taken()}) {
			return
		}
	}
}

func (p capacity) Admit(w World, j *Ranked) (Vote, model.Reason) {
	if !p.tree {
		return admitWithin(w, w.Queue, &w.Queue.Own, j)
	}
	for q := w.Queue; q != nil; q = q.Parent {
		if vote, reason := admitWithin(w, q, &q.Total, j); vote == Reject {
			return vote, reason
		}
	}
	return Permit, model.Reason{}
}

// admitWithin lets a job in if its claim, on top of what the queue holds and has promised less what it could give up,
// stays within what the queue may hold.
func admitWithin(w World, q *account.Queue, usage *account.Usage, j *Ranked) (Vote, model.Reason) {
	claim := j.Claim()
	committed := w.committed(usage)
	over := q.Real.Refuses(claim, committed)
	if len(over) > 0 {
		left := committed.Clone()
		left.Sub(w.reclaimable(q))
		over = q.Real.Refuses(claim, left)
	}
	if len(over) == 0 {
		return Permit, model.Reason{}
	}
	// More nodes help where it is the cluster that is too small, which in a tree is no limit, and not the queue's own bound.
	nodes := q.Real.Unnamed != resource.Unlimited
	for _, name := range over {
		bound, _ := q.Real.Of(name)
		if own, limited := q.Capability.Of(name); limited && own <= bound {
			nodes = false
		}
	}
	return Reject, w.notAdmitted("queue "+w.Queue.Name+" ", over, nodes, func() string {
		details := make([]string, len(over))
		claim, committed := committed.More(claim), committed.Counted()
		for i, name := range over {
			bound, _ := q.Real.Of(name)
			details[i] = fmt.Sprintf("insufficient %s (queue %q: %s held or promised, %s asked for, limit %s)", name, q.Name,
				format(name, committed.Get(name)), format(name, claim.Get(name)), format(name, int64(bound)))
		}
		return "queue resource quota insufficient: " + strings.Join(details, ", ")
	})
}

func format(name corev1.ResourceName, value int64) string {
	return resource.Amount{Name: name, Value: value}.Format()
}
