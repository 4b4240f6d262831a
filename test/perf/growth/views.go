// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/utils/clock"

	"github.com/caldera-scheduler/caldera/pkg/apis/visibility/v1alpha1"
	"github.com/caldera-scheduler/caldera/pkg/preemption/eviction"
	"github.com/caldera-scheduler/caldera/pkg/visibility"
)

// view asks for what the visibility API shows.
type view func(*world, *visibility.Views) error

// views are those of the cluster, of which nothing is made yet.
func (w *world) views() *visibility.Views {
	return visibility.New(visibility.Source{
		State: w.state, Dispatch: w.dispatch.View(), Ledger: eviction.NewLedger(1, time.Minute), Clock: clock.RealClock{}, Leader: v1alpha1.Leader{Identity: "growth"},
	})
}

// explained is the view of one job that waits, with its place and, if it was refused, why.
func explained(w *world, views *visibility.Views) error {
	name := "gang-0"
	v := views.Job(namespace, name)
	switch {
	case v == nil:
		return fmt.Errorf("job %s has no view", name)
	case !v.Status.Waiting || v.Status.Position == nil || v.Status.Position.OfQueues != int32(w.queues): //nolint:gosec // some thousands
		return fmt.Errorf("job %s waits: %t, at the place %+v, want one of %d queues", name, v.Status.Waiting, v.Status.Position, w.queues)
	}
	return nil
}

// jobViews are those of all jobs, one of which is as explained.
func jobViews(w *world, views *visibility.Views) error {
	if n, want := len(views.Jobs()), w.nodes+w.jobs; n != want {
		return fmt.Errorf("%d jobs have views, want %d", n, want)
	}
	return explained(w, views)
}

// queueViews are those of all queues.
func queueViews(w *world, views *visibility.Views) error {
	// There are two more, and the default one if jobs name it.
	if n := len(views.Queues()); n < w.queues+2 {
		return fmt.Errorf("%d queues have views, want %d or more", n, w.queues+2)
	}
	return nil
}

// clusterView is that of the cluster. It begins with those of the queues.
func clusterView(w *world, views *visibility.Views) error {
	if v := views.Cluster(); int(v.Status.Waiting) != w.jobs || int(v.Status.Nodes) != w.nodes {
		return fmt.Errorf("the cluster has %d nodes and %d jobs that wait, want %d and %d", v.Status.Nodes, v.Status.Waiting, w.nodes, w.jobs)
	}
	return nil
}

// scraped is what /metrics shows of jobs, queues and nodes.
func scraped(w *world, _ *visibility.Views) error {
	v := w.dispatch.View()
	queues, waiting, shares, slots := v.Figures(), v.Waiting(), v.Shares(), v.Slots(1, 2, 4, 8)
	if len(queues) < w.queues+2 || len(waiting) != w.jobs || len(shares) != w.nodes+w.jobs || len(slots[device]) == 0 {
		return fmt.Errorf("metrics have %d queues, %d jobs that wait of %d, and of devices %v", len(queues), len(waiting), len(shares), slots[device])
	}
	return nil
}

// answer is how long it takes to make a view.
func answer(ask view) func(context.Context, *world) (time.Duration, error) {
	return func(_ context.Context, w *world) (time.Duration, error) {
		w.stir()
		views := w.views()
		began := time.Now()
		err := ask(w, views)
		return time.Since(began), err
	}
}

// stir has one in a hundred of the bound pods' number of jobs change, as between two views that are made one after the other.
func (w *world) stir() {
	changed := w.singles[:min(w.hundredth(), len(w.singles))]
	for i, p := range changed {
		w.state.Assume(p.UID, nodeName(i%w.nodes))
		w.state.Forget(p.UID)
	}
	w.dispatch.Step()
	w.decline()
}

// lock is taken, and given back at once.
type lock func(*world)

// dispatchers is the lock that each scheduling cycle takes, and each event.
func dispatchers(w *world) { w.dispatch.Gate("nobody") }

// models is the lock that each event takes, and each pod that gets a node.
func models(w *world) { w.state.Forget("nobody") }

// keeps is how long others who ask for a lock again and again wait for it at most while a view is made. The fastest of some times counts, as of all
// operations: where the processor was somebody else's for a moment, it is that which was waited for.
func keeps(take lock, ask view) func(context.Context, *world) (time.Duration, error) {
	return func(_ context.Context, w *world) (time.Duration, error) {
		w.stir()
		views := w.views()
		begun, made, longest := make(chan struct{}), make(chan struct{}), make(chan time.Duration)
		go func() {
			take(w)
			close(begun)
			longest <- w.longest(take, made)
		}()
		<-begun
		err := ask(w, views)
		close(made)
		return <-longest, err
	}
}

// longest is how long it took at most to take a lock until a channel was closed.
func (w *world) longest(take lock, until <-chan struct{}) (longest time.Duration) {
	// It leaves the processor to who makes the view, and misses of a hold no more than that.
	const pause = 100 * time.Microsecond
	for {
		began := time.Now()
		take(w)
		longest = max(longest, time.Since(began))
		select {
		case <-until:
			return longest
		case <-time.After(pause):
		}
	}
}
