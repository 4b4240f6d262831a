// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
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
