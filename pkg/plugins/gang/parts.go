// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/utils/clock"

	"github.com/caldera-scheduler/caldera/pkg/gang"
	"github.com/caldera-scheduler/caldera/pkg/gang/lag"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/preemption/reserve"
	"github.com/caldera-scheduler/caldera/pkg/queue/dispatch"
)

// Parts are what the plugin asks of the scheduler that it belongs to. All fields are required.
type Parts struct {
	State *model.State
	Clock clock.WithDelayedExecution
	Rules Rules
	Lag   *lag.Lag
	// Attach makes the pods of a profile batch pods.
	Attach func(framework.Framework)
	// Binding is the client by which pods of a profile are bound.
	Binding func(framework.Framework) (kubernetes.Interface, error)
	// Turns gives turns, and Keeper keeps the room that evictions make. Both are there once the scheduler has started.
	Turns  func() *dispatch.Dispatcher
	Keeper func() *reserve.Keeper
	// Suppress leaves the event out that a pod was bound.
	Suppress func(pod types.UID)
}

// Rules are what the rules in force say about planning.
type Rules interface {
	gang.Domains
	// Arrange says in which order the members of a job are planned, and which part of them.
	Arrange(job *model.Job) gang.Arrangement
	// ReservationCanFail reports whether some plugin may refuse a reservation for the pod, so that the members of its gang must wait for each
	// other before they bind.
	ReservationCanFail(pod *corev1.Pod) bool
	// PlacesOutside reports whether the tiers ask an extender about nodes.
	PlacesOutside() bool
	// ExternalHold says why nothing at all is scheduled now, and when to look again; the zero Reason when that is not so.
	ExternalHold() (reason model.Reason, again time.Time)
	// Ready says why a job is not ready with these placements, and when to try again; the zero Reason when it is.
	Ready(ctx context.Context, job *model.Job, placements []gang.Placement) (reason model.Reason, again time.Time)
}
