// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package eviction performs decisions to evict and keeps account of them. A decision is made elsewhere; here the Ledger
// remembers what becomes of it and of each victim, and the Executor asks the API server to evict. Both live by a time
// that is given to them.
package eviction

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// The actions that evict; the names but for the last three are Volcano's. Shuffle and Release have no beneficiary, and their decisions no
// members.
const (
	Preempt     = string(config.Preempt)
	Reclaim     = string(config.Reclaim)
	GangPreempt = string(config.GangPreempt)
	GangReclaim = string(config.GangReclaim)
	Shuffle     = string(config.Shuffle)
	// Consolidate moves pods to other nodes.
	Consolidate = string(config.Consolidate)
	// Complete has broken gangs give way to the one that is completed first.
	Complete = string(config.Complete)
	// Release gives back what a gang holds that was never whole.
	Release = "release"
)

// Outcome is what became of a decision. All but Pending are final.
type Outcome string

// The outcomes of a decision.
const (
	// Pending: it is not known yet whether the beneficiary starts.
	Pending Outcome = "Pending"
	// Started: the beneficiary's members got nodes.
	Started Outcome = "Started"
	// Wasted: pods were evicted, and the beneficiary did not start.
	Wasted Outcome = "Wasted"
	// Cancelled: it was given up before any pod was evicted.
	Cancelled Outcome = "Cancelled"
	// Done: pods were evicted, and nobody waits for their room.
	Done Outcome = "Done"
	// Interrupted: the scheduler that had decided it ended before it knew.
	Interrupted Outcome = "Interrupted"
)

// VictimState is how far the eviction of a victim has come.
type VictimState string

// The states of a victim. Gone, Refused, Spared and Lost are final; a Stuck victim may still go.
const (
	// Planned: nobody has been asked to evict it yet.
	Planned VictimState = "Planned"
	// Sent: the API server is being asked to evict it; there is no way back.
	Sent VictimState = "Sent"
	// Leaving: it ends within its grace period, because the API server has agreed or somebody else has deleted it.
	Leaving VictimState = "Leaving"
	// Gone: it has left its node.
	Gone VictimState = "Gone"
	// Refused: the API server has not agreed, for instance because of a disruption budget.
	Refused VictimState = "Refused"
	// Spared: it was not needed any more before anybody was asked, or before anybody had answered.
	Spared VictimState = "Spared"
	// Stuck: it has not gone by its deadline, and is not waited for.
	Stuck VictimState = "Stuck"
	// Lost: the scheduler that had chosen it ended before it knew what became of it.
	Lost VictimState = "Unknown"
)

// Decision is one committed decision to evict.
type Decision struct {
	// ID counts the decisions of this scheduler from 1; the Ledger gives it.
	ID uint64
	// Time is when the decision was made; the Ledger sets it.
	Time time.Time
	// Action is the action that decided.
	Action string
	// Beneficiary is the job that is to start, and Queue the one it is in; the zero key when nobody is to have the room.
	Beneficiary model.JobKey
	Queue       string
	// Members are the beneficiary's tasks that the room is for.
	Members []Member
	Victims []*Victim
	// Kept are why other pods that came into question are not evicted.
	Kept []Kept
	// Outcome and Ended, the time at which it became final, are set by the Ledger. A decision for nobody's sake has no end to
	// wait for: the time is zero.
	Outcome Outcome
	Ended   time.Time
	// Problem says what stood in the way of the decision: a refusal, a victim that does not go; empty when nothing did.
	Problem string
}

// Member is a task of the beneficiary, and the node it is to get.
type Member struct {
	UID             types.UID
	Namespace, Name string
	Node            string
	Request         resource.Vector
}

// Victim is a pod that is to be evicted.
type Victim struct {
	// Pod is the pod as the decision saw it; never to be changed. Of a decision that is over, the Ledger keeps the names.
	Pod     *corev1.Pod
	UID     types.UID
	Job     model.JobKey
	Queue   string
	Node    string
	Request resource.Vector
	// Why is the rule by which the pod was chosen, in words.
	Why string
	// Budgeted: a disruption budget covers the pod, so that the API server may refuse. Such victims are asked for first.
	Budgeted bool
	// The Ledger sets what follows. Deadline is how long a Leaving victim is waited for; Problem is why one was refused.
	State    VictimState
	Deadline time.Time
	Problem  string
	// MovesTo is the node that the pod is moved to, as far as the decision goes; empty when it is not moved.
	MovesTo string
	// Evicted: for this decision, the API server has agreed to evict the pod.
	Evicted bool
}

// Kept is why so many pods that came into question are not evicted.
type Kept struct {
	Reason string
	Pods   int
}

// forNobody reports whether nobody waits for the room that the decision makes.
func (d *Decision) forNobody() bool { return d.Beneficiary == (model.JobKey{}) }

// clone returns a copy that shares nothing with d that either may change.
func (d *Decision) clone() *Decision {
	c := *d
	c.Members, c.Kept = slices.Clone(d.Members), slices.Clone(d.Kept)
	c.Victims = make([]*Victim, len(d.Victims))
	for i, v := range d.Victims {
		copied := *v
		c.Victims[i] = &copied
	}
	return &c
}

// in counts the victims in a state.
func (d *Decision) in(states ...VictimState) int {
	n := 0
	for _, v := range d.Victims {
		if slices.Contains(states, v.State) {
			n++
		}
	}
	return n
}

// evicted counts the victims that the API server has agreed to evict.
func (d *Decision) evicted() int {
	n := 0
	for _, v := range d.Victims {
		if v.Evicted {
			n++
		}
	}
	return n
}
