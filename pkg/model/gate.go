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

// OpensByQueue reports whether nothing but the gate of its queue, if that, keeps the job from starting.
func (j *Job) OpensByQueue() bool { return j.startedWith((*Counts).freeOnceOpened) }

// AtQueueGate reports whether the job waits for its queue to let pods through Volcano's queue gate: some stand before it, and no other
// gate keeps the job from starting with them.
func (j *Job) AtQueueGate() bool {
	return j.Counts.AtQueueGate > 0 && j.OpensByQueue()
}

// NextThroughGate returns the tasks that the queue has to let through its gate next, all or none: those that the job lacks to start or,
// where no minimum waits for them, one more, of a subgroup as many as make it whole. Of tasks that would do as well those of the higher priority
// come first, then by index. It returns nil if nobody at the gate may help the job.
func (j *Job) NextThroughGate() []*Task {
	if !j.AtQueueGate() {
		return nil
	}
	units := j.gateUnits()
	if len(units) == 0 || j.startedWith((*Counts).expected) {
		return slices.Concat(units[:min(1, len(units))]...)
	}
	opened := j.Supposing(Pending)
	suppose := func(unit []*Task, from, to int) {
		for _, t := range unit {
			then := *t
			then.Gated, then.QueueGated = false, false
			opened.put(t, from)
			opened.put(&then, to)
		}
	}
	n := 0
	for ; n < len(units) && !opened.startedWith((*Counts).expected); n++ {
		suppose(units[n], -1, 1)
	}
	if !opened.startedWith((*Counts).expected) {
		return nil
	}
	// Those that were taken before the ones that a role or a subgroup needs may not be needed any more.
	needed := slices.Clone(units[:n])
	for i := n - 1; i >= 0; i-- {
		if suppose(units[i], 1, -1); opened.startedWith((*Counts).expected) {
			needed = slices.Delete(needed, i, i+1)
		} else {
			suppose(units[i], -1, 1)
		}
	}
	return slices.Concat(needed...)
}

// gateUnits are the tasks before the gate in the order in which they are let through, together those without which none of them can be
// placed: what a subgroup lacks to be whole. Subgroups that cannot become whole are left out.
func (j *Job) gateUnits() [][]*Task {
	var at []*Task
	for _, t := range j.Tasks {
		if t.Status == Pending && t.QueueGated {
			at = append(at, t)
		}
	}
	slices.SortFunc(at, func(a, b *Task) int {
		return cmp.Or(-cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.index, b.index), byAge(a, b))
	})
	var begun, others, singles [][]*Task
	ofSubGroup := map[SubGroupID][]*Task{}
	for _, t := range at {
		if len(j.SubGroups) > 0 {
			if id, ok := j.SubGroupOf(t); ok {
				ofSubGroup[id] = append(ofSubGroup[id], t)
				continue
			}
		}
		singles = append(singles, []*Task{t})
	}
	for i := range j.SubGroups {
		c := &j.SubGroups[i]
		tasks, lacks := ofSubGroup[c.ID], max(0, j.Group.SubGroups[c.ID.Policy].Size-c.expected())
		switch {
		case lacks > len(tasks):
			continue
		case lacks > 0 && c.expected() > 0:
			begun = append(begun, tasks[:lacks])
		case lacks > 0:
			others = append(others, tasks[:lacks])
		}
		for _, t := range tasks[lacks:] {
			singles = append(singles, []*Task{t})
		}
	}
	return slices.Concat(begun, others, singles)
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
		c.Usage.Claimed.Add(t.Charge)
	}
	return &c
}
