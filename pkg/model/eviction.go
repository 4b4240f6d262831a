// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// Victim is a task that may have to make room for others.
type Victim struct {
	Task *Task
	// Job is the task's job.
	Job *Job
	// Node is the node the task is on; nil when it is not known.
	Node *corev1.Node
}

// DisruptionBudget is a PodDisruptionBudget: how many of the pods it selects may be evicted. Budgets are immutable.
type DisruptionBudget struct {
	Namespace, Name string
	// Selector matches the pods; one that is empty matches all of the namespace, one of labels.Nothing none.
	Selector labels.Selector
	// Allowed is how many more may be evicted now, 0 or more.
	Allowed int32
	// Disrupted are the names of pods whose eviction the budget has already accounted for.
	Disrupted map[string]bool
}

type budgetKey struct{ namespace, name string }

// Budgets returns the disruption budgets of a namespace by name.
func (s *State) Budgets(namespace string) []*DisruptionBudget {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var list []*DisruptionBudget
	for key, b := range s.budgets {
		if key.namespace == namespace {
			list = append(list, b)
		}
	}
	slices.SortFunc(list, func(a, b *DisruptionBudget) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// Nomination keeps room for a task on a node.
type Nomination struct {
	UID  types.UID
	Node string
}

// Pipeline records a decision to evict: the victims are leaving from now on, and their room is kept for the nominated
// tasks until they are placed, or the nomination is taken back. Victims that are gone and tasks that no longer wait are
// passed over. Who decides leads. Source: Volcano's Statement.Evict and Statement.Pipeline, whose state ends with the session.
func (s *State) Pipeline(nominations []Nomination, victims []types.UID) Change {
	return s.write(func(c *Change) {
		s.leads = true
		for _, uid := range victims {
			if t := s.task(uid); t != nil && (t.Status == Running || t.Status == Bound) {
				t = t.evicting()
				s.putTask(t, c)
				s.account(t, c)
			}
		}
		for _, n := range nominations {
			if t := s.task(n.UID); t != nil && t.Status == Pending {
				s.putTask(t.nominated(n.Node), c)
			}
		}
	})
}

// Reserve keeps room for tasks on nodes until they are placed, or the nomination is taken back. It ends for the tasks that are released. Tasks
// that no longer wait are passed over. Who decides leads.
func (s *State) Reserve(nominations []Nomination, released []types.UID) Change {
	return s.write(func(c *Change) {
		s.leads = true
		for _, n := range nominations {
			if t := s.task(n.UID); t != nil && t.Status == Pending {
				s.putTask(t.reserved(n.Node), c)
			}
		}
		for _, uid := range released {
			if t := s.task(uid); t != nil && t.Nominated != "" {
				s.putTask(t.nominated(""), c)
			}
		}
	})
}

// ClearNominations takes back the room that is kept for tasks.
func (s *State) ClearNominations(uids ...types.UID) Change {
	return s.write(func(c *Change) {
		for _, uid := range uids {
			if t := s.task(uid); t != nil && t.Nominated != "" {
				s.putTask(t.nominated(""), c)
				c.Events |= RoomMade
			}
		}
	})
}

// Spare records that a task which was to be evicted stays. It does nothing for one that the API server has made to leave.
func (s *State) Spare(uid types.UID) Change {
	return s.write(func(c *Change) {
		if t := s.task(uid); t != nil && t.Evicting {
			t = t.with(statusOf(t.Pod), t.Node)
			s.putTask(t, c)
			s.account(t, c)
			c.Events |= EvictionAnswered
		}
	})
}

// Evicting returns the tasks that this process decided to evict and the API server has not made to leave, by UID.
func (s *State) Evicting() []*Task {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var list []*Task
	for uid := range s.ledger.leaving {
		if t := s.task(uid); t != nil && t.Evicting {
			list = append(list, t)
		}
	}
	slices.SortFunc(list, func(a, b *Task) int { return cmp.Compare(a.UID, b.UID) })
	return list
}

// Nominated returns the tasks for which room is kept, by UID.
func (s *State) Nominated() []*Task {
	s.mu.RLock()
	defer s.mu.RUnlock()
	list := make([]*Task, 0, len(s.nominated))
	for uid := range s.nominated {
		list = append(list, s.task(uid))
	}
	slices.SortFunc(list, func(a, b *Task) int { return cmp.Compare(a.UID, b.UID) })
	return list
}

// Leaving is a pod that terminates, or is about to, and what it holds until then.
type Leaving struct {
	UID  types.UID
	Node string
	// Until is when it should be gone; zero while the API server has not said.
	Until time.Time
}

// Leaving returns the pods of all schedulers that are leaving their nodes, by UID.
func (s *State) Leaving() []Leaving {
	s.mu.RLock()
	defer s.mu.RUnlock()
	list := make([]Leaving, 0, len(s.ledger.leaving))
	for uid := range s.ledger.leaving {
		h := s.ledger.pods[uid]
		list = append(list, Leaving{UID: uid, Node: h.node, Until: h.until})
	}
	slices.SortFunc(list, func(a, b Leaving) int { return cmp.Compare(a.UID, b.UID) })
	return list
}

// GracePeriod is how long a pod may take to end.
func GracePeriod(pod *corev1.Pod) time.Duration {
	seconds := int64(corev1.DefaultTerminationGracePeriodSeconds)
	if pod.Spec.TerminationGracePeriodSeconds != nil {
		seconds = *pod.Spec.TerminationGracePeriodSeconds
	}
	return time.Duration(seconds) * time.Second
}

// goneBy is when a terminating pod should be gone: the API server sets the deletion timestamp to the end of the grace
// period.
func goneBy(pod *corev1.Pod) time.Time {
	if pod.DeletionTimestamp == nil {
		return time.Time{}
	}
	return pod.DeletionTimestamp.Time
}
