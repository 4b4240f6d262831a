// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// SubGroupPolicy makes subgroups of some tasks of a gang. Each is placed whole or not at all (Volcano's spec.subGroupPolicy).
type SubGroupPolicy struct {
	// Name is what users call it; no two of a gang are equal.
	Name string
	// Size is how many tasks of a subgroup are placed together, at least 1. Those beyond follow one by one.
	Size int
	// Min is how many whole subgroups the gang starts with; zero: it does not matter.
	Min int
	// Selector says which tasks are in subgroups of the policy, and Keys which of these in the same one: those with equal values of all
	// these labels. A task that lacks one of the labels is in none. Without keys there is one subgroup.
	Selector labels.Selector
	Keys     []string
	// Topology is how near each other the tasks of a subgroup are to be; nil when it does not matter.
	Topology *NetworkTopology
	// Problem says what is wrong with it and what to change, so that the gang cannot start; empty when nothing is.
	Problem string
}

// equal reports whether two policies make the same subgroups of the same tasks.
func (p *SubGroupPolicy) equal(o *SubGroupPolicy) bool {
	return p.Name == o.Name && p.Size == o.Size && p.Min == o.Min && slices.Equal(p.Keys, o.Keys) && p.selector() == o.selector()
}

func (p *SubGroupPolicy) selector() string {
	if p.Selector == nil {
		return "none"
	}
	return p.Selector.String()
}

// startKey names the policy in what a gang started with: one that makes other subgroups by now has another key.
func (p *SubGroupPolicy) startKey() string {
	h := fnv.New32a()
	fmt.Fprintf(h, "%s\x00%q", p.selector(), p.Keys)
	return fmt.Sprintf("%s/%d/%08x", p.Name, p.Size, h.Sum32())
}

// SubGroupID tells the subgroups of a job apart.
type SubGroupID struct {
	// Policy is the position of the policy in its PodGroup.
	Policy int
	// Values are those of the policy's keys, with slashes between them, which no label value contains.
	Values string
}

// compare orders the subgroups of a policy by their first value as a number, which most often is an index, then by all of them.
func (id SubGroupID) compare(o SubGroupID) int {
	if c := cmp.Compare(id.Policy, o.Policy); c != 0 {
		return c
	}
	x, xErr := strconv.Atoi(firstValue(id.Values))
	y, yErr := strconv.Atoi(firstValue(o.Values))
	switch {
	case xErr == nil && yErr == nil && x != y:
		return cmp.Compare(x, y)
	case (xErr == nil) != (yErr == nil):
		if xErr == nil {
			return -1
		}
		return 1
	}
	return cmp.Compare(id.Values, o.Values)
}

func firstValue(values string) string {
	first, _, _ := strings.Cut(values, "/")
	return first
}

// subGroupOf returns the subgroup of a pod: that of the first policy that covers it. Source: reference section 2.7. There a policy without
// keys covers no pod.
func (g *Group) subGroupOf(pod *corev1.Pod) (id SubGroupID, ok bool) {
	if g == nil {
		return SubGroupID{}, false
	}
	for i := range g.SubGroups {
		p := &g.SubGroups[i]
		if p.Selector == nil || !p.Selector.Matches(labels.Set(pod.Labels)) {
			continue
		}
		values := make([]string, len(p.Keys))
		covers := true
		for k, key := range p.Keys {
			values[k] = pod.Labels[key]
			covers = covers && values[k] != ""
		}
		if covers {
			return SubGroupID{Policy: i, Values: strings.Join(values, "/")}, true
		}
	}
	return SubGroupID{}, false
}

// sameSubGroup reports whether a pod is in the subgroup in which it was.
func (g *Group) sameSubGroup(before, now *corev1.Pod) bool {
	if g == nil || len(g.SubGroups) == 0 || maps.Equal(before.Labels, now.Labels) {
		return true
	}
	was, in := g.subGroupOf(before)
	is, stays := g.subGroupOf(now)
	return in == stays && was == is
}

// nameOf is what users are told of a subgroup.
func (g *Group) nameOf(id SubGroupID) string {
	name := g.SubGroups[id.Policy].Name
	if id.Values == "" {
		return name
	}
	return name + "/" + id.Values
}

// sameSubGroups reports whether two groups make the same subgroups.
func sameSubGroups(g, o *Group) bool {
	var x, y []SubGroupPolicy
	if g != nil {
		x = g.SubGroups
	}
	if o != nil {
		y = o.SubGroups
	}
	return slices.EqualFunc(x, y, func(a, b SubGroupPolicy) bool { return a.equal(&b) })
}

// SubGroupCounts are the counts of one subgroup of a job.
type SubGroupCounts struct {
	ID SubGroupID
	Counts
}

func findSubGroup(list []SubGroupCounts, id SubGroupID) (int, bool) {
	return slices.BinarySearchFunc(list, id, func(c SubGroupCounts, id SubGroupID) int { return c.ID.compare(id) })
}

// countSubGroup counts a task of the job n times in its subgroup, if it is in one. Subgroups without tasks are left out.
func (j *Job) countSubGroup(t *Task, n int) {
	if j.Group == nil || len(j.Group.SubGroups) == 0 {
		return
	}
	id, ok := j.Group.subGroupOf(t.Pod)
	if !ok {
		return
	}
	i, ok := findSubGroup(j.SubGroups, id)
	if !ok {
		j.SubGroups = slices.Insert(j.SubGroups, i, SubGroupCounts{ID: id})
	}
	if j.SubGroups[i].add(t, n); j.SubGroups[i].Counts == (Counts{}) {
		j.SubGroups = slices.Delete(j.SubGroups, i, i+1)
	}
}

// recountSubGroups counts the subgroups anew, of a job whose PodGroup makes others.
func (j *Job) recountSubGroups() {
	j.SubGroups = nil
	for _, t := range j.Tasks {
		j.countSubGroup(t, 1)
	}
}

// Lacks is how many tasks of a subgroup have to be placed for it to be whole; zero or less when it is.
func (j *Job) Lacks(c *SubGroupCounts) int {
	return j.Group.SubGroups[c.ID.Policy].Size - c.Ready() - c.PendingBestEffort
}

// wholeSubGroups counts, for each policy, the subgroups of which enough tasks are among those that are counted.
func (j *Job) wholeSubGroups(counted func(*Counts) int) []int {
	if j.Group == nil || len(j.Group.SubGroups) == 0 {
		return nil
	}
	whole := make([]int, len(j.Group.SubGroups))
	for i := range j.SubGroups {
		c := &j.SubGroups[i]
		if counted(&c.Counts) >= j.Group.SubGroups[c.ID.Policy].Size {
			whole[c.ID.Policy]++
		}
	}
	return whole
}

// hasSubGroups reports whether, of each policy, as many subgroups as it asks for have enough tasks among those that are counted.
func (j *Job) hasSubGroups(counted func(*Counts) int) bool {
	for i, n := range j.wholeSubGroups(counted) {
		if n < j.Group.SubGroups[i].Min {
			return false
		}
	}
	return true
}

// subGroupMins are how many subgroups of each policy the gang starts with, by the policy's key; nil when none has a minimum.
func (j *Job) subGroupMins() map[string]int {
	if j.Group == nil {
		return nil
	}
	var mins map[string]int
	for i := range j.Group.SubGroups {
		if p := &j.Group.SubGroups[i]; p.Min > 0 {
			if mins == nil {
				mins = map[string]int{}
			}
			mins[p.startKey()] = p.Min
		}
	}
	return mins
}

// missingSubGroups says how many more subgroups of each policy have to be whole, and how many tasks that takes at least; nil if none.
func (j *Job) missingSubGroups(lost bool) (missing []int, tasks int) {
	for i, n := range j.wholeSubGroups((*Counts).readyOrBestEffort) {
		p := &j.Group.SubGroups[i]
		least := p.Min
		if lost {
			least = min(least, j.Start.SubGroups[p.startKey()])
		}
		if n >= least {
			continue
		}
		if missing == nil {
			missing = make([]int, len(j.Group.SubGroups))
		}
		missing[i] = least - n
		tasks += j.cheapest(i, missing[i])
	}
	return missing, tasks
}

// cheapest is the least number of tasks that make so many more subgroups of a policy whole.
func (j *Job) cheapest(policy, n int) int {
	var needs []int
	for i := range j.SubGroups {
		if c := &j.SubGroups[i]; c.ID.Policy == policy && j.Lacks(c) > 0 {
			needs = append(needs, j.Lacks(c))
		}
	}
	slices.Sort(needs)
	tasks := 0
	for i := range n {
		if i < len(needs) {
			tasks += needs[i]
		} else {
			tasks += j.Group.SubGroups[policy].Size
		}
	}
	return tasks
}

// nextStep is the least number of tasks by which a job grows that has started, or that is completed piecemeal: one, unless all that wait are of
// subgroups that are not whole, or not begun.
func (j *Job) nextStep() int {
	inSubGroups, least := 0, 0
	for i := range j.SubGroups {
		c := &j.SubGroups[i]
		inSubGroups += c.Placeable()
		switch need := j.Lacks(c); {
		case c.Placeable() == 0:
		case j.Piecemeal && c.Ready() > 0:
			return 1
		case need <= 1:
			return 1
		case need <= c.Placeable() && (least == 0 || need < least):
			least = need
		}
	}
	if j.Counts.Placeable() > inSubGroups {
		return 1
	}
	return max(1, least)
}

// badSubGroups complains about the first policy that cannot be followed.
func (j *Job) badSubGroups() Reason {
	if j.Group == nil {
		return Reason{}
	}
	for i := range j.Group.SubGroups {
		if p := &j.Group.SubGroups[i]; p.Problem != "" {
			return Reason{Kind: InvalidPodGroup, Subject: "spec.subGroupPolicy", Message: p.Problem}
		}
	}
	return Reason{}
}

// lackingSubGroups says of which policy too few subgroups can become whole with the pods that there are.
func (j *Job) lackingSubGroups() Reason {
	for i, n := range j.wholeSubGroups((*Counts).Valid) {
		if p := &j.Group.SubGroups[i]; n < p.Min {
			return Reason{Kind: NotEnoughPodsOfTask, Subject: p.Name, Message: fmt.Sprintf(
				"%d of %d subgroups of %q have %d pods: create the missing ones, or lower its minSubGroups in spec.subGroupPolicy",
				n, p.Min, p.Name, p.Size)}
		}
	}
	return Reason{}
}

// SubGroupOf tells the subgroup of a task of the job; false for a task in none.
func (j *Job) SubGroupOf(t *Task) (SubGroupID, bool) {
	if j.Group == nil || len(j.Group.SubGroups) == 0 {
		return SubGroupID{}, false
	}
	return j.Group.subGroupOf(t.Pod)
}
