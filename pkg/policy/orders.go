// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"slices"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/queue/account"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// orders are the policies that order, and what jobs are ranked by.
type orders struct {
	jobs   []ordering[JobOrderer]
	queues []ordering[QueueOrderer]
	// tasks are those that order tasks, each a TaskOrderer or an Arranger.
	tasks []any
	// arranger tells tasks apart that are alike otherwise; nil when nobody does.
	arranger Arranger
	// jobSharing: jobs are ordered by their share of the cluster, which is portion.
	jobSharing bool
	portion    resource.Portion
	deadlines  *sla
}

// ordering is a policy that orders, and the plugin of the tiers that it is.
type ordering[H any] struct {
	by     H
	plugin string
}

// enterOrdering adds a policy to those that order, if it does and is to.
func enterOrdering[H any](to *[]ordering[H], p *config.TierPlugin, policy any, on config.Switch) {
	if h, ok := policy.(H); ok && p.Enabled(on) {
		*to = append(*to, ordering[H]{h, p.Name})
	}
}

// Rank returns a job with what its order depends on.
func (o *orders) Rank(job *model.Job) *Ranked {
	r := &Ranked{Job: job}
	if o.jobSharing {
		r.Share = without(job.Usage.Allocated, job.OwnHalf()).Dominant(o.portion)
	}
	if o.deadlines != nil {
		r.Deadline = o.deadlines.deadline(job)
	}
	return r
}

// CompareJobs is the whole order of the jobs of a queue, negative when a goes first: the first policy with an opinion
// decides; then the older job, then the smaller UID.
func (o *orders) CompareJobs(a, b *Ranked) int {
	if c := firstNonZero(o.jobs, func(p ordering[JobOrderer]) int { return p.by.CompareJobs(a, b) }); c != 0 {
		return c
	}
	return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.UID, b.UID))
}

// CompareQueues is the whole order of queues, negative when a goes first: the first policy with an opinion decides;
// then the older queue, then the name.
func (o *orders) CompareQueues(a, b *account.Queue) int {
	if c := firstNonZero(o.queues, func(p ordering[QueueOrderer]) int { return p.by.CompareQueues(a, b) }); c != 0 {
		return c
	}
	return compareAge(a, b)
}

// OrdersByAccounts reports whether CompareQueues goes by nothing but accounts. These are the accounts of the two queues, and of those above each up to
// the first that both have in common. Their order changes only if one of these accounts does: see account.Book.Shifted.
func (s *Set) OrdersByAccounts() bool { return s.byAccounts }

// goesByAccounts reports whether only policies of this package put queues in order, and hierarchical drf is not among them: its tree is not an account.
func (o *orders) goesByAccounts() bool {
	return !slices.ContainsFunc(o.queues, func(p ordering[QueueOrderer]) bool {
		switch p.by.(type) {
		case proportion, capacity:
			return false
		}
		return true
	})
}

// CompareTasks is the order that policies give to two tasks of a job by what they are themselves; zero without an opinion.
func (o *orders) CompareTasks(a, b *model.Task) int {
	return firstNonZero(o.tasks, func(p any) int {
		if p, ok := p.(TaskOrderer); ok {
			return p.CompareTasks(a, b)
		}
		return 0
	})
}

// Arrange returns the order that policies give to the waiting tasks of a job, negative when a goes first and zero without an
// opinion, and what numbers those that nodes score alike.
func (o *orders) Arrange(job *model.Job) (compare func(a, b *model.Task) int, part func(*model.Task) int) {
	if o.arranger == nil {
		return o.CompareTasks, alike
	}
	arrangement := o.arranger.Arrange(job)
	if arrangement == nil {
		return o.CompareTasks, alike
	}
	compare = func(a, b *model.Task) int {
		return firstNonZero(o.tasks, func(p any) int {
			if p, ok := p.(TaskOrderer); ok {
				return p.CompareTasks(a, b)
			}
			return arrangement.Compare(a, b)
		})
	}
	return compare, arrangement.Part
}

func alike(*model.Task) int { return 0 }

func (o *orders) registerTasks(p *config.TierPlugin, policy any) {
	arranger, arranges := policy.(Arranger)
	if arranges {
		o.arranger = arranger
	}
	if _, orders := policy.(TaskOrderer); (orders || arranges) && p.Enabled(config.EnableTaskOrder) {
		o.tasks = append(o.tasks, policy)
	}
}

// compareLeaving is the whole order in which tasks of a job are evicted, negative when a goes first: the task that goes last
// by the policies; then the highest index in the name, the youngest, the greatest UID.
func (o *orders) compareLeaving(a, b *model.Task) int {
	return -cmp.Or(o.CompareTasks(a, b), cmp.Compare(a.Index(), b.Index()), a.Created.Compare(b.Created), cmp.Compare(a.UID, b.UID))
}
