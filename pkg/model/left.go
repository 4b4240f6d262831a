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
}

// roleLeft is what is left of a role that has a minimum.
type roleLeft struct {
	name         string
	ready, least int
}

// Lack is below which minimum a job would fall.
type Lack uint8

// The minimums.
const (
	LacksNothing Lack = iota
	// LacksTasks: below the minimum of the job; LacksRole: below that of a role.
	LacksTasks
	LacksRole
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
	return l
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
}

// Without says what the job would lack without so many more tasks of a role.
func (l *Left) Without(role string, more int) Lack {
	if placed := l.Placed - more; placed > 0 && placed < l.whole {
		return LacksOthers
	}
	if l.Ready-more < l.least {
		return LacksTasks
	}
	for _, r := range l.roles {
		if r.name == role {
			r.ready -= more
		}
		if r.ready < r.least {
			return LacksRole
		}
	}
	return LacksNothing
}
