// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// Start is the minimum with which a gang was whole for the first time since it held no node: what it must not fall
// below. A minimum that is raised afterwards breaks no gang that runs. The zero value is that of a gang which was not
// whole yet.
type Start struct {
	// Tasks is the minimum in all; at least 1 for a gang that was whole.
	Tasks int
	// Roles are the minimums of the roles that had one, and SubGroups those of policies for subgroups; never to be changed.
	Roles, SubGroups map[string]int
}

// Unconfirmed is the condition's message, instead of a start, while binds of the gang's minimum may still be refused.
const Unconfirmed = "not all members of its minimum are bound yet"

// The parts of the sentence in which the condition Scheduled of a PodGroup keeps a start for the next process.
const (
	startedWith = "started with a minimum of "
	startTasks  = " tasks"
	startRoles  = ", by role "
	startGroups = ", by subgroup policy "
)

// String is the start in words that ParseStart reads; empty for the zero value.
func (s Start) String() string {
	if s.Tasks == 0 {
		return ""
	}
	return startedWith + strconv.Itoa(s.Tasks) + startTasks + minimums(startRoles, s.Roles) + minimums(startGroups, s.SubGroups)
}

// minimums are minimums by name in words that begin so; empty for none.
func minimums(begins string, mins map[string]int) string {
	if len(mins) == 0 {
		return ""
	}
	// It cannot fail, and sorts the names.
	raw, err := json.Marshal(mins)
	if err != nil {
		return ""
	}
	return begins + string(raw)
}

// ParseStart reads what String wrote. Anything else is the start of a gang that was not whole yet.
func ParseStart(text string) Start {
	s, err := parseStart(text)
	if err != nil {
		return Start{}
	}
	return s
}

func parseStart(text string) (s Start, err error) {
	rest, subGroups, bySubGroup := strings.Cut(strings.TrimPrefix(text, startedWith), startGroups)
	tasks, roles, byRole := strings.Cut(rest, startRoles)
	if s.Tasks, err = strconv.Atoi(strings.TrimSuffix(tasks, startTasks)); err != nil || s.Tasks < 1 {
		return Start{}, fmt.Errorf("reading how many tasks a gang started with: %q", text)
	}
	if byRole {
		err = json.Unmarshal([]byte(roles), &s.Roles)
	}
	if bySubGroup && err == nil {
		err = json.Unmarshal([]byte(subGroups), &s.SubGroups)
	}
	return s, err
}

// begin takes note of a job that is whole for the first time, and of one that holds nothing any more. Members whose bind may be refused yet do not count.
// It reports whether the job has been bound with its minimum just now, and never was before.
func (e *entry) begin() (first bool) {
	ready := e.job.Counts.Ready() > 0
	switch {
	case !ready && e.ready:
		e.end()
	case ready && e.job.Start.Tasks == 0 && e.job.Group != nil && e.job.confirmed():
		e.job.Start = Start{Tasks: max(1, e.job.Min()), Roles: maps.Clone(e.job.roleMins()), SubGroups: e.job.subGroupMins()}
	}
	e.ready = ready
	if !ready || e.begun {
		return false
	}
	e.begun = e.job.Start.Tasks > 0 || e.job.Key.Source == FromPod && e.job.confirmed()
	return e.begun
}

// end takes note that a job holds nothing any more. It is another gang when it starts again. If it was whole, and its members were not evicted by this
// process, it has to be let into its queue anew, as in Volcano, where its PodGroup is Pending again. There whose members were evicted is let in again before
// anybody has their room.
func (e *entry) end() {
	if e.job.Start.Tasks > 0 && !slices.ContainsFunc(e.job.Tasks, func(t *Task) bool { return t.Evicting }) {
		e.admitted = false
	}
	e.job.Start = Start{}
}

// Half reports whether some members of a gang hold nodes, and too few, and it was never whole: what it holds is of no use to it. Of gangs
// whose PodGroup does not keep their start for the next process nobody knows that they were never whole.
func (j *Job) Half() bool {
	return (j.Key.Source == FromVolcano || j.Key.Source == FromNative) && j.Start.Tasks == 0 && j.Partial()
}

// Partial reports whether some members of the job hold nodes, and too few: fewer than its minimum if it was never
// whole, or fewer than it started with, as far as that is still asked for. It must be completed before anything else.
func (j *Job) Partial() bool { return j.Placed() > 0 && j.shortOf((*Counts).Ready) }

// OwnHalf is what the members of a gang hold that is Partial; nil of other jobs. Where the job is judged by what is due, or by its share, this
// does not count against it: its members count as new. Where it comes to what must never be exceeded, a capability for instance, it counts.
func (j *Job) OwnHalf() resource.Vector {
	if !j.Partial() {
		return nil
	}
	half := j.Usage.Allocated.Clone()
	half.Sub(j.Usage.Reserved)
	return half
}

// Whole reports whether some members of the job hold nodes, and enough, even without those of which it is not known yet whether they are
// bound.
func (j *Job) Whole() bool { return j.Placed() > 0 && !j.shortOf((*Counts).Confirmed) }

// shortOf reports whether too few members are among those that are counted.
func (j *Job) shortOf(ready func(*Counts) int) bool {
	switch {
	case j.startedWith(ready):
		return false
	case j.Start.Tasks == 0:
		return true
	case ready(&j.Counts) < min(j.Start.Tasks, j.Min()):
		return true
	}
	for role, least := range j.roleMins() {
		if c := j.Role(role); ready(&c) < min(j.Start.Roles[role], least) {
			return true
		}
	}
	for i, n := range j.wholeSubGroups(ready) {
		if p := &j.Group.SubGroups[i]; n < min(j.Start.SubGroups[p.startKey()], p.Min) {
			return true
		}
	}
	return false
}
