// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"cmp"
	"slices"
)

// Left is what is left of a job while some of its tasks are taken to be gone. It says who is surplus: whoever evicts asks here.
type Left struct {
	// Ready tasks count toward the minimum, Placed ones are on nodes.
	Ready, Placed int
	least         int
	// whole is how many tasks were placed with nobody gone, where all go or nobody does; zero where they may go one by one.
	whole int
	roles []roleLeft
	// group makes the subgroups, and policies are how many of each policy have to stay whole.
	group     *Group
	subGroups []subGroupLeft
	policies  []int
	// index finds a subgroup. Wholes counts those that are whole, by policy, torn those that were and have lost a part.
	index  map[SubGroupID]int
	wholes []int
	torn   int
}

// roleLeft is what is left of a role that has a minimum.
type roleLeft struct {
	name         string
	ready, least int
}

// subGroupLeft is what is left of a subgroup.
type subGroupLeft struct {
	id SubGroupID
	// ready tasks count toward its size, placed ones are on nodes.
	ready, placed, size int
	// complete: it was whole with nobody gone.
	complete bool
}

// whole reports whether it has all of its tasks, torn whether it had, and has lost a part of them.
func (s *subGroupLeft) whole() bool { return s.ready >= s.size }
func (s *subGroupLeft) torn() bool  { return s.complete && !s.whole() && s.placed > 0 }

// Lack is below which minimum a job would fall.
type Lack uint8

// The minimums.
const (
	LacksNothing Lack = iota
	// LacksTasks: below the minimum of the job; LacksRole: below that of a role.
	LacksTasks
	LacksRole
	// LacksSubGroups: fewer subgroups would be whole than the gang needs.
	LacksSubGroups
	// LacksPart: a subgroup would lose some of the tasks that start together, and keep others.
	LacksPart
	// LacksOthers: some would be gone and some not, of a job whose tasks go all together.
	LacksOthers
)

// Left is the job with nobody gone.
func (j *Job) Left() Left {
	l := Left{Ready: j.Counts.Ready(), Placed: j.Placed(), least: j.Min()}
	if j.Group != nil && j.Group.Whole {
		l.whole = l.Placed
	}
	for name, least := range j.roleMins() {
		if least > 0 {
			c := j.Role(name)
			l.roles = append(l.roles, roleLeft{name: name, ready: c.Ready(), least: least})
		}
	}
	slices.SortFunc(l.roles, func(a, b roleLeft) int { return cmp.Compare(a.name, b.name) })
	l.addSubGroups(j)
	return l
}

func (l *Left) addSubGroups(j *Job) {
	if j.Group == nil || len(j.Group.SubGroups) == 0 {
		return
	}
	l.group, l.index, l.wholes = j.Group, make(map[SubGroupID]int, len(j.SubGroups)), make([]int, len(j.Group.SubGroups))
	for i := range j.Group.SubGroups {
		l.policies = append(l.policies, j.Group.SubGroups[i].Min)
	}
	for i := range j.SubGroups {
		c := &j.SubGroups[i]
		s := subGroupLeft{id: c.ID, ready: c.Ready(), size: j.Group.SubGroups[c.ID.Policy].Size}
		s.placed, s.complete = s.ready-c.ByStatus[Succeeded], s.ready >= s.size
		l.index[c.ID] = len(l.subGroups)
		l.subGroups = append(l.subGroups, s)
		l.tally(&s, 1)
	}
}

// subGroupOf returns what is left of the subgroup of a task; nil for a task in none.
func (l *Left) subGroupOf(t *Task) *subGroupLeft {
	if l.group == nil || t == nil {
		return nil
	}
	id, ok := l.group.subGroupOf(t.Pod)
	if !ok {
		return nil
	}
	if i, known := l.index[id]; known {
		return &l.subGroups[i]
	}
	return nil
}

// tally counts a subgroup n times.
func (l *Left) tally(s *subGroupLeft, n int) {
	if s.whole() {
		l.wholes[s.id.Policy] += n
	}
	if s.torn() {
		l.torn += n
	}
}

// Count counts n tasks like this one as back; as gone, if n is negative.
func (l *Left) Count(t *Task, n int) {
	l.Ready += n
	l.Placed += n
	for i := range l.roles {
		if l.roles[i].name == t.Role {
			l.roles[i].ready += n
		}
	}
	if s := l.subGroupOf(t); s != nil {
		l.tally(s, -1)
		s.ready += n
		s.placed += n
		l.tally(s, 1)
	}
}

// Without says what the job would lack without so many more tasks like this one; nil: with those gone that are.
func (l *Left) Without(t *Task, more int) Lack {
	if placed := l.Placed - more; placed > 0 && placed < l.whole {
		return LacksOthers
	}
	if l.Ready-more < l.least {
		return LacksTasks
	}
	for _, r := range l.roles {
		if t != nil && r.name == t.Role {
			r.ready -= more
		}
		if r.ready < r.least {
			return LacksRole
		}
	}
	return l.withoutSubGroup(l.subGroupOf(t), more)
}

// withoutSubGroup says what the subgroups would lack without so many more tasks of one of them; nil for tasks in none.
func (l *Left) withoutSubGroup(loser *subGroupLeft, more int) Lack {
	if loser != nil {
		l.tally(loser, -1)
		defer l.tally(loser, 1)
		then := *loser
		then.ready, then.placed = then.ready-more, then.placed-more
		l.tally(&then, 1)
		defer l.tally(&then, -1)
	}
	for i, n := range l.wholes {
		if n < l.policies[i] {
			return LacksSubGroups
		}
	}
	if l.torn > 0 {
		return LacksPart
	}
	return LacksNothing
}
