// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// State is the live model. Its writers are the informers (API truth) and the Gang plugin (Assume, Forget); each write
// is idempotent by UID, so the order of events does not matter. Every write returns what it changed and passes the
// same to the observers, after the lock is released.
type State struct {
	// mu guards everything below except observers. It is never held while calling out.
	mu sync.RWMutex
	// schedulers are the scheduler names whose pods are tasks; pods of others are usage only.
	schedulers map[string]bool
	jobs       map[JobKey]*entry
	// jobOf maps the UID of each task to the job that holds it.
	jobOf  map[types.UID]JobKey
	queues map[string]*Queue
	// classes maps the name of each PriorityClass to its value; defaultPriority is that of the global default.
	classes         map[string]int32
	defaultPriority int32
	globalDefault   string
	ledger          ledger
	snapshots       snapshotter

	observers []func(Change)
}

// entry is the live form of one job.
type entry struct {
	job Job
	// index maps the UID of each task to its place in job.Tasks.
	index map[types.UID]int
	// frozen is the immutable copy handed out; nil when the live job has changed since.
	frozen *Job
}

// NewState returns an empty model. Observers are told of every
// change, in the goroutine that made it, with no lock held.
func NewState(observers ...func(Change)) *State {
	return &State{
		schedulers: map[string]bool{},
		jobs:       map[JobKey]*entry{},
		jobOf:      map[types.UID]JobKey{},
		queues:     map[string]*Queue{},
		classes:    map[string]int32{},
		ledger:     newLedger(),
		snapshots:  newSnapshotter(),
		observers:  observers,
	}
}

// Observe adds an observer. It must be called before the first write.
func (s *State) Observe(observer func(Change)) { s.observers = append(s.observers, observer) }

// AddScheduler makes the pods of one more scheduler name tasks. It must be called before the first pod is written.
func (s *State) AddScheduler(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.schedulers[name] = true
}

// Schedules reports whether the pods of a scheduler name are tasks.
func (s *State) Schedules(schedulerName string) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.schedulers[schedulerName]
}

// write runs fn under the lock and tells the observers what it changed.
func (s *State) write(fn func(*Change)) Change {
	var c Change
	s.mu.Lock()
	fn(&c)
	s.mu.Unlock()
	if !c.Empty() {
		for _, observe := range s.observers {
			observe(c)
		}
	}
	return c
}

// UpsertPod records a pod as the API server has it.
func (s *State) UpsertPod(pod *corev1.Pod) Change {
	return s.write(func(c *Change) {
		t := NewTask(pod)
		if s.schedulers[pod.Spec.SchedulerName] {
			t = s.upsertTask(t, c)
		}
		s.account(t, c)
	})
}

// upsertTask puts a task into its job. A reservation that the API server has not confirmed outlives the update.
func (s *State) upsertTask(t *Task, c *Change) *Task {
	if before := s.task(t.UID); t.Problem != "" && (before == nil || before.Problem != t.Problem) {
		c.Malformed = append(c.Malformed, t)
	}
	if key, ok := s.jobOf[t.UID]; ok {
		e := s.jobs[key]
		before := e.job.Tasks[e.index[t.UID]]
		switch {
		case before.Status == Allocated && t.Status == Pending:
			t = t.with(Allocated, before.Node)
		case before.Completed() && !t.Completed():
			// Live and finished pods are watched apart; this is late news from before the end.
			return before
		}
		if key != t.Job {
			s.dropTask(t.UID, c)
		}
	}
	s.putTask(t, c)
	return t
}

// account keeps the node totals in step with one pod.
func (s *State) account(t *Task, c *Change) {
	if t.Node != "" && (t.Status.HoldsNode() || t.Status == Unknown) {
		c.Events |= s.ledger.hold(t.UID, holding{
			node: t.Node, request: t.Request, labels: t.Pod.Labels, terminating: t.Pod.DeletionTimestamp != nil,
		})
	} else if s.ledger.release(t.UID) {
		c.Events |= RoomMade
	}
}

// LeavePod records that a pod is no longer among the live ones: it was deleted, or it finished. A pod that is known to
// have finished stays in its job until it is deleted.
func (s *State) LeavePod(uid types.UID) Change {
	return s.write(func(c *Change) {
		if t := s.task(uid); t == nil || !t.Completed() {
			s.dropTask(uid, c)
		}
		if s.ledger.release(uid) {
			c.Events |= RoomMade
		}
	})
}

// DeletePod forgets a pod.
func (s *State) DeletePod(uid types.UID) Change {
	return s.write(func(c *Change) {
		s.dropTask(uid, c)
		if s.ledger.release(uid) {
			c.Events |= RoomMade
		}
	})
}

// Assume records that a task got a reservation on a node. It does nothing for a task that is unknown or no longer waits.
func (s *State) Assume(uid types.UID, nodeName string) Change {
	return s.write(func(c *Change) {
		if t := s.task(uid); t != nil && t.Status == Pending {
			t = t.with(Allocated, nodeName)
			s.putTask(t, c)
			s.account(t, c)
		}
	})
}

// Forget takes back a reservation that was not confirmed. It does nothing for a task that has none.
func (s *State) Forget(uid types.UID) Change {
	return s.write(func(c *Change) {
		if t := s.task(uid); t != nil && t.Status == Allocated {
			t = t.with(Pending, "")
			s.putTask(t, c)
			s.account(t, c)
		}
	})
}

// UpsertGroup records a PodGroup.
func (s *State) UpsertGroup(key JobKey, g *Group) Change {
	return s.write(func(c *Change) {
		e := s.entry(key)
		e.job.Group = g
		s.touch(key, e, c)
	})
}

// DeleteGroup forgets a PodGroup. Its pods remain a job that may not start.
func (s *State) DeleteGroup(key JobKey) Change {
	return s.write(func(c *Change) {
		if e := s.jobs[key]; e != nil && e.job.Group != nil {
			e.job.Group = nil
			s.touch(key, e, c)
		}
	})
}

// UpsertNode records a node.
func (s *State) UpsertNode(n *corev1.Node) Change {
	return s.write(func(c *Change) {
		if s.ledger.setNode(n) {
			c.Events |= NodeChanged
		}
	})
}

// DeleteNode forgets a node. The pods on it stay what they are until the API server deletes them.
func (s *State) DeleteNode(name string) Change {
	return s.write(func(c *Change) {
		s.ledger.removeNode(name)
		c.Events |= NodeLost
	})
}

// UpsertQueue records a queue.
func (s *State) UpsertQueue(q *Queue) Change {
	return s.write(func(c *Change) {
		s.queues[q.Name] = q
		s.snapshots.queuesChanged = true
		c.Events |= QueueChanged
	})
}

// DeleteQueue forgets a queue.
func (s *State) DeleteQueue(name string) Change {
	return s.write(func(c *Change) {
		delete(s.queues, name)
		s.snapshots.queuesChanged = true
		c.Events |= QueueChanged
	})
}

// UpsertPriorityClass records a PriorityClass.
func (s *State) UpsertPriorityClass(name string, value int32, globalDefault bool) Change {
	return s.write(func(c *Change) {
		before, known := s.classes[name]
		wasDefault := s.globalDefault == name
		if known && before == value && wasDefault == globalDefault {
			return
		}
		s.classes[name] = value
		switch {
		case globalDefault:
			s.globalDefault, s.defaultPriority = name, value
		case wasDefault:
			s.globalDefault, s.defaultPriority = "", 0
		}
		s.touchGroups(c)
	})
}

// DeletePriorityClass forgets a PriorityClass.
func (s *State) DeletePriorityClass(name string) Change {
	return s.write(func(c *Change) {
		delete(s.classes, name)
		if s.globalDefault == name {
			s.globalDefault, s.defaultPriority = "", 0
		}
		s.touchGroups(c)
	})
}

// Raise passes on events that the model keeps no state for, such as changes of volumes.
func (s *State) Raise(events Event) Change {
	return s.write(func(c *Change) { c.Events |= events })
}

// touchGroups marks all jobs with a PodGroup as changed, because their priorities may be.
func (s *State) touchGroups(c *Change) {
	for key, e := range s.jobs {
		if e.job.Group != nil {
			s.touch(key, e, c)
		}
	}
}

func (s *State) entry(key JobKey) *entry {
	e := s.jobs[key]
	if e == nil {
		e = &entry{job: Job{Key: key, Roles: map[string]Counts{}, Pending: map[Class]Demand{}}, index: map[types.UID]int{}}
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
		e.count(e.job.Tasks[i], -1)
		e.job.Tasks[i] = t
	} else {
		e.index[t.UID] = len(e.job.Tasks)
		e.job.Tasks = append(e.job.Tasks, t)
		s.jobOf[t.UID] = t.Job
	}
	e.count(t, 1)
	c.Tasks = append(c.Tasks, t.UID)
	s.touch(t.Job, e, c)
}

// dropTask removes a task from its job, if it is in one.
func (s *State) dropTask(uid types.UID, c *Change) {
	key, ok := s.jobOf[uid]
	if !ok {
		return
	}
	delete(s.jobOf, uid)
	e := s.jobs[key]
	i, last := e.index[uid], len(e.job.Tasks)-1
	e.count(e.job.Tasks[i], -1)
	moved := e.job.Tasks[last]
	e.job.Tasks[i] = moved
	e.index[moved.UID] = i
	e.job.Tasks[last] = nil
	e.job.Tasks = e.job.Tasks[:last]
	delete(e.index, uid)
	c.Tasks = append(c.Tasks, uid)
	s.touch(key, e, c)
}

// count adds n times the task to the counters of its job.
func (e *entry) count(t *Task, n int) {
	e.job.Counts.add(t, n)
	role := e.job.Roles[t.Role]
	role.add(t, n)
	if role == (Counts{}) {
		delete(e.job.Roles, t.Role)
	} else {
		e.job.Roles[t.Role] = role
	}
	if t.Placeable() {
		if count := e.job.Pending[t.Class].Count + n; count > 0 {
			e.job.Pending[t.Class] = Demand{Count: count, Request: t.Request}
		} else {
			delete(e.job.Pending, t.Class)
		}
		// Traits only grow: a job that once had a pod with volumes is woken once too often, never too seldom.
		e.job.Traits |= t.Traits
	}
}

// touch records that a job changed, and forgets a job of which nothing is left.
func (s *State) touch(key JobKey, e *entry, c *Change) {
	if e.job.Group == nil && len(e.job.Tasks) == 0 {
		delete(s.jobs, key)
	}
	e.frozen = nil
	s.snapshots.changed(key)
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
	j.Roles = maps.Clone(e.job.Roles)
	j.Pending = maps.Clone(e.job.Pending)
	switch {
	case j.Group != nil:
		j.Queue, j.Created, j.UID = j.Group.Queue, j.Group.Created, j.Group.UID
		j.Priority = s.priority(j.Group.PriorityClass)
	case len(e.job.Tasks) > 0:
		first := slices.MinFunc(e.job.Tasks, func(a, b *Task) int {
			return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.UID, b.UID))
		})
		j.Created, j.UID, j.Priority = first.Created, first.UID, podPriority(first.Pod)
		j.Queue = first.Pod.Annotations[QueueAnnotation]
	}
	if j.Queue == "" {
		j.Queue = DefaultQueue
	}
	return j
}

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
