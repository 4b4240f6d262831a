// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// Part is a subgroup of a job as a job of its own, with the subgroup's size as its minimum, or what is left when all subgroups are taken off.
type Part struct {
	// Name is what users call the subgroup; empty for the tasks in none.
	Name string
	// Policy is the position of the subgroup's policy; -1 for the tasks in none.
	Policy int
	// Job has the key of the whole job, and the tasks of the part.
	Job *Job
}

// Parts divides a job of which some tasks are in subgroups, as a turn tries them: subgroups for whose tasks room is kept, those that hold
// nodes and are not whole, those of policies that ask for more, then in the order of policies and values; last the tasks in none. Parts of
// which no task can be placed are left out.
func (j *Job) Parts() []Part {
	byID := map[SubGroupID]*Job{}
	loose := j.part(nil)
	for _, t := range j.Tasks {
		of := loose
		if id, ok := j.SubGroupOf(t); ok {
			if byID[id] == nil {
				byID[id] = j.part(&j.Group.SubGroups[id.Policy])
			}
			of = byID[id]
		}
		of.Tasks = append(of.Tasks, t)
		of.put(t, 1)
	}
	missing := j.Requirement().SubGroups
	var parts []Part
	ids := slices.SortedFunc(maps.Keys(byID), func(a, b SubGroupID) int {
		x, y := byID[a], byID[b]
		return cmp.Or(-cmp.Compare(x.rank(missing, a), y.rank(missing, b)), a.compare(b))
	})
	for _, id := range ids {
		if part := byID[id]; part.Counts.Placeable() > 0 {
			part.Piecemeal = j.Piecemeal && part.Counts.Ready() > 0
			parts = append(parts, Part{Name: j.Group.nameOf(id), Policy: id.Policy, Job: part})
		}
	}
	if loose.Counts.Placeable() > 0 {
		parts = append(parts, Part{Policy: -1, Job: loose})
	}
	return parts
}

// part is the job without tasks, with what a policy asks for instead of what its PodGroup does; nil: with no minimum.
func (j *Job) part(p *SubGroupPolicy) *Job {
	part, group := *j, *j.Group
	group.MinMember, group.MinTaskMember, group.SubGroups, group.Topology = 0, nil, nil, nil
	if p != nil {
		group.MinMember, group.Topology = p.Size, p.Topology
	}
	part.Group, part.Start, part.Piecemeal = &group, Start{}, false
	part.Counts, part.Usage, part.Roles, part.SubGroups, part.Pending, part.Tasks = Counts{}, Usage{}, nil, nil, nil, nil
	return &part
}

// rank orders subgroups for a turn, the highest first.
func (j *Job) rank(missing []int, id SubGroupID) int {
	switch {
	case j.Counts.Nominated > 0:
		return 3
	case !j.Started() && j.Counts.Ready() > 0:
		return 2
	case !j.Started() && len(missing) > 0 && missing[id.Policy] > 0:
		return 1
	}
	return 0
}

// Lacks is how many tasks the part has to place to be whole; 0 when it is, or is in no subgroup.
func (p Part) Lacks() int {
	if p.Policy < 0 {
		return 0
	}
	return max(0, p.Job.Group.MinMember-p.Job.Counts.readyOrBestEffort())
}

// Needing returns the part with so much to place, together or not at all.
func (p Part) Needing(tasks int, roles map[string]int) *Job {
	part, group := *p.Job, *p.Job.Group
	group.MinMember = tasks + part.Counts.readyOrBestEffort()
	for role, n := range roles {
		if n <= 0 {
			continue
		}
		if group.MinTaskMember == nil {
			group.MinTaskMember = map[string]int{}
		}
		c := part.Role(role)
		group.MinTaskMember[role] = n + c.readyOrBestEffort()
	}
	group.MinMember = max(group.MinMember, group.roleTotal())
	part.Group = &group
	return &part
}

// With returns the part with some of its tasks on nodes.
func (p Part) With(nodes map[types.UID]string) Part {
	job := p.Job.part(nil)
	job.Group = p.Job.Group
	for _, t := range p.Job.Tasks {
		if node := nodes[t.UID]; node != "" {
			t = t.with(Allocated, node)
		}
		job.Tasks = append(job.Tasks, t)
		job.put(t, 1)
	}
	p.Job = job
	return p
}
