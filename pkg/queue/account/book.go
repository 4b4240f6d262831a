// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// Book holds the accounts of all queues. It is not safe for concurrent use.
type Book struct {
	mode  Mode
	total resource.Vector
	// usable is what of total jobs can use; nil: all of it.
	usable resource.Vector
	specs  map[string]*model.Queue
	queues map[string]*Queue
	// sorted are the queues by name.
	sorted []*Queue
	jobs   map[model.JobKey]posting
	// stale: the queues changed; resized: the cluster did; uneven: what queues request did, which Proportion divides by.
	stale, resized, uneven bool
	// flowing: what flows to queues is as Flow says.
	flowing bool
	// above names the queues above each, where the tree is looked at. It is replaced, never changed.
	above map[string][]string
	// portion is total in another form; all is the usage of all jobs.
	portion resource.Portion
	all     Usage
	// recency says how what queues have held counts. Now is the time; movedAt when what they are due followed it last.
	// Inherited is what queues that are yet to be met have held by the book before.
	recency      Recency
	now, movedAt time.Time
	inherited    map[string]model.Recent
	// loosened counts the times that some queue's room may have grown; freed those that a job may be let in that was not.
	loosened, freed uint64
	shifts          shifts
}

// posting is what a job adds to its queue. The zero value is that of a job that does not exist.
type posting struct {
	queue    string
	usage    Usage
	admitted bool
}

// NewBook returns the book of a cluster without queues.
func NewBook(mode Mode) *Book {
	return &Book{
		mode: mode, inherited: map[string]model.Recent{}, specs: map[string]*model.Queue{}, queues: map[string]*Queue{},
		jobs: map[model.JobKey]posting{}, stale: true, shifts: shifts{earlier: 1},
	}
}

// Mode returns how the book finds what queues are due.
func (b *Book) Mode() Mode { return b.mode }

// Cluster returns what all nodes have.
func (b *Book) Cluster() resource.Vector { return b.total }

// ClusterPortion is the same in the form that shares are taken of; never to be changed.
func (b *Book) ClusterPortion() resource.Portion { return b.portion }

// Inqueue returns what was promised to admitted jobs of all queues; never to be changed.
func (b *Book) Inqueue() resource.Vector { return b.all.Inqueue }

// Stalled returns the part of Inqueue that was promised to jobs that nodes have refused for long, or that have failed; never to be changed.
func (b *Book) Stalled() resource.Vector { return b.all.Stalled }

// SetCluster records what all nodes have, and reports whether that is news.
func (b *Book) SetCluster(total resource.Vector) bool {
	if b.total.Equal(total) {
		return false
	}
	b.total, b.portion, b.resized = total.Clone(), total.Portion(), true
	return true
}

// SetUsable records what of the cluster jobs can use, which is what is divided by weight.
func (b *Book) SetUsable(usable resource.Vector) {
	if b.usable = usable; usable == nil {
		// Nil would be all of it.
		b.usable = resource.Vector{}
	}
	b.uneven = b.uneven || b.mode == Proportion
}

// divided is what is divided by weight.
func (b *Book) divided() resource.Vector {
	if b.usable == nil {
		return b.total
	}
	return b.usable
}

// SetQueue records a queue; nil when it is gone.
func (b *Book) SetQueue(name string, spec *model.Queue) {
	if spec == nil {
		delete(b.specs, name)
	} else {
		b.specs[name] = spec
	}
	b.stale = true
}

// SetJob records what a job uses; nil when it is gone.
func (b *Book) SetJob(key model.JobKey, job *model.Job) {
	before, known := b.jobs[key]
	if !known && job == nil {
		return
	}
	var after posting
	if job != nil {
		after = posting{queue: job.Queue, usage: usageOf(job), admitted: job.Admitted}
		b.jobs[key] = after
	} else {
		delete(b.jobs, key)
	}
	if known && job != nil && before.queue == after.queue {
		b.post(after.queue, &before.usage, &after.usage)
	} else {
		if known {
			b.post(before.queue, &before.usage, &Usage{})
		}
		if job != nil {
			b.post(after.queue, &Usage{}, &after.usage)
		}
	}
	if before.admitted && (!after.admitted || before.queue != after.queue) {
		b.freed++
	}
}

// covers reports whether a is at least b everywhere.
func covers(a, b resource.Vector) bool {
	for _, x := range b {
		if a.Get(x.Name) < x.Value {
			return false
		}
	}
	return true
}

// committedCovers reports whether what is committed is at least what o has, everywhere.
func (u *Usage) committedCovers(o *Usage) bool {
	for _, list := range []resource.Vector{o.Allocated, o.Inqueue} {
		for _, x := range list {
			if u.committed(x.Name) < o.committed(x.Name) {
				return false
			}
		}
	}
	return true
}

// usageOf is what a job adds to its queue.
func usageOf(job *model.Job) Usage {
	u := Usage{
		Allocated: job.Usage.Allocated, Requested: job.Usage.Requested,
		Inqueue: job.Inqueue(), Elastic: job.Elastic(), Jobs: 1,
	}
	if job.Group != nil || job.Key.Source == model.FromPod {
		u.Claimed = job.Usage.Claimed
	}
	if job.Stalled {
		u.Stalled = u.Inqueue
	}
	if job.Key.Source == model.FromVolcano && job.Group != nil {
		*u.Groups.of(job.Group.Phase) = 1
	}
	return u
}

// post takes from a queue and its ancestors what a job used of it, and adds what it uses.
func (b *Book) post(name string, before, after *Usage) {
	q := b.queue(name)
	idle := q.Own.Jobs == 0
	for above := q; above != nil && b.recency.HalfLife > 0; above = above.Parent {
		b.remember(above)
	}
	b.all.replace(before, after)
	q.Own.replace(before, after)
	for above := q; above != nil; above = above.Parent {
		above.Total.replace(before, after)
		if share := above.share(b.mode); share != above.Share {
			above.Share = share
			b.shifts.note(above, len(b.sorted))
		}
	}
	if q.Spec == nil && q.Own.Jobs == 0 {
		// Nobody names it any more.
		b.stale = true
	}
	if b.mode == Proportion && (idle != (q.Own.Jobs == 0) || !before.Requested.Equal(after.Requested)) {
		b.uneven = true
	}
	b.flowing = b.flowing && before.Requested.Equal(after.Requested)
	if !covers(after.Taken(), before.Taken()) {
		b.loosened++
	}
	if !after.committedCovers(before) {
		b.freed++
	}
}

// queue returns the account of a queue, opening one for a queue that was not known.
func (b *Book) queue(name string) *Queue {
	q := b.queues[name]
	if q == nil {
		q = &Queue{Name: name, Spec: b.specs[name], of: b}
		b.queues[name] = q
		b.stale = true
	}
	return q
}

// Above returns the names of the queues above each queue, nearest first, where the tree is looked at. What is returned is
// never changed.
func (b *Book) Above() map[string][]string { return b.above }

// Queue returns the account of a queue, or nil. Update must have been called since the last change.
func (b *Book) Queue(name string) *Queue { return b.queues[name] }

// Queues returns all accounts by name.
func (b *Book) Queues() []*Queue { return b.sorted }

// Loosened counts the times that a queue's room may have grown: as long as it does not change, a queue that had no room
// has none.
func (b *Book) Loosened() uint64 { return b.loosened }

// Freed counts the times that what queues hold and have promised may have shrunk, or what they may hold or are due have
// changed: as long as it does not change, a job that was not admitted on their account is not admitted now.
func (b *Book) Freed() uint64 { return b.freed }

// Free has it counted that something shrank, besides what the accounts know, for which jobs were not admitted.
func (b *Book) Free() { b.freed++ }

// Update brings what queues are due up to date with what changed, and reports whether the queues themselves did. Calling
// it again without a change costs nothing.
func (b *Book) Update() (rearranged bool) {
	rearranged = b.stale
	if b.stale {
		b.arrange()
	}
	if b.stale || b.uneven {
		b.look()
	}
	switch {
	case b.stale || b.resized:
		b.setLimits()
		b.setDue()
		b.flowing = false
		b.loosened++
		b.freed++
	case b.uneven:
		grown, shrunk := b.setDue()
		if grown {
			b.loosened++
		}
		// What a queue is due, and what others hold beyond their due, counts when jobs ask to be let in.
		if grown || shrunk {
			b.freed++
		}
	}
	b.stale, b.resized, b.uneven = false, false, false
	return rearranged
}

// arrange builds the tree of queues and sums up usage along it.
func (b *Book) arrange() {
	for name, spec := range b.specs {
		b.queue(name).Spec = spec
	}
	if b.mode == Hierarchy {
		// The root holds the tree together whether it has an object or not.
		b.queue(model.RootQueue)
	}
	for name, q := range b.queues {
		if b.specs[name] == nil {
			q.Spec = nil
			if q.Own.Jobs == 0 && (b.mode != Hierarchy || name != model.RootQueue) {
				delete(b.queues, name)
				q.first, q.end = 0, 0
			}
		}
	}
	b.sorted = slices.SortedFunc(maps.Values(b.queues), func(a, b *Queue) int { return cmp.Compare(a.Name, b.Name) })
	for i, q := range b.sorted {
		q.Parent, q.Children, q.depth, q.place, q.Fault = nil, nil, 0, i, model.Reason{}
		q.bounds = q.ownBounds()
		b.remember(q)
		q.Total = Usage{}
	}
	b.link()
	b.setSpans()
	b.above = map[string][]string{}
	for _, q := range b.sorted {
		for above := q.Parent; above != nil && b.mode == Hierarchy; above = above.Parent {
			b.above[q.Name] = append(b.above[q.Name], above.Name)
		}
		for above := q; above != nil; above = above.Parent {
			above.Total.replace(&Usage{}, &q.Own)
		}
	}
}

// ordered returns the queues with parents before their children.
func (b *Book) ordered() []*Queue {
	list := slices.Clone(b.sorted)
	slices.SortStableFunc(list, func(a, b *Queue) int { return cmp.Compare(a.depth, b.depth) })
	return list
}
