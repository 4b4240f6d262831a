// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
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
	// Object is the Queue as last seen; never to be changed.
	Object runtime.Object
}

// Open reports whether the queue starts new jobs.
func (q *Queue) Open() bool { return q.State == "" || q.State == QueueOpen }

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
