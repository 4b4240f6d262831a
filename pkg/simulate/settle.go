// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
)

const (
	// pause is the simulated time between two rounds. It is longer than anything the scheduler waits for before it
	// says why a job waits.
	pause = 5 * time.Second
	// horizon is the simulated time in which a round waits for what the scheduler does by the clock.
	horizon = time.Minute
	// mostCycles and cyclesAPod bound the scheduling cycles of one round.
	mostCycles = 1000
	cyclesAPod = 100
	// mostFlushes bounds how often status is written before a round is over.
	mostFlushes = 1000
)

// round lets the scheduler do all it can. What it did since the last round ended is of this round: ordinary pods are
// scheduled as soon as kubelets make room.
func (c *cluster) round(number int) (Round, error) {
	pods, err := c.pods()
	if err != nil {
		return Round{}, err
	}
	c.limit = c.sched.SchedulingQueue.SchedulingCycle() + mostCycles + cyclesAPod*int64(len(pods))
	if err := c.act(c.clock.Now().Add(horizon)); err != nil {
		return Round{}, err
	}
	bound, disrupted := len(c.boundIn), c.disrupted
	for _, uid := range c.api.Bound()[bound:] {
		c.boundIn[uid] = number
	}
	c.disrupted = len(c.api.Disruptions())
	c.api.Trim()
	return Round{Number: number, Bound: len(c.boundIn) - bound, Disrupted: c.disrupted - disrupted}, nil
}

// act lets the scheduler do all it can, by events and by the clock until the end.
func (c *cluster) act(end time.Time) error {
	for range mostFlushes {
		if err := c.rest(); err != nil {
			return err
		}
		wrote, err := c.flush()
		if err != nil {
			return err
		}
		if !wrote && !c.sleep(end) {
			return nil
		}
	}
	return fmt.Errorf("the scheduler does not come to rest: it has written status %d times in this round", mostFlushes)
}

// rest lets the dispatcher begin turn after turn, each when nothing is moving, and waits until the scheduler waits.
func (c *cluster) rest() error {
	return c.wait(func() string {
		moving := c.moving()
		if moving != "" {
			return moving
		}
		if quiet, _ := c.core.Dispatcher.Quiet(); !quiet {
			c.core.Dispatcher.Step()
			return "the dispatcher has jobs to look at"
		}
		return ""
	})
}

// wait waits until nothing is moving.
func (c *cluster) wait(moving func() string) error {
	return wait(c.ctx, bounds{patience: c.options.Patience, cycles: c.limit}, moving, func() progress {
		return progress{version: c.api.Version(), cycle: c.sched.SchedulingQueue.SchedulingCycle()}
	})
}

// flush has the status writer write what differs. It reports whether anything was written.
func (c *cluster) flush() (wrote bool, err error) {
	before := c.api.Version()
	if err := c.core.Writer.Flush(c.ctx); err != nil {
		return false, fmt.Errorf("writing status: %w", err)
	}
	return c.api.Version() != before, c.wait(c.receipts.undelivered)
}

// sleep lets time pass until the scheduler means to do something by the clock. It returns false when there is nothing
// of that kind before the end, which comes soon once somebody is evicted: who was is gone in the next round.
func (c *cluster) sleep(end time.Time) bool {
	least := end.Add(pause - horizon)
	if len(c.api.Disruptions()) > c.disrupted {
		end = least
	}
	if _, next := c.core.Dispatcher.Quiet(); !next.IsZero() && !next.After(end) {
		c.clock.SetTime(next)
		return true
	}
	if failed := c.sched.SchedulingQueue.PodsInBackoffQ(); len(failed) > 0 && c.clock.Now().Before(end) {
		c.clock.Step(time.Duration(c.options.Config.PodMaxBackoffSeconds) * time.Second)
		pods := make(map[string]*corev1.Pod, len(failed))
		for _, p := range failed {
			pods[p.Namespace+"/"+p.Name] = p
		}
		c.sched.SchedulingQueue.Activate(klog.FromContext(c.ctx), pods)
		return true
	}
	if c.clock.Now().Before(least) {
		c.clock.Step(pause)
		return true
	}
	return false
}

// moving says what of the scheduler is still moving besides the dispatcher; empty when nothing is. Work that is handed on
// while the questions are asked is found by asking twice, or has left a later version or scheduling cycle.
func (c *cluster) moving() string {
	version, cycle := c.api.Version(), c.sched.SchedulingQueue.SchedulingCycle()
	for _, question := range []func() string{c.working, c.lagging, c.working} {
		if moving := question(); moving != "" {
			return moving
		}
	}
	if c.api.Version() != version || c.sched.SchedulingQueue.SchedulingCycle() != cycle {
		return "objects change"
	}
	return ""
}

// working says which part of the scheduler has something to do; empty when none.
func (c *cluster) working() string {
	if undelivered := c.receipts.undelivered(); undelivered != "" {
		return undelivered
	}
	if behind := c.core.Rules.Behind(); behind != "" {
		return behind
	}
	if c.core.Rules.Asking() {
		return "an extender is asked for its vote"
	}
	if c.core.Background.Shuffling(c.clock.Now()) {
		return "the action shuffle chooses pods"
	}
	if !c.core.Evictions.Executor.Idle() {
		return "pods are being evicted"
	}
	if !c.core.Gates.Idle() {
		return "scheduling gates are being taken off"
	}
	if active := c.sched.SchedulingQueue.PodsInActiveQ(); len(active) > 0 {
		return fmt.Sprintf("%d pods wait to be scheduled, the first is %s/%s", len(active), active[0].Namespace, active[0].Name)
	}
	if flying := c.sched.SchedulingQueue.InFlightPods(); len(flying) > 0 {
		return fmt.Sprintf("%d pods are being scheduled, the first is %s/%s", len(flying), flying[0].Namespace, flying[0].Name)
	}
	if !c.asking.Load() {
		return "the scheduling loop is at work"
	}
	return ""
}

// lagging says which part of the scheduler has not taken note yet of what another part did; empty when none.
func (c *cluster) lagging() string {
	if !maps.Equal(c.core.Dispatcher.View().Reasons(), c.core.Writer.Reasons()) {
		return "reasons for waiting are being told"
	}
	// All is delivered, so that the scheduler's informer has what the API has.
	pods, err := c.kube.Core().V1().Pods().Lister().List(labels.Everything())
	if err != nil {
		return err.Error()
	}
	pending, _ := c.sched.SchedulingQueue.PendingPods()
	queued := make(map[types.UID]bool, len(pending))
	for _, p := range pending {
		queued[p.UID] = true
	}
	for _, p := range pods {
		if lagging := c.between(p, queued); lagging != "" {
			return lagging
		}
	}
	return ""
}

// between says where a pod without a node is when it is not in the scheduling queue; empty when it is there or is none
// of this scheduler's.
func (c *cluster) between(p *corev1.Pod, queued map[types.UID]bool) string {
	if _, ours := c.sched.Profiles[p.Spec.SchedulerName]; !ours || p.Spec.NodeName != "" || finished(p) {
		return ""
	}
	if assumed, err := c.sched.Cache.IsAssumedPod(p); err != nil || assumed {
		return fmt.Sprintf("pod %s/%s is being bound", p.Namespace, p.Name)
	}
	if !queued[p.UID] && p.DeletionTimestamp == nil {
		return fmt.Sprintf("pod %s/%s is between binding and the queue", p.Namespace, p.Name)
	}
	return ""
}
