// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/queue/account"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// reclaimable is what a job that is not let in yet could take from others by the actions that are configured. That is what jobs of lower priority
// hold in its queue, and what other queues hold beyond their due. Below nil it is all of that. Below a queue it is what that
// queue and those under it would hold less. What jobs have beyond their minimums does not count there: admission does not take it as held.
//
// Volcano's votes on admission do not know of evictions, so that in a full cluster a job that could take what it is due
// is not let in, and one that is not let in takes nothing (volcano-sh/volcano#991).
func (s *Set) reclaimable(q *account.Queue, job *model.Job, below *account.Queue) (sum resource.Vector) {
	if s.usage == nil {
		return nil
	}
	if s.configured(func(c *ruleSet) bool { return c.inside() && c.byPriority }) {
		sum = s.usage.lower(job, below != nil)
	}
	// A queue that takes from others holds more itself.
	if below != q && s.configured(func(c *ruleSet) bool { return !c.inside() && c.offers() && c.moves == nil }) {
		sum.Add(s.fromOthers(q, job, below))
	}
	return sum
}

// configured reports whether there is such an action.
func (s *Set) configured(is func(*ruleSet) bool) bool {
	return slices.ContainsFunc(s.actions, func(action config.Action) bool { return is(s.ruleSet(action)) })
}

// fromOthers is what other queues hold beyond their due, if the job's queue may take what the job claims. Their due is counted as if the
// job's pods existed: some are created only once the job is let in.
func (s *Set) fromOthers(q *account.Queue, job *model.Job, below *account.Queue) (sum resource.Vector) {
	claim := job.Claim()
	waiting := job.Usage.Requested.Clone()
	waiting.Sub(job.Usage.Allocated)
	due := s.book.DueIf(q, claim.Beyond(waiting))
	if s.mayTake(q.With(due(q)), job, claim) != (model.Reason{}) {
		return nil
	}
	for _, other := range s.book.Queues() {
		if other == q || !mayLose(other) || below != nil && !below.Above(other) {
			continue
		}
		deserved, elastic := due(other), resource.Vector(nil)
		if below != nil {
			elastic = other.Own.Allocated.Fewer(other.Own.Elastic)
		}
		for _, a := range other.Own.Allocated.Counted() {
			spare := a.Value - int64(deserved.Get(a.Name)) - elastic.Get(a.Name)
			if spare > 0 && !s.undivided(a.Name) {
				sum.Add(resource.Vector{{Name: a.Name, Value: spare}})
			}
		}
	}
	return sum
}
