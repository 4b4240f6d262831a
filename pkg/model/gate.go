// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// free are the tasks of Valid without a scheduling gate.
func (c *Counts) free() int { return c.Valid() - c.PendingGated }

// freeOnceOpened are those that would be free if the queue let all its tasks through.
func (c *Counts) freeOnceOpened() int { return c.free() + c.AtQueueGate + c.LetThrough }

// expected are the tasks that are free, or are about to be.
func (c *Counts) expected() int { return c.free() + c.LetThrough }

// AtQueueGate reports whether the job waits for its queue to let pods through Volcano's queue gate: some stand before it, and no other
// gate keeps the job from starting with them.
func (j *Job) AtQueueGate() bool {
	return j.Counts.AtQueueGate > 0 && j.startedWith((*Counts).freeOnceOpened)
}

// NextThroughGate returns the tasks that the queue has to let through its gate next, all or none: those that the job lacks to start or,
// where no minimum waits for them, one more. Of tasks that would do as well those of the higher priority come first, then by index.
// It returns nil if the job has nobody at the gate who may help it.
func (j *Job) NextThroughGate() []*Task {
	if !j.AtQueueGate() {
		return nil
	}
	var at []*Task
	for _, t := range j.Tasks {
		if t.Status == Pending && t.QueueGated {
			at = append(at, t)
		}
	}
	order := func(a, b *Task) int {
		return cmp.Or(-cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.index, b.index), byAge(a, b))
	}
	if j.startedWith((*Counts).expected) {
		return []*Task{slices.MinFunc(at, order)}
	}
	slices.SortFunc(at, order)
	opened := j.Supposing(Pending)
	suppose := func(t *Task, free bool) {
		then := *t
		then.Gated, then.QueueGated = false, false
		if free {
			opened.put(t, -1)
			opened.put(&then, 1)
		} else {
			opened.put(&then, -1)
			opened.put(t, 1)
		}
	}
	n := 0
	for ; n < len(at) && !opened.startedWith((*Counts).expected); n++ {
		suppose(at[n], true)
	}
	// Those that were taken before the ones that a role or a subgroup needs may not be needed any more.
	needed := slices.Clone(at[:n])
	for i := n - 1; i >= 0; i-- {
		if suppose(at[i], false); opened.startedWith((*Counts).expected) {
			needed = slices.Delete(needed, i, i+1)
		} else {
			suppose(at[i], true)
		}
	}
	return needed
}

// letThrough returns a copy of a task at the queue's gate that has been let through; of one that has, back before it.
func (t *Task) letThrough(through bool) *Task {
	c := *t
	c.Claims, c.QueueGated = through, !through
	return &c
}

// LetThrough records that a queue lets tasks through its gate: from now on it keeps for them what they ask for. Tasks that are not before
// the gate are passed over.
func (s *State) LetThrough(uids ...types.UID) Change {
	return s.write(func(c *Change) {
		for _, uid := range uids {
			if t := s.task(uid); t != nil && t.Status == Pending && t.QueueGated {
				s.putTask(t.letThrough(true), c)
			}
		}
	})
}

// HoldBack records that the gate of a task could not be taken off, so that the queue keeps nothing for it. It does nothing for one whose gate
// is gone.
func (s *State) HoldBack(uid types.UID) Change {
	return s.write(func(c *Change) {
		if t := s.task(uid); t != nil && t.Status == Pending && t.Claims && len(t.Pod.Spec.SchedulingGates) > 0 {
			s.putTask(t.letThrough(false), c)
		}
	})
}

// WithThrough returns the job, as it is without its tasks, with tasks of it let through the queue's gate.
func (j *Job) WithThrough(tasks ...*Task) *Job {
	c := *j
	c.Usage = j.Usage.clone()
	for _, t := range tasks {
		c.Usage.Claimed.Add(t.Request)
	}
	return &c
}
