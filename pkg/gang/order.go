// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"cmp"
	"maps"
	"slices"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// quota counts down what a turn still has to place.
type quota struct {
	gang bool
	// roles is what is still needed of each role; free is what may be of any role.
	roles map[string]int
	free  int
	// open is the sum of both.
	open int
}

func newQuota(r model.Requirement) quota {
	q := quota{gang: r.Gang, roles: maps.Clone(r.Roles), free: r.Tasks, open: r.Tasks}
	for _, n := range r.Roles {
		q.free -= n
	}
	return q
}

func (q *quota) met() bool { return q.open == 0 }

func (q *quota) wants(role string) bool { return q.roles[role] > 0 || q.free > 0 }

func (q *quota) take(role string) {
	if q.roles[role] > 0 {
		q.roles[role]--
	} else {
		q.free--
	}
	q.open--
}

// TaskOrder compares two tasks of a job before their names and ages do: negative when a goes first, zero without an
// opinion.
type TaskOrder func(a, b *model.Task) int

// Arrangement is how the tasks of one job are tried.
type Arrangement struct {
	// Order is the order in which they are.
	Order TaskOrder
	// Part numbers those that nodes score alike though they differ from others of their class.
	Part func(*model.Task) int
}

// kind identifies tasks that nodes treat alike in one plan.
type kind struct {
	class model.Class
	part  int
}

func (r Arrangement) kindOf(t *model.Task) kind { return kind{t.Class, r.Part(t)} }

// inOrder returns the placeable tasks of a job in the order in which a turn tries them: tasks of roles that are below
// their minimum, then by Volcano's task order; best-effort tasks last. A turn for one more task only needs the first of
// each kind, which spares the thousands of waiting tasks of an elastic job their sorting.
func (r Arrangement) inOrder(job *model.Job) []*model.Task {
	need, o := job.Requirement(), r.Order
	tasks := make([]*model.Task, 0, len(job.Pending))
	// Most often a task is of the same kind as the one before it.
	first, last, i, known := map[kind]int{}, kind{}, 0, false
	for _, t := range job.Tasks {
		if !t.Placeable() {
			continue
		}
		if k := r.kindOf(t); !known || k != last {
			last = k
			i, known = first[k]
		}
		switch {
		case need.Gang || !known:
			i, known = len(tasks), true
			first[last] = i
			tasks = append(tasks, t)
		case o.compareInTurn(need.Roles, t, tasks[i]) < 0:
			tasks[i] = t
		}
	}
	slices.SortFunc(tasks, func(a, b *model.Task) int { return o.compareInTurn(need.Roles, a, b) })
	return tasks
}

// Lead returns the task that a turn of the job tries first, or nil when none may be placed.
func (o TaskOrder) Lead(job *model.Job) *model.Task {
	roles := job.Requirement().Roles
	var lead *model.Task
	for _, t := range job.Tasks {
		if t.Placeable() && (lead == nil || o.compareInTurn(roles, t, lead) < 0) {
			lead = t
		}
	}
	return lead
}

// compareInTurn puts tasks for which room is kept first, then those of roles that are below their minimum, and best-effort
// tasks last.
func (o TaskOrder) compareInTurn(roles map[string]int, a, b *model.Task) int {
	if a.BestEffort != b.BestEffort {
		if b.BestEffort {
			return -1
		}
		return 1
	}
	if kept := a.Nominated != ""; kept != (b.Nominated != "") {
		if kept {
			return -1
		}
		return 1
	}
	if len(roles) > 0 {
		if c := -cmp.Compare(min(roles[a.Role], 1), min(roles[b.Role], 1)); c != 0 {
			return c
		}
	}
	if c := o(a, b); c != 0 {
		return c
	}
	return compareNames(a, b)
}

// compareNames is the order of tasks that policies treat alike, negative when a goes first: smaller index in the name,
// older, smaller UID. Source: the tie-breaks of Volcano's TaskOrder.
func compareNames(a, b *model.Task) int {
	if c := cmp.Compare(a.Index(), b.Index()); c != 0 {
		return c
	}
	return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.UID, b.UID))
}
