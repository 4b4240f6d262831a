// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// QueueState is the state of a queue.
type QueueState string

// The states of a queue (volcano.sh/apis scheduling/v1beta1). An empty state means Open.
const (
	QueueOpen    QueueState = "Open"
	QueueShut    QueueState = "Closed"
	QueueClosing QueueState = "Closing"
	QueueUnknown QueueState = "Unknown"
)

// Queue is a queue as its object describes it. Queues are immutable.
type Queue struct {
	Name    string
	UID     types.UID
	Parent  string
	State   QueueState
	Created time.Time
	// Weight is the queue's part of what queues share by weight, at least 1 unless the object says otherwise.
	Weight int32
	// Priority: the queue with the higher one goes first.
	Priority int32
	// Reclaimable: other queues may reclaim what this one has beyond its due.
	Reclaimable bool
	// FIFO: its jobs start one after the other, in their order (spec.dequeueStrategy).
	FIFO bool
	// Capability bounds what the queue may use; Guarantee is set aside for it; Deserved is its due (capacity plugin).
	// A resource that is not named is not bounded, not set aside, not due. Values may be negative: nobody checked them.
	Capability, Guarantee, Deserved resource.Vector
	// Hierarchy is the path of the queue for hierarchical DRF, the root first, and HierarchyWeights the weights along
	// it, of equal length and at least 1 each; nil when the queue has none. Source: annotations volcano.sh/hierarchy
	// and volcano.sh/hierarchy-weights.
	Hierarchy        []string
	HierarchyWeights []float64
	// NodeGroups are the groups of nodes the queue may use; nil when it does not say, which in a tree is for those above.
	NodeGroups *NodeGroups
	// GroupLimits bound what it may use of them.
	GroupLimits GroupLimits
	// MinRuntime is how long the running pods of the queue, and of those below it that say nothing, are left alone after they were scheduled; at least 0.
	MinRuntime Said[time.Duration]
	// Recent is what the queue held on average, as its annotation says. A scheduler reads it once, and keeps count itself from then on.
	Recent Recent
	// Reservation is room that is reserved for a job of the queue, as its annotation says; nil when there is none. A scheduler reads it once, too.
	Reservation *Reservation
	// Problem says what is wrong with the queue's annotations and what to change; empty when nothing is.
	Problem string
	// Object is the Queue as last seen; never to be changed.
	Object runtime.Object
}

// Open reports whether the queue starts new jobs.
func (q *Queue) Open() bool { return q.State == "" || q.State == QueueOpen }

// same reports whether two versions of a queue mean the same to scheduling: what the scheduler itself writes into its status and its annotations
// makes no difference.
func (q *Queue) same(o *Queue) bool {
	return q.UID == o.UID && q.Parent == o.Parent && q.State == o.State && q.Weight == o.Weight && q.FIFO == o.FIFO &&
		q.Priority == o.Priority && q.Reclaimable == o.Reclaimable && q.Problem == o.Problem &&
		slices.Equal(q.Capability, o.Capability) && slices.Equal(q.Guarantee, o.Guarantee) &&
		slices.Equal(q.Deserved, o.Deserved) && slices.Equal(q.Hierarchy, o.Hierarchy) &&
		slices.Equal(q.HierarchyWeights, o.HierarchyWeights) && q.MinRuntime == o.MinRuntime && q.placesLike(o)
}

// placesLike reports whether a queue has its pods on the same nodes as before; before is nil for a new one.
func (q *Queue) placesLike(before *Queue) bool {
	if before == nil {
		before = &Queue{}
	}
	return q.NodeGroups.equal(before.NodeGroups) && q.GroupLimits.equal(before.GroupLimits)
}

// QueueRefuses says why a queue, nil when it does not exist, gives a job no turns; the zero Reason when it does. A queue
// that is not open starts nothing new, but completes and extends a job of which some tasks hold nodes or have succeeded.
func QueueRefuses(queue *Queue, job *Job) Reason {
	switch {
	case queue == nil:
		return Reason{Kind: QueueNotFound, Subject: job.Queue, Message: fmt.Sprintf(
			"queue %q does not exist: create it, or name another queue", job.Queue)}
	case !queue.Open() && job.Counts.Ready() == 0:
		return Reason{Kind: QueueClosed, Subject: job.Queue, Message: fmt.Sprintf(
			"queue %q is %s and starts no new jobs: open it, or name another queue", job.Queue, queue.State)}
	}
	return Reason{}
}

// Quota is a ResourceQuota: what a namespace may use and uses, by the names that quotas have ("requests.cpu").
type Quota struct {
	Namespace, Name string
	Hard, Used      resource.Vector
}

type quotaKey struct{ namespace, name string }
