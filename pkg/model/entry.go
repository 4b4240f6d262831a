// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// entry is the live form of one job.
type entry struct {
	job Job
	// index maps the UID of each task to its place in job.Tasks.
	index map[types.UID]int
	// admitted: the job has been let into its queue.
	admitted bool
	// ready: some task holds a node or has succeeded. Begun: the job has been bound with its minimum at some time.
	ready, begun bool
	// lent: job.Pending has been handed out, and is copied before it changes. Those who read the model set it.
	lent atomic.Bool
	// oldest is the task that was created first, as long as the job's queue, or more, goes by it.
	oldest types.UID
	// frozen is the immutable copy handed out; nil when the live job has changed since.
	frozen *Job
}

func (s *State) entry(key JobKey) *entry {
	e := s.jobs[key]
	if e == nil {
		e = &entry{job: Job{Key: key}, index: map[types.UID]int{}}
		s.jobs[key] = e
	}
	return e
}

func (s *State) task(uid types.UID) *Task {
	key, ok := s.jobOf[uid]
	if !ok {
		return nil
	}
	e := s.jobs[key]
	return e.job.Tasks[e.index[uid]]
}

// putTask adds or replaces a task of its job.
func (s *State) putTask(t *Task, c *Change) {
	e := s.entry(t.Job)
	if i, ok := e.index[t.UID]; ok {
		before := e.job.Tasks[i]
		s.touchKept(before, t, c)
		s.ledger.follow(before, t)
		e.job.Tasks[i] = t
		if !t.countsAs(before) || !e.job.Group.sameSubGroup(before.Pod, t.Pod) {
			e.count(before, -1)
			e.count(t, 1)
		}
	} else {
		s.touchKept(nil, t, c)
		s.ledger.follow(nil, t)
		e.index[t.UID] = len(e.job.Tasks)
		e.job.Tasks = append(e.job.Tasks, t)
		s.jobOf[t.UID] = t.Job
		e.count(t, 1)
		if first := e.first(); first != nil && byAge(t, first) < 0 {
			e.oldest = t.UID
		}
	}
	if t.Nominated != "" {
		s.nominated[t.UID] = true
	} else {
		delete(s.nominated, t.UID)
	}
	s.claims.follow(t)
	c.Tasks = append(c.Tasks, t.UID)
	s.touch(t.Job, e, c)
}

// touchKept records that the room which is kept on the node of a task's nomination changed; before is nil for a new task.
func (s *State) touchKept(before, t *Task, c *Change) {
	was, is, at := "", "", ""
	if before != nil {
		was = before.Nominated
	}
	if t != nil {
		is, at = t.Nominated, t.Node
	}
	if was == is {
		return
	}
	if was != "" && at != was {
		c.Events |= KeptRoomFreed
	}
	for _, name := range []string{was, is} {
		if name != "" {
			s.ledger.touch(name)
		}
	}
}

// dropTask removes a task from its job, if it is in one.
func (s *State) dropTask(uid types.UID, c *Change) {
	key, ok := s.jobOf[uid]
	if !ok {
		return
	}
	delete(s.jobOf, uid)
	delete(s.nominated, uid)
	e := s.jobs[key]
	i, last := e.index[uid], len(e.job.Tasks)-1
	s.touchKept(e.job.Tasks[i], nil, c)
	s.ledger.follow(e.job.Tasks[i], nil)
	if e.job.Tasks[i].Evicting {
		c.Events |= EvictionAnswered
	}
	e.count(e.job.Tasks[i], -1)
	s.claims.forget(uid)
	moved := e.job.Tasks[last]
	e.job.Tasks[i] = moved
	e.index[moved.UID] = i
	e.job.Tasks[last] = nil
	e.job.Tasks = e.job.Tasks[:last]
	delete(e.index, uid)
	c.Tasks = append(c.Tasks, uid)
	s.touch(key, e, c)
}

// countsAs reports whether the job's counters do not tell the task from what it was before.
func (t *Task) countsAs(before *Task) bool {
	return t.Status == before.Status && t.Role == before.Role && t.Class == before.Class && t.Traits == before.Traits &&
		t.Node == before.Node && t.Nominated == before.Nominated && t.Reserved == before.Reserved && t.Gated == before.Gated && t.QueueGated == before.QueueGated && t.Claims == before.Claims &&
		t.BestEffort == before.BestEffort && t.HeldBy == before.HeldBy && slices.Equal(t.Request, before.Request) &&
		(t.Traits&HasClaims == 0 || slices.Equal(t.Charge, before.Charge))
}

// count adds n times the task to the counters of its job.
func (e *entry) count(t *Task, n int) {
	e.job.Counts.add(t, n)
	e.job.Usage.add(t, int64(n))
	i, ok := findRole(e.job.Roles, t.Role)
	if !ok {
		e.job.Roles = slices.Insert(e.job.Roles, i, RoleCounts{Role: t.Role})
	}
	if e.job.Roles[i].add(t, n); e.job.Roles[i].Counts == (Counts{}) {
		e.job.Roles = slices.Delete(e.job.Roles, i, i+1)
	}
	e.job.countSubGroup(t, n)
	if t.HeldBy != "" {
		e.job.HeldBy = t.HeldBy
	}
	if t.Placeable() {
		if e.lent.Load() {
			e.job.Pending = slices.Clone(e.job.Pending)
			e.lent.Store(false)
		}
		i, ok := findDemand(e.job.Pending, t)
		if !ok {
			e.job.Pending = slices.Insert(e.job.Pending, i, demandOf(t))
		}
		if n > 0 {
			// Tasks that share claims are of one class, and are charged for more once these have devices.
			e.job.Pending[i].Charge = t.Charge
		}
		if e.job.Pending[i].Count += n; e.job.Pending[i].Count == 0 {
			e.job.Pending = slices.Delete(e.job.Pending, i, i+1)
		}
		// Traits only grow: a job that once had a pod with volumes is woken once too often, never too seldom.
		e.job.Traits |= t.Traits
	}
}

// regroup gives the job another PodGroup, or none.
func (e *entry) regroup(g *Group) {
	same := sameSubGroups(e.job.Group, g)
	if e.job.Group = g; !same {
		e.job.recountSubGroups()
	}
}

// touch records that a job changed, and forgets a job of which nothing is left.
func (s *State) touch(key JobKey, e *entry, c *Change) {
	if e.job.Group == nil && len(e.job.Tasks) == 0 {
		delete(s.jobs, key)
	}
	first := e.begin()
	e.findOldest()
	e.frozen = nil
	if first && s.leads {
		c.Started = append(c.Started, s.started(e))
	}
	s.snapshots.changed(key, len(s.jobs))
	c.Jobs = append(c.Jobs, key)
}

// freeze returns the immutable form of a live job.
func (s *State) freeze(e *entry) *Job {
	if e.frozen == nil {
		j := s.head(e)
		j.Tasks = slices.Clone(e.job.Tasks)
		e.frozen = &j
	}
	return e.frozen
}

// head is the live job without its tasks.
func (s *State) head(e *entry) Job {
	j := e.job
	j.Tasks = nil
	j.Usage = e.job.Usage.clone()
	j.Admitted = e.admitted
	j.Roles = slices.Clone(e.job.Roles)
	j.SubGroups = slices.Clone(e.job.SubGroups)
	j.Pending = slices.Clip(e.job.Pending)
	e.lent.Store(true)
	first := e.first()
	j.Created, j.UID = e.origin()
	j.Priority = s.priorityOf(j.Group, first)
	j.Queue = s.queueOf(e)
	return j
}

// origin is when the job was created, and its UID: those of its PodGroup, or else of its oldest pod.
func (e *entry) origin() (created time.Time, uid types.UID) {
	if g := e.job.Group; g != nil {
		return g.Created, g.UID
	}
	if first := e.first(); first != nil {
		return first.Created, first.UID
	}
	return time.Time{}, ""
}

// queueOf is the queue of a job, never empty.
func (s *State) queueOf(e *entry) string {
	return cmp.Or(e.queue(), s.namespaces[e.job.Key.Namespace], DefaultQueue)
}

// started is what is told of a job that has been bound with its minimum.
func (s *State) started(e *entry) Started {
	created, _ := e.origin()
	return Started{Job: e.job.Key, Queue: s.queueOf(e), Created: created}
}

// priorityOf is the priority of a job: what its PodGroup says, or else its oldest pod. A controller that makes its pods a gang says nothing.
func (s *State) priorityOf(g *Group, first *Task) int32 {
	switch {
	case g != nil && g.Priority != nil:
		return *g.Priority
	case g != nil && (!g.ByOwner || first == nil):
		return s.priority(g.PriorityClass)
	case first != nil:
		return podPriority(first.Pod)
	}
	return 0
}

// queue is the one that the job's PodGroup names, or else its oldest pod; empty when neither does.
func (e *entry) queue() string {
	if g := e.job.Group; g != nil && g.Queue != "" {
		return g.Queue
	}
	if first := e.first(); first != nil {
		return first.Pod.Annotations[QueueAnnotation]
	}
	return ""
}

// first is the oldest task; nil when the job has none.
func (e *entry) first() *Task {
	if i, ok := e.index[e.oldest]; ok {
		return e.job.Tasks[i]
	}
	return nil
}

// findOldest finds the task that was created first, if something goes by it and it is not known.
func (e *entry) findOldest() {
	if g := e.job.Group; g != nil && g.Queue != "" && !g.ByOwner || len(e.job.Tasks) == 0 || e.first() != nil {
		return
	}
	e.oldest = slices.MinFunc(e.job.Tasks, byAge).UID
}

// byAge is the order of tasks by when they were created, the first one first.
func byAge(a, b *Task) int { return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.UID, b.UID)) }

func (s *State) priority(class string) int32 {
	if value, ok := s.classes[class]; ok {
		return value
	}
	return s.defaultPriority
}

func podPriority(pod *corev1.Pod) int32 {
	if pod.Spec.Priority != nil {
		return *pod.Spec.Priority
	}
	return 0
}
