// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/model"
)

// Protection tells whom policies protect from the action shuffle, which evicts for nobody's sake: as of when it was made, and
// with what was taken since. It is not safe for concurrent use, but does not look at the Set any more.
//
// In Volcano nobody protects from shuffle, and pdb even has all pods evicted that its budgets allow
// (pkg/scheduler/actions/shuffle/shuffle.go, VictimTasks is a union).
type Protection struct {
	trial *Trial
	taken map[types.UID]bool
}

// Protection returns the protection by the plugins whose switch enableVictim is on. Of the world it looks at budgets, at refused
// evictions and at the time.
func (s *Set) Protection(w EvictionWorld) *Protection {
	t := newTrial(&s.evictions, s.orders, config.Shuffle, &model.Job{}, w)
	t.ruleSet, t.bestEffort, t.accounts = &s.evictions.protection, false, s.book.Copy()
	return &Protection{trial: t, taken: map[types.UID]bool{}}
}

// Protects says why a running task stays, in a short phrase; empty when it may go as far as the minimum of its gang does not
// matter.
func (s *Protection) Protects(v model.Victim) string {
	if s.taken[v.Task.UID] {
		return "it goes already"
	}
	if why := s.trial.Candidate(v); why != "" {
		return why
	}
	h := s.trial.usageOf(v.Job)
	for _, protects := range s.trial.ruleSet.guards {
		if why := protects(s.trial, v, h); why != "" {
			return why
		}
	}
	return ""
}

// NeededBy says why the other tasks of its job cannot do without a task, in a short phrase; empty when they can, when there are
// none, or when nobody asks.
func (s *Protection) NeededBy(v model.Victim) string {
	if !s.trial.ruleSet.gangs || v.Job.Counts.Total() == 1 {
		return ""
	}
	return s.trial.keepsMinimum(s.trial.usageOf(v.Job), v.Task, 1)
}

// Take counts a task as gone.
func (s *Protection) Take(v model.Victim) {
	s.taken[v.Task.UID] = true
	s.trial.Take(v)
}

// Compare is the order in which the tasks of one job go: negative when a goes first.
func (s *Protection) Compare(a, b *model.Task) int { return s.trial.compareLeaving(a, b) }
