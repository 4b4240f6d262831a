// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// State is the live model. Its writers are the informers (API truth), the plugin Gang (Assume, Forget), and who makes room (Pipeline, Spare,
// ClearNominations). Each write is idempotent by UID, so the order of events does not matter. Every write returns what it changed and
// passes the same to the observers, after the lock is released.
type State struct {
	// mu guards everything below. It is never held while calling out.
	mu sync.RWMutex
	// schedulers are the scheduler names whose pods are tasks; pods of others are usage only.
	schedulers map[string]bool
	jobs       map[JobKey]*entry
	// jobOf maps the UID of each task to the job that holds it.
	jobOf  map[types.UID]JobKey
	queues map[string]*Queue
	quotas map[quotaKey]*Quota
	// classes maps the name of each PriorityClass to its value; defaultPriority is that of the global default.
	classes         map[string]int32
	defaultPriority int32
	globalDefault   string
	budgets         map[budgetKey]*DisruptionBudget
	// namespaces maps the namespaces that name a queue to it.
	namespaces map[string]string
	// leads: this process decides, and knows better than the API server for whom room is kept.
	leads  bool
	claims claims
	// nominated are the tasks for which room is kept.
	nominated map[types.UID]bool
	// ending are tasks that are known to have finished, and that the watch of live pods is yet to leave; true: they were deleted since.
	ending map[types.UID]bool
	// expected are pods that are to be created again, for which room is kept.
	expected  map[types.UID]*Task
	ledger    ledger
	snapshots snapshotter

	observers []*func(Change)
	// observer is told of a change before anyone else can see it; nil if nobody is.
	observer func(Change)
}

// NewState returns an empty model. Observers are told of every
// change, in the goroutine that made it, with no lock held.
func NewState(observers ...func(Change)) *State {
	s := &State{
		schedulers: map[string]bool{},
		jobs:       map[JobKey]*entry{},
		jobOf:      map[types.UID]JobKey{},
		queues:     map[string]*Queue{},
		quotas:     map[quotaKey]*Quota{},
		classes:    map[string]int32{},
		budgets:    map[budgetKey]*DisruptionBudget{},
		namespaces: map[string]string{},
		claims:     newClaims(),
		nominated:  map[types.UID]bool{},
		ending:     map[types.UID]bool{},
		ledger:     newLedger(),
		snapshots:  newSnapshotter(),
	}
	for _, o := range observers {
		s.Observe(o)
	}
	return s
}

// Observe adds an observer, which is told of changes from now on until stop is called, and perhaps of one that happened before.
func (s *State) Observe(observer func(Change)) (stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	added := &observer
	s.observers = append(slices.Clip(s.observers), added)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		// Somebody may be telling those that were there.
		s.observers = slices.DeleteFunc(slices.Clone(s.observers), func(o *func(Change)) bool { return o == added })
	}
}

// ObserveFirst has a function told of each change before anyone can read it, in the order of the changes. It is called with the model locked, so
// it must neither ask the model nor wait for who does.
func (s *State) ObserveFirst(observer func(Change)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.observer = observer
}

// AddScheduler makes the pods of one more scheduler name tasks. It must be called before the first pod is written.
func (s *State) AddScheduler(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.schedulers[name] = true
}

// Lead tells the model that this process decides from now on. Until then another one may, and the nodes that the API
// server has tasks nominated for are those for which room is kept.
func (s *State) Lead() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leads = true
	for key, e := range s.jobs {
		if e.job.Counts.Ready() == 0 {
			// What its PodGroup says is from before all members left.
			e.end()
			e.frozen = nil
			s.snapshots.changed(key, len(s.jobs))
		}
	}
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
	c.Touched, s.ledger.touched = s.ledger.touched, nil
	observers := s.observers
	if s.observer != nil && !c.Empty() {
		s.observer(c)
	}
	s.mu.Unlock()
	if !c.Empty() {
		for _, observe := range observers {
			(*observe)(c)
		}
	}
	return c
}

// UpsertPod records a pod as the API server has it.
func (s *State) UpsertPod(pod *corev1.Pod) Change {
	return s.write(func(c *Change) {
		ours := s.schedulers[pod.Spec.SchedulerName]
		if !ours && pod.Spec.NodeName == "" {
			// What it asks for is its scheduler's concern.
			s.release(pod.UID, c)
			return
		}
		t := NewTask(pod)
		t.Request = s.ledger.alike(t.Request)
		t.Charge = t.Request
		if ours {
			t.Job = s.jobFor(pod)
			t = s.upsertTask(s.claims.charged(t), c)
		}
		s.account(t, c)
	})
}

// JobOf returns the job that a pod belongs to.
func (s *State) JobOf(pod *corev1.Pod) JobKey {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.jobFor(pod)
}

func (s *State) jobFor(pod *corev1.Pod) JobKey {
	return jobAmong(func(key JobKey) bool { return s.jobs[key] != nil }, pod)
}

// upsertTask puts a task into its job. A reservation that the API server has not confirmed outlives the update.
func (s *State) upsertTask(t *Task, c *Change) *Task {
	before := s.task(t.UID)
	if t.Problem != "" && (before == nil || before.Problem != t.Problem) {
		c.Malformed = append(c.Malformed, t)
	}
	switch {
	case before == nil && t.Status == Pending && t.Pod.Status.NominatedNodeName != "":
		// Another process, or one before this, kept room for it.
		t = t.nominated(t.Pod.Status.NominatedNodeName)
	case before == nil:
	case before.Completed() && !t.Completed():
		// Live and finished pods are watched apart; this is late news from before the end.
		s.ends(t.UID)
		return before
	default:
		if t.Completed() && !before.Completed() {
			s.ends(t.UID)
		}
		t = t.after(before, s.leads)
		c.Events |= t.since(before)
		if before.Job != t.Job {
			s.dropTask(t.UID, c)
		}
	}
	s.putTask(t, c)
	return t
}

// ends notes that a task has finished, and that the watch of live pods is yet to leave it.
func (s *State) ends(uid types.UID) {
	if !s.ending[uid] {
		s.ending[uid] = false
	}
}

// since returns what an update tells of a task. What it takes of its node is told elsewhere.
func (t *Task) since(before *Task) (events Event) {
	if t.Status == Running && before.Status != Running {
		events |= PodStarted
	}
	if before.Evicting && !t.Evicting {
		events |= EvictionAnswered
	}
	if t.Node != "" && t.spares(before) {
		events |= ProtectionChanged
	}
	if t.Traits&HasClaims != 0 && !slices.Equal(ClaimsOf(t.Pod), ClaimsOf(before.Pod)) {
		// Claims are made first, and their names written into the pod then.
		events |= DevicesChanged
	}
	return events
}

// after returns a task as the API server has it with what it does not know yet of what was decided about it. Where another
// process leads, that decides for whom room is kept, and the API server has it.
func (t *Task) after(before *Task, leads bool) *Task {
	if before.Claims && t.QueueGated {
		t = t.letThrough(true)
	}
	switch {
	case before.Status == Allocated && t.Status == Pending:
		return t.with(Allocated, before.Node)
	case t.Status == Pending && !leads:
		return t.nominated(t.Pod.Status.NominatedNodeName)
	case t.Status == Pending && (before.Nominated != "" || before.HeldBy != ""):
		kept := t.nominated(before.Nominated).held(before.HeldBy)
		kept.Reserved = before.Reserved
		return kept
	case before.Evicting && (t.Status == Running || t.Status == Bound):
		return t.evicting()
	}
	return t
}

// account keeps the node totals in step with one pod.
func (s *State) account(t *Task, c *Change) {
	if t.Node != "" && (t.Status.HoldsNode() || t.Status == Unknown) {
		_, task := s.jobOf[t.UID]
		events, other := s.ledger.hold(t.UID, holding{
			foreign: !task, node: t.Node, request: t.Request, labels: t.Pod.Labels, terminating: t.Pod.DeletionTimestamp != nil || t.Evicting,
			until: goneBy(t.Pod),
		})
		c.Events |= events
		if other {
			c.Resized = append(c.Resized, Resize{Pod: t.UID, Node: t.Node, Version: t.Pod.ResourceVersion})
		}
	} else {
		s.release(t.UID, c)
	}
}

// release records that a pod is on no node.
func (s *State) release(uid types.UID, c *Change) {
	if node, held := s.ledger.release(uid); held {
		c.Events |= RoomMade
		c.Left = append(c.Left, Departure{Pod: uid, Node: node})
	}
}

// LeavePod records that a pod is no longer among the live ones: it was deleted, or it finished. A pod that is known to
// have finished stays in its job until it is deleted.
func (s *State) LeavePod(uid types.UID) Change {
	return s.write(func(c *Change) {
		if t := s.task(uid); t == nil || !t.Completed() || s.ending[uid] {
			s.dropTask(uid, c)
		}
		delete(s.ending, uid)
		s.release(uid, c)
	})
}

// DeleteFinished records that a pod which had finished was deleted. Live pods are watched apart, and that watch may be late: as long as it has not
// left the pod its news are from before the end, and do not have the pod live again.
func (s *State) DeleteFinished(uid types.UID) Change {
	return s.write(func(c *Change) {
		t := s.task(uid)
		_, ends := s.ending[uid]
		switch {
		case t != nil && !t.Completed():
			// Nobody told that it finished. It is gone when the watch of live pods leaves it.
		case ends:
			s.ending[uid] = true
		default:
			s.dropTask(uid, c)
		}
	})
}

// DeletePod forgets a pod.
func (s *State) DeletePod(uid types.UID) Change {
	return s.write(func(c *Change) {
		s.dropTask(uid, c)
		delete(s.ending, uid)
		s.release(uid, c)
	})
}

// Assume records that a task got a reservation on a node. It does nothing for a task that is unknown or no longer waits.
func (s *State) Assume(uid types.UID, nodeName string) Change {
	return s.write(func(c *Change) {
		if t := s.task(uid); t != nil && t.Status == Pending {
			c.Own = true
			if e := s.jobs[t.Job]; e.job.Counts.Ready() == 0 {
				// What it started with is that of an earlier gang, of which nothing is left.
				e.job.Start = Start{}
			}
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

// Hold records that a plugin keeps a task out of the scheduling queue, as a scheduling gate would; empty: none does any more. It does
// nothing for a task that is unknown or does not wait.
func (s *State) Hold(uid types.UID, plugin string) Change {
	return s.write(func(c *Change) {
		if t := s.task(uid); t != nil && t.Status == Pending && t.HeldBy != plugin {
			s.putTask(t.held(plugin), c)
		}
	})
}

// UpsertGroup records a PodGroup. One that took the name of another has to be admitted by itself.
func (s *State) UpsertGroup(key JobKey, g *Group) Change {
	return s.write(func(c *Change) {
		e := s.entry(key)
		before := e.job.Group
		if before != nil && before.UID != g.UID {
			before, e.admitted = nil, false
			e.begun = e.ready
		}
		if g.Problem != "" && (before == nil || before.Problem != g.Problem) {
			c.Complaints = append(c.Complaints, Complaint{Object: g.Object, Problem: g.Problem})
		}
		// What is decided here runs ahead of the API server: only a phase that was not admitted before, or the first one
		// seen, tells something new.
		if g.Phase.admitted() && (before == nil || !before.Phase.admitted()) {
			e.admitted = true
		}
		if e.job.Start.Tasks == 0 && (before == nil || !s.leads) {
			e.job.Start = g.Start
		}
		// Without a PodGroup its pods are not evicted.
		if e.job.Counts.Ready() > 0 && (before == nil || !before.protectsLike(g)) {
			c.Events |= ProtectionChanged
		}
		e.regroup(g)
		s.touch(key, e, c)
	})
}

// Admit lets a job into its queue, or takes that back. It does nothing for a job that is unknown.
func (s *State) Admit(key JobKey, admitted bool) Change {
	return s.write(func(c *Change) {
		if e := s.jobs[key]; e != nil && e.admitted != admitted {
			e.admitted = admitted
			s.touch(key, e, c)
		}
	})
}

// DeleteGroup forgets a PodGroup, and that it was admitted. Its pods remain a job that may not start.
func (s *State) DeleteGroup(key JobKey) Change {
	return s.write(func(c *Change) {
		if e := s.jobs[key]; e != nil && e.job.Group != nil {
			e.regroup(nil)
			e.admitted = false
			s.touch(key, e, c)
		}
	})
}

// Gather moves the pods of an owner that had been jobs of one into the gang that the owner makes of them. Pods that come after the gang is
// known need no gathering.
func (s *State) Gather(key JobKey) Change {
	return s.write(func(c *Change) {
		if s.jobs[key] == nil {
			return
		}
		for _, e := range s.jobsOf(FromPod, key.Namespace) {
			for _, t := range slices.Clone(e.job.Tasks) {
				if JobByOwner(t.Pod) == key {
					s.moveTask(t, key, c)
				}
			}
		}
	})
}

// Disband makes jobs of one of the pods of an owner that does not make a gang of them any more.
func (s *State) Disband(key JobKey) Change {
	return s.write(func(c *Change) {
		e := s.jobs[key]
		if e == nil || e.job.Group == nil {
			return
		}
		e.regroup(nil)
		e.admitted = false
		s.touch(key, e, c)
		for _, t := range slices.Clone(e.job.Tasks) {
			s.moveTask(t, JobByMarks(t.Pod), c)
		}
	})
}

// jobsOf are the jobs of a source in a namespace, by name.
func (s *State) jobsOf(source Source, namespace string) []*entry {
	var entries []*entry
	for key, e := range s.jobs {
		if key.Source == source && key.Namespace == namespace {
			entries = append(entries, e)
		}
	}
	slices.SortFunc(entries, func(a, b *entry) int { return a.job.Key.Compare(b.job.Key) })
	return entries
}

// moveTask puts a task into another job.
func (s *State) moveTask(t *Task, to JobKey, c *Change) {
	moved := *t
	moved.Job = to
	s.dropTask(t.UID, c)
	s.putTask(&moved, c)
}

// UpsertNode records a node.
func (s *State) UpsertNode(n *corev1.Node) Change {
	return s.write(func(c *Change) {
		helps, shrank := s.ledger.setNode(n)
		if helps {
			c.Events |= NodeChanged
			c.Nodes = append(c.Nodes, n)
		}
		if shrank {
			c.Events |= NodeLost
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
		before := s.queues[q.Name]
		s.queues[q.Name] = q
		s.snapshots.queuesChanged = true
		if before != nil && before.same(q) {
			return
		}
		if q.Problem != "" && (before == nil || before.Problem != q.Problem) {
			c.Complaints = append(c.Complaints, Complaint{Object: q.Object, Problem: q.Problem})
		}
		if c.Events |= QueueChanged; !q.placesLike(before) {
			c.Events |= JudgedAnew
		}
		if before != nil && before.MinRuntime != q.MinRuntime {
			c.Events |= ProtectionChanged
		}
		c.Queues = append(c.Queues, q.Name)
	})
}

// DeleteQueue forgets a queue.
func (s *State) DeleteQueue(name string) Change {
	return s.write(func(c *Change) {
		delete(s.queues, name)
		s.snapshots.queuesChanged = true
		c.Events |= QueueChanged
		c.Queues = append(c.Queues, name)
	})
}

// UpsertNamespace records the queue of jobs in a namespace for which neither PodGroup nor pods name one; empty when the namespace names none.
func (s *State) UpsertNamespace(name, queue string) Change {
	return s.write(func(c *Change) {
		if s.namespaces[name] == queue {
			return
		}
		if s.namespaces[name] = queue; queue == "" {
			delete(s.namespaces, name)
		}
		c.Events |= ProtectionChanged
		for key, e := range s.jobs {
			if key.Namespace == name && e.queue() == "" {
				s.touch(key, e, c)
			}
		}
	})
}

// UpsertBudget records a disruption budget.
func (s *State) UpsertBudget(b *DisruptionBudget) Change {
	return s.write(func(c *Change) {
		s.budgets[budgetKey{b.Namespace, b.Name}] = b
		c.Events |= ProtectionChanged
	})
}

// DeleteBudget forgets a disruption budget.
func (s *State) DeleteBudget(namespace, name string) Change {
	return s.write(func(c *Change) {
		delete(s.budgets, budgetKey{namespace, name})
		c.Events |= ProtectionChanged
	})
}

// UpsertQuota records a resource quota.
func (s *State) UpsertQuota(q *Quota) Change {
	return s.write(func(c *Change) {
		s.quotas[quotaKey{q.Namespace, q.Name}] = q
		c.Events |= QuotaChanged
	})
}

// DeleteQuota forgets a resource quota.
func (s *State) DeleteQuota(namespace, name string) Change {
	return s.write(func(c *Change) {
		delete(s.quotas, quotaKey{namespace, name})
		c.Events |= QuotaChanged
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

// Raise passes on events that the model keeps no state for, such as changes of volumes, or a time that has come.
func (s *State) Raise(events Event) Change {
	return s.write(func(c *Change) { c.Events |= events })
}

// Complain passes on what is wrong with an object and what to change, for its users.
func (s *State) Complain(object runtime.Object, problem string) Change {
	return s.write(func(c *Change) { c.Complaints = append(c.Complaints, Complaint{Object: object, Problem: problem}) })
}

// touchGroups marks all jobs with a PodGroup as changed, because their priorities may be.
func (s *State) touchGroups(c *Change) {
	c.Events |= ProtectionChanged
	for key, e := range s.jobs {
		if e.job.Group != nil {
			s.touch(key, e, c)
		}
	}
}
