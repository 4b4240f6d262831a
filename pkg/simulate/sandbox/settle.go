// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
)

// mostCycles bounds the scheduling cycles of a sandbox that was allowed none by Allow.
const mostCycles = 1000

// Allow bounds how many scheduling cycles the scheduler may have from now on. Beyond that Settle fails: the scheduler goes round in circles.
func (s *Sandbox) Allow(cycles int64) { s.limit = s.sched.SchedulingQueue.SchedulingCycle() + cycles }

// Settle lets the dispatcher begin turn after turn, each when nothing is moving, and waits until the scheduler waits. An error says what does
// not come to rest.
func (s *Sandbox) Settle() error {
	return s.wait(func() string {
		moving := s.moving()
		if moving != "" {
			return moving
		}
		if quiet, _ := s.Core.Dispatcher.Quiet(); !quiet {
			s.Core.Dispatcher.Step()
			return "the dispatcher has jobs to look at"
		}
		return ""
	})
}

// Deliver waits until the scheduler has heard of all changes of objects, and begins no turn.
func (s *Sandbox) Deliver() error { return s.wait(s.receipts.undelivered) }

// Flush has the status writer write what differs, once it was told why jobs wait. It reports whether anything was written.
func (s *Sandbox) Flush() (wrote bool, err error) {
	if err := s.wait(s.untold); err != nil {
		return false, err
	}
	before := s.API.Version()
	if err := s.Core.Writer.Flush(s.ctx); err != nil {
		return false, fmt.Errorf("writing status: %w", err)
	}
	return s.API.Version() != before, s.Deliver()
}

// untold says that the writer has yet to be told why jobs wait; empty when it knows.
func (s *Sandbox) untold() string {
	if !maps.Equal(s.Core.Dispatcher.View().Reasons(), s.Core.Writer.Reasons()) {
		return "reasons for waiting are being told"
	}
	return ""
}

// Next is the first time at which the scheduler looks at jobs again though nothing happens; zero when there is none.
func (s *Sandbox) Next() time.Time {
	_, next := s.Core.Dispatcher.Quiet()
	return next
}

// KeptBack reports whether a pod is kept back because its cycle failed.
func (s *Sandbox) KeptBack() bool { return len(s.sched.SchedulingQueue.PodsInBackoffQ()) > 0 }

// Backoff is the longest time for which a pod is kept back because its cycle failed.
func (s *Sandbox) Backoff() time.Duration {
	return time.Duration(s.options.Config.PodMaxBackoffSeconds) * time.Second
}

// Retry has all pods tried again that are kept back because their cycles failed.
func (s *Sandbox) Retry() {
	failed := s.sched.SchedulingQueue.PodsInBackoffQ()
	if len(failed) == 0 {
		return
	}
	pods := make(map[string]*corev1.Pod, len(failed))
	for _, p := range failed {
		pods[p.Namespace+"/"+p.Name] = p
	}
	s.sched.SchedulingQueue.Activate(klog.FromContext(s.ctx), pods)
}

// wait waits until nothing is moving.
func (s *Sandbox) wait(moving func() string) error {
	return wait(s.ctx, bounds{patience: s.options.Patience, cycles: s.limit}, moving, func() progress {
		return progress{version: s.API.Version(), cycle: s.sched.SchedulingQueue.SchedulingCycle()}
	})
}

// moving says what of the scheduler is still moving besides the dispatcher; empty when nothing is. Work that is handed on
// while the questions are asked is found by asking twice, or has left a later version or scheduling cycle.
func (s *Sandbox) moving() string {
	version, cycle := s.API.Version(), s.sched.SchedulingQueue.SchedulingCycle()
	for _, question := range []func() string{s.working, s.between, s.working} {
		if moving := question(); moving != "" {
			return moving
		}
	}
	if s.API.Version() != version || s.sched.SchedulingQueue.SchedulingCycle() != cycle {
		return "objects change"
	}
	return ""
}

// working says which part of the scheduler has something to do; empty when none.
func (s *Sandbox) working() string {
	const scheduling = "the scheduling loop is at work"
	if !s.asking.Load() {
		// Asked first, too: most often it is this, and the other questions cost more.
		return scheduling
	}
	// What is written by now is asked for next.
	if !s.statuses.Idle() {
		return "the status of pods is being written"
	}
	if undelivered := s.receipts.undelivered(); undelivered != "" {
		return undelivered
	}
	if behind := s.Core.Rules.Behind(); behind != "" {
		return behind
	}
	if s.Core.Rules.Asking() {
		return "an extender is asked for its vote"
	}
	if s.Core.Background.Shuffling(s.Clock.Now()) {
		return "the action shuffle chooses pods"
	}
	if !s.Core.Evictions.Executor.Idle() {
		return "pods are being evicted"
	}
	if !s.Core.Gates.Idle() {
		return "scheduling gates are being taken off"
	}
	if active := s.sched.SchedulingQueue.PodsInActiveQ(); len(active) > 0 {
		return fmt.Sprintf("%d pods wait to be scheduled, the first is %s/%s", len(active), active[0].Namespace, active[0].Name)
	}
	flying := s.sched.SchedulingQueue.InFlightPods()
	if s.landings.expected(flying) && s.landings.land(s.sched.Profiles) {
		return "pods are being bound"
	}
	if len(flying) > 0 {
		return fmt.Sprintf("%d pods are being scheduled, the first is %s/%s", len(flying), flying[0].Namespace, flying[0].Name)
	}
	if !s.asking.Load() {
		return scheduling
	}
	return ""
}
