// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// Group is what a PodGroup asks for, whichever API it comes from. Groups are immutable.
type Group struct {
	UID types.UID
	// Queue is the queue that the PodGroup names; empty when it names none, so that its pods or its namespace may.
	Queue string
	// MinMember is how many tasks start together or not at all. Zero: each on its own.
	MinMember int
	// MinTaskMember is the minimum of each role that has one.
	MinTaskMember map[string]int
	// SubGroups are policies by which tasks start in subgroups, each whole or not at all.
	SubGroups []SubGroupPolicy
	// MinResources is what the user says the minimum needs, of resources that nodes have; nil when absent.
	MinResources resource.Vector
	// MinQuota is the same with all names as given, those that only quotas use ("requests.cpu") included.
	MinQuota resource.Vector
	// Phase is the PodGroup's phase as the API server has it; empty when the API has none.
	Phase Phase
	// WaitingTime is how long the job is to wait at most ("sla-waiting-time"); zero when it does not say.
	WaitingTime time.Duration
	// ExpectedRuntime is how long each pod is expected to run, as far as the PodGroup says so; zero when it does not.
	ExpectedRuntime time.Duration
	// PreemptionDelay is how old the job is before others are evicted for it; 0, or up to 8760h.
	PreemptionDelay time.Duration
	// WithoutRoom is since when the PodGroup says that there is no room for it; zero when it does not. Held: it says that room is reserved for it.
	WithoutRoom time.Time
	Held        bool
	// Terms are how long the gang may be broken, as far as the PodGroup says so.
	Terms Terms
	// Problem says what is wrong with the PodGroup's annotations and what to change; empty when nothing is.
	Problem string
	// Topology is how near each other the tasks are to be; nil when it does not matter.
	Topology *NetworkTopology
	// TopologyKey is a label of nodes: all tasks are to be on nodes with one value of it; empty when they need not.
	TopologyKey string
	// PriorityClass names the job's PriorityClass; empty for the cluster's default.
	PriorityClass string
	// Priority is the job's, where the API server has already looked up what its class stands for; nil: go by the class.
	Priority *int32
	// ByOwner: a controller makes its pods a gang, and there is no PodGroup. Its priority is that of its pods.
	ByOwner bool
	// Whole: its pods are disrupted all together or not at all.
	Whole bool
	// Start is what the gang started with as the API server has it, from the last process that knew.
	Start   Start
	Created time.Time
	// Object is the PodGroup as last seen; never to be changed.
	Object runtime.Object
}

// NetworkTopology is inside of which HyperNodes a gang is to be (Volcano's spec.networkTopology).
type NetworkTopology struct {
	// Hard: it must not span more than one HyperNode of the highest tier that is given, by number or by name; else the fastest
	// that has room is used.
	Hard        bool
	HighestTier int
	TierName    string
	// Field is where a user said so.
	Field string
}

// Phase is the phase of a PodGroup (volcano.sh/apis scheduling/v1beta1, PodGroupPhase).
type Phase string

// The phases.
const (
	PhasePending   Phase = "Pending"
	PhaseInqueue   Phase = "Inqueue"
	PhaseRunning   Phase = "Running"
	PhaseUnknown   Phase = "Unknown"
	PhaseCompleted Phase = "Completed"
)

// admitted reports whether a PodGroup in this phase has been let into its queue.
func (p Phase) admitted() bool { return p != "" && p != PhasePending }

// roleTotal is the sum of the role minimums.
func (g *Group) roleTotal() int {
	total := 0
	for _, n := range g.MinTaskMember {
		total += n
	}
	return total
}

// Nodes are the nodes that hold tasks of the job, or on which room is kept for them, one for each such task.
func (j *Job) Nodes() []string {
	var nodes []string
	for _, t := range j.Tasks {
		switch {
		case t.Nominated != "":
			nodes = append(nodes, t.Nominated)
		case t.Node != "" && t.Status.HoldsNode() && t.Status != Releasing:
			nodes = append(nodes, t.Node)
		}
	}
	return nodes
}

// protectsLike reports whether a group keeps as many of its members from being evicted as another, as long if the gang is broken, for the
// same queue and at the same priority.
func (g *Group) protectsLike(o *Group) bool {
	return g.MinMember == o.MinMember && maps.Equal(g.MinTaskMember, o.MinTaskMember) && sameSubGroups(g, o) &&
		g.PriorityClass == o.PriorityClass && ptr.Equal(g.Priority, o.Priority) && g.Queue == o.Queue && g.Terms == o.Terms && g.Whole == o.Whole &&
		g.evictedLike(o)
}

// Counts are how many tasks of a job, or of one role of it, are in which state (reference section 2.5).
type Counts struct {
	ByStatus [numStatuses]int
	// PendingBestEffort tasks ask for nothing and count as ready before they are placed.
	PendingBestEffort int
	// PendingGated tasks carry scheduling gates.
	PendingGated int
	// PendingHeld tasks are those of PendingGated that a plugin keeps out of the scheduling queue.
	PendingHeld int
	// AtQueueGate are those of PendingGated that wait for their queue to let them through, LetThrough those whose gate is about to go.
	AtQueueGate, LetThrough int
	// ReleasingPlaced tasks are terminating on a node.
	ReleasingPlaced int
	// Killed tasks are Failed because they were deleted: their pods go as soon as the kubelet is done.
	Killed int
	// Nominated tasks are Pending, and room is kept for them until victims have left it (Volcano's Pipelined).
	Nominated int
}

func (c *Counts) add(t *Task, n int) {
	c.ByStatus[t.Status] += n
	if t.Nominated != "" {
		c.Nominated += n
	}
	if t.Status == Pending && t.HeldBy != "" {
		c.PendingHeld += n
	}
	switch {
	case t.Status == Pending && t.Gated:
		c.PendingGated += n
		if t.QueueGated {
			c.AtQueueGate += n
		} else if t.Claims && t.HeldBy == "" {
			c.LetThrough += n
		}
	case t.Status == Pending && t.BestEffort:
		c.PendingBestEffort += n
	case t.Status == Releasing && t.Node != "":
		c.ReleasingPlaced += n
	case t.Status == Failed && t.Pod.DeletionTimestamp != nil:
		c.Killed += n
	}
}

// Ready tasks hold a node or have succeeded (ReadyTaskNum).
func (c *Counts) Ready() int {
	return c.ByStatus[Allocated] + c.ByStatus[Bound] + c.ByStatus[Running] + c.ByStatus[Succeeded]
}

// readyOrBestEffort adds those that Volcano's readiness takes as given before they are placed.
func (c *Counts) readyOrBestEffort() int { return c.Ready() + c.PendingBestEffort }

// Confirmed tasks are those of Ready that are known to be bound.
func (c *Counts) Confirmed() int { return c.Ready() - c.ByStatus[Allocated] }

// Valid tasks count toward the minimum or may yet do so (ValidTaskNum): all but failed, unknown and terminating ones.
func (c *Counts) Valid() int { return c.Ready() + c.ByStatus[Pending] }

// Scheduled tasks have been confirmed on a node, finished ones included (ScheduledTaskNum).
func (c *Counts) Scheduled() int {
	return c.ByStatus[Running] + c.ByStatus[Bound] + c.ByStatus[Failed] + c.ByStatus[Succeeded]
}

// Completed tasks have finished, well or badly.
func (c *Counts) Completed() int { return c.ByStatus[Succeeded] + c.ByStatus[Failed] }

// Placeable tasks wait for a node and may get one.
func (c *Counts) Placeable() int { return c.ByStatus[Pending] - c.PendingGated }

// Total is the number of tasks.
func (c *Counts) Total() int {
	total := 0
	for _, n := range c.ByStatus {
		total += n
	}
	return total
}

// Usage is what a job takes, asks for and holds back.
type Usage struct {
	// Allocated is what the tasks on nodes ask for, those that terminate left out, and those for which room is kept.
	Allocated resource.Vector
	// Reserved is the part of Allocated that is only kept. What pods still hold that nobody evicts is not kept in this sense: see Task.Reserved.
	Reserved resource.Vector
	// Requested is Allocated and what all waiting tasks ask for, gated ones included.
	Requested resource.Vector
	// Gated is what waiting tasks ask for that carry scheduling gates other than the queue gate alone.
	Gated resource.Vector
	// Claimed is what those waiting tasks ask for that the queue has let through its gate. Tasks for which evictions make room are not counted.
	Claimed resource.Vector
}

func (u *Usage) add(t *Task, n int64) {
	switch t.Status {
	case Allocated, Bound, Running:
		u.Allocated.AddTimes(t.Charge, n)
		u.Requested.AddTimes(t.Charge, n)
	case Pending:
		if t.Nominated != "" && !t.Reserved {
			u.Allocated.AddTimes(t.Charge, n)
			u.Reserved.AddTimes(t.Charge, n)
		} else if t.Claims {
			u.Claimed.AddTimes(t.Charge, n)
		}
		u.Requested.AddTimes(t.Charge, n)
		if t.Gated && !t.QueueGated && !t.Claims {
			u.Gated.AddTimes(t.Charge, n)
		}
	}
}

// clone returns a copy that shares nothing with u. The vectors lie in one array.
func (u *Usage) clone() Usage {
	all := make(resource.Vector, 0, len(u.Allocated)+len(u.Requested)+len(u.Gated)+len(u.Reserved)+len(u.Claimed))
	part := func(v resource.Vector) resource.Vector {
		from := len(all)
		all = append(all, v...)
		return all[from:len(all):len(all)]
	}
	return Usage{
		Allocated: part(u.Allocated), Requested: part(u.Requested), Gated: part(u.Gated), Reserved: part(u.Reserved), Claimed: part(u.Claimed),
	}
}

// RoleCounts are the counts of one role of a job.
type RoleCounts struct {
	Role string
	Counts
}

// Demand is a number of equal tasks that wait for nodes.
type Demand struct {
	Class, Shape, Ask Class
	Role              string
	Count             int
	// Pod is one of them, or was: its spec is that of all.
	Pod *corev1.Pod
	// Request is what one task asks of its node. Charge is what it counts for its queue.
	Request, Charge resource.Vector
}

// Job is a PodGroup and its pods, or a single pod. Jobs taken from a State are immutable.
type Job struct {
	Key JobKey
	// Group is nil for a job of one, and for pods whose PodGroup does not exist. Its UID tells one that took the name of another.
	Group *Group
	// Queue is the queue of the job, never empty.
	Queue string
	// Priority is the value of the job's PriorityClass; of a job of one, the pod's priority.
	Priority int32
	Created  time.Time
	UID      types.UID
	Counts   Counts
	Usage    Usage
	// Start is the minimum with which the job was first whole; zero for a job without a PodGroup.
	Start Start
	// Admitted: the job has been let into its queue (Volcano's enqueue) and may have turns.
	Admitted bool
	// NeverFits: the job cannot start however empty the nodes are. The state does not say so; it is for those to set who compare jobs
	// with nodes.
	NeverFits bool
	// Stalled: the job was let in, and nodes have refused it for long, or it has failed. The state does not say so either.
	Stalled bool
	// Piecemeal: the job, a gang that is Partial, may place its missing members one after the other, as they fit. The state does not say so
	// either.
	Piecemeal bool
	// Roles are the counts of each role that has tasks, by role.
	Roles []RoleCounts
	// SubGroups are the counts of each subgroup that has tasks, in the order in which they are tried.
	SubGroups []SubGroupCounts
	// Pending are the placeable tasks of each class, by class.
	Pending []Demand
	// Traits are all traits of the job's placeable tasks.
	Traits Traits
	// HeldBy is the plugin that was last found to keep a task out of the scheduling queue.
	HeldBy string
	// Tasks are all tasks, in no particular order.
	Tasks []*Task
}

// Role returns the counts of one role.
func (j *Job) Role(role string) Counts {
	if i, ok := findRole(j.Roles, role); ok {
		return j.Roles[i].Counts
	}
	return Counts{}
}

func findRole(roles []RoleCounts, role string) (int, bool) {
	return slices.BinarySearchFunc(roles, role, func(r RoleCounts, role string) int { return cmp.Compare(r.Role, role) })
}

func findDemand(demands []Demand, t *Task) (int, bool) {
	return slices.BinarySearchFunc(demands, t, func(d Demand, t *Task) int {
		return cmp.Or(bytes.Compare(d.Class[:], t.Class[:]), strings.Compare(d.Role, t.Role))
	})
}

// demandOf is a demand for tasks like the given one, with a count of 0.
func demandOf(t *Task) Demand {
	return Demand{Class: t.Class, Shape: t.Shape, Ask: t.Ask, Role: t.Role, Pod: t.Pod, Request: t.Request, Charge: t.Charge}
}

// Min is the number of tasks that start together: minMember, or 1 for a job of one.
func (j *Job) Min() int {
	if j.Group != nil {
		return j.Group.MinMember
	}
	return 1
}

// Over reports whether the job has completed and its pods are gone: nothing more is to come of it.
func (j *Job) Over() bool {
	return j.Group != nil && j.Group.Phase == PhaseCompleted && j.Counts.Total() == 0
}

// LetIn reports whether the job may have turns as far as its queue is concerned: it was admitted, or has tasks on nodes.
func (j *Job) LetIn() bool { return j.Admitted || j.Counts.Ready() > j.Counts.ByStatus[Succeeded] }

// Together reports whether members of the job are to be near each other, so that those on nodes decide where others may go.
func (j *Job) Together() bool {
	return j.Group != nil && (j.Group.Topology != nil || j.Group.TopologyKey != "") || len(j.SubGroups) > 0
}

// Ungrouped returns the job with no minimum: each task starts on its own.
func (j *Job) Ungrouped() *Job {
	if j.Group == nil || j.Group.MinMember <= 1 && len(j.Group.MinTaskMember) == 0 && len(j.Group.SubGroups) == 0 {
		return j
	}
	loose, group := *j, *j.Group
	group.MinMember, group.MinTaskMember, group.SubGroups = 0, nil, slices.Clone(group.SubGroups)
	for i := range group.SubGroups {
		// They stay near each other all the same.
		group.SubGroups[i].Size, group.SubGroups[i].Min = 1, 0
	}
	loose.Group = &group
	return &loose
}

// roleMins are the role minimums in force. Volcano ignores them when their sum is above minMember.
func (j *Job) roleMins() map[string]int {
	if j.Group == nil || j.Group.MinMember < j.Group.roleTotal() {
		return nil
	}
	return j.Group.MinTaskMember
}

// Started reports whether the minimum of the job, of each of its roles and of its subgroups, holds nodes or has succeeded.
func (j *Job) Started() bool { return j.startedWith((*Counts).Ready) }

// confirmed reports whether the job would have started without the members of which it is not known yet whether they are bound.
func (j *Job) confirmed() bool { return j.startedWith((*Counts).Confirmed) }

// startedWith reports whether the minimum of the job, of each of its roles and of its subgroups, is among those that are counted.
func (j *Job) startedWith(ready func(*Counts) int) bool {
	if ready(&j.Counts) < j.Min() {
		return false
	}
	for role, least := range j.roleMins() {
		if c := j.Role(role); ready(&c) < least {
			return false
		}
	}
	return j.hasSubGroups(ready)
}

// Ready is Volcano's JobReady of the gang plugin: pending best-effort tasks count toward the minimums.
func (j *Job) Ready() bool { return j.startedWith((*Counts).readyOrBestEffort) }

// Requirement is how many tasks a turn has to place for it to be worth placing any.
type Requirement struct {
	// Tasks is the total; best-effort tasks that wait are taken as given and not part of it.
	Tasks int
	// Roles is the number needed of each role, part of the total. If it comes to more than the total, each task has to be of one of them.
	Roles map[string]int
	// SubGroups is how many subgroups of each policy have to become whole, by position; their tasks are part of the total. Nil for none.
	SubGroups []int
	// Gang: the turn is for the job's minimum, not for one more task of a job that has started.
	Gang bool
}

// Requirement returns what the job's next turn has to place.
func (j *Job) Requirement() Requirement {
	if j.Started() {
		return Requirement{Tasks: j.nextStep()}
	}
	r, ofRoles := j.missing()
	switch {
	case !j.Piecemeal || r.Tasks <= 1:
		return r
	case len(j.SubGroups) > 0:
		return Requirement{Tasks: j.nextStep()}
	case r.Tasks > ofRoles:
		// Any task helps.
		return Requirement{Tasks: 1}
	}
	return Requirement{Tasks: 1, Roles: r.Roles}
}

// missing is what a job has to place that has not started, and how many tasks of it the roles need. One that lost members is whole again with
// what it started with; the rest of a minimum that was raised since is for another turn.
func (j *Job) missing() (r Requirement, ofRoles int) {
	lost := j.Start.Tasks > 0 && j.Partial()
	all := j.Min()
	if lost {
		all = min(all, j.Start.Tasks)
	}
	r = Requirement{Gang: true, Tasks: max(0, all-j.Counts.Ready()-j.Counts.PendingBestEffort)}
	for role, least := range j.roleMins() {
		if lost {
			least = min(least, j.Start.Roles[role])
		}
		c := j.Role(role)
		if need := least - c.Ready() - c.PendingBestEffort; need > 0 {
			if r.Roles == nil {
				r.Roles = map[string]int{}
			}
			r.Roles[role] = need
			ofRoles += need
		}
	}
	var ofSubGroups int
	r.SubGroups, ofSubGroups = j.missingSubGroups(lost)
	r.Tasks = max(r.Tasks, ofRoles, ofSubGroups)
	return r, ofRoles
}

// Blocked says why the job may not have a turn whatever the nodes hold; the zero Reason means that it may. The order
// of the checks is that of Volcano's JobValid (gang plugin).
func (j *Job) Blocked() Reason {
	switch {
	case j.Group == nil && j.Key.Source == FromOwner:
		return Reason{Kind: PodGroupNotFound, Message: fmt.Sprintf(
			"%s does not exist any more, which made a gang of its pods: delete them", j.Key)}
	case j.Group == nil && j.Key.Source != FromPod:
		return Reason{Kind: PodGroupNotFound, Message: fmt.Sprintf(
			"PodGroup %s does not exist: create it, or remove the group name from the pod", j.Key)}
	case j.Group != nil && j.Group.MinMember < 0:
		return Reason{Kind: InvalidPodGroup, Subject: j.minField(), Message: j.badMinimum()}
	}
	if r := cmp.Or(j.negativeRole(), j.badSubGroups()); r != (Reason{}) {
		return r
	}
	roles := j.roleMins()
	for _, role := range slices.Sorted(maps.Keys(roles)) {
		if c := j.Role(role); c.Valid() < roles[role] {
			return Reason{Kind: NotEnoughPodsOfTask, Subject: role, Message: fmt.Sprintf(
				"%d of %d pods of task %q exist: create pods with %s=%s, or lower spec.minTaskMember",
				c.Valid(), roles[role], role, RoleKey, role)}
		}
	}
	if r := j.lackingSubGroups(); r != (Reason{}) {
		return r
	}
	if valid := j.Counts.Valid(); valid < j.Min() {
		return Reason{Kind: NotEnoughTasks, Message: fmt.Sprintf(
			"%d of %d pods exist: create the missing ones, or lower %s", valid, j.Min(), j.minField())}
	}
	return j.gated()
}

// minField is what says the minimum of a gang to its users.
func (j *Job) minField() string {
	switch j.Key.Source {
	case FromNative:
		return "spec.schedulingPolicy.gang.minCount"
	case FromOwner:
		return "annotation " + MinMemberAnnotation
	}
	return "spec.minMember"
}

// badMinimum says what is wrong with a minimum below zero.
func (j *Job) badMinimum() string {
	if j.Key.Source == FromOwner {
		return j.Group.Problem
	}
	return fmt.Sprintf("spec.minMember of PodGroup %s is %d: set it to 0 or more", j.Key, j.Group.MinMember)
}

// negativeRole complains about the first role, by name, whose minimum is below zero.
func (j *Job) negativeRole() Reason {
	if j.Group == nil {
		return Reason{}
	}
	for _, role := range slices.Sorted(maps.Keys(j.Group.MinTaskMember)) {
		if least := j.Group.MinTaskMember[role]; least < 0 {
			return Reason{Kind: InvalidPodGroup, Subject: "spec.minTaskMember", Message: fmt.Sprintf(
				"spec.minTaskMember[%s] of PodGroup %s is %d: set it to 0 or more", role, j.Key, least)}
		}
	}
	return Reason{}
}

// gated says whether scheduling gates keep the job below its minimums.
func (j *Job) gated() Reason {
	if j.startedWith((*Counts).free) {
		return Reason{}
	}
	if held := j.Counts.PendingHeld; held > 0 {
		return Reason{Kind: SchedulingGated, Subject: j.HeldBy, Message: fmt.Sprintf(
			"%d of %d pods are kept out of the scheduling queue by plugin %s: create what they name and is missing, such as a resource claim",
			held, j.Counts.Total(), j.HeldBy)}
	}
	return Reason{Kind: SchedulingGated, Message: fmt.Sprintf(
		"%d of %d pods carry scheduling gates", j.Counts.PendingGated, j.Counts.Total())}
}
