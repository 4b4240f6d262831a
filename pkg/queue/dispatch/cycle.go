// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// One goroutine of the scheduler runs all scheduling cycles. It takes the next pod from the queue between two of them, whatever became
// of the one before: skipped, refused, failed, or placed. That is where turns are handed over, and where a cycle that ended without
// telling is noticed.

// schedulingCycle is what is known of the scheduler's cycles. One at most is on. The dispatcher's lock is held when a method is called.
type schedulingCycle struct {
	// on: a cycle is on; idle is since when none is.
	on   bool
	idle time.Time
	// pod is the one whose cycle it is, and turn the number of its turn, if it takes part in one; began is when it began.
	pod   types.UID
	turn  uint64
	began time.Time
	// inVain: it came to nothing.
	inVain bool
	// handedOver: Between is called between cycles, and Failed after each that failed.
	handedOver bool
}

// begin notes that the cycle of a pod begins that takes part in a turn.
func (c *schedulingCycle) begin(pod types.UID, turn uint64, now time.Time) {
	c.on, c.pod, c.turn, c.began = true, pod, turn, now
}

// over notes that no cycle is on any more, and returns how long the last one took if it came to nothing.
func (c *schedulingCycle) over(now time.Time) (spent time.Duration) {
	if c.inVain {
		spent = now.Sub(c.began)
	}
	c.on, c.idle, c.inVain, c.handedOver = false, now, false, true
	return spent
}

// spentOn is how long the cycle has taken that got a turn on last. What the turn waited behind others' cycles is not its doing.
func (c *schedulingCycle) spentOn(t *turn, now time.Time) time.Duration {
	since := t.planning
	if c.turn == t.number {
		since = c.began
	}
	if since.IsZero() {
		return 0
	}
	return now.Sub(since)
}

// Standing is a pod that was to be moved to the active queue and is not there.
type Standing struct {
	Pod types.UID
	// GatedBy is the plugin that keeps it out. Without one the scheduling queue does not know the pod: it is yet to learn of it, or the
	// pod's last cycle has not ended.
	GatedBy string
}

// Between settles what the last scheduling cycle left open, and begins the next turn. It is called between two cycles.
func (d *Dispatcher) Between() {
	d.mu.Lock()
	now := d.cfg.Clock.Now()
	if spent := d.cycle.over(now); spent > 0 {
		d.selection.allowance.charge(now, spent)
	}
	d.conclude()
	d.mu.Unlock()
	d.proceed()
}

// Begins reports whether a pod that was taken from the queue has a part in the turn that is on. If it has none it must go back to
// where it waits. It begins its cycle if it has. No plugin keeps a pod out of the queue that was taken from it.
func (d *Dispatcher) Begins(uid types.UID) bool {
	d.mu.Lock()
	_, held := d.waits.absence.held[uid]
	d.mu.Unlock()
	if held {
		d.Seen(uid)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.urgent, uid)
	if t := d.turn; t.member(uid) == nil && !(t.offered() && t.isOf(d.cfg.State.Task(uid))) {
		return false
	}
	d.cycle.begin(uid, d.turn.number, d.cfg.Clock.Now())
	d.turn.progress, d.turn.nudged = d.cfg.Clock.Now(), false
	if d.turn.members == nil {
		// What happened before is in the snapshot that the cycle takes.
		d.turn.events, d.turn.touched = 0, nil
	}
	return true
}

// MayReserve reports whether a pod is to have a node by the turn that is on. A turn that was broken off places nobody any more.
func (d *Dispatcher) MayReserve(uid types.UID, node string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	m := d.turn.member(uid)
	return m != nil && m.node == node
}

// Busy is called when the cycle of a pod begins that is none of a batch profile's.
func (d *Dispatcher) Busy() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.cycle.on = true
}

// conclude ends the turn if the cycle that has ended should have got it on, and did not.
func (d *Dispatcher) conclude() {
	uid, t := d.cycle.pod, d.turn
	d.cycle.pod = ""
	if uid == "" || t == nil || t.number != d.cycle.turn {
		return
	}
	switch {
	case t.members == nil && t.planning.IsZero():
		// It never came to the plan: the pod was deleted, or placed by another.
		d.end(TurnChanged)
	case t.members == nil:
		d.fail(t.job, fmt.Errorf("the scheduling cycle of pod %s ended without a verdict", uid))
		d.end(TurnErrored)
	case t.member(uid) != nil:
		d.waits.setbacks.failed(t.job, 0)
		d.end(TurnBroken)
	}
}

// Failed is called when the scheduler has put a pod back whose scheduling or binding cycle failed; err is not nil when that was for an
// error, of a plugin or an extender for instance, and not for want of room.
func (d *Dispatcher) Failed(uid types.UID, job model.JobKey, err error) {
	d.mu.Lock()
	if _, ok := d.waits.absence.away[uid]; ok {
		delete(d.waits.absence.away, uid)
		d.waits.changed[job] = true
	}
	switch t := d.turn; {
	case err == nil:
	case t != nil && d.cycle.pod == uid && t.number == d.cycle.turn:
		d.fail(job, err)
		d.end(TurnErrored)
	default:
		d.waits.setbacks.explain(job, err)
	}
	d.mu.Unlock()
	d.proceed()
}

// NoNodes ends the turn that the pod leads: the scheduler does not even begin to look for one where there are no nodes. Its cache may not
// know yet of those that there are.
func (d *Dispatcher) NoNodes(uid types.UID) {
	d.mu.Lock()
	t, task := d.turn, d.cfg.State.Task(uid)
	leads := t != nil && t.members == nil && t.planning.IsZero() && t.maybeLedBy(task)
	if leads {
		if job := d.waits.job(t.job); job != nil {
			t.lead = task.Pod
			d.noteLot(t, job)
		}
	}
	d.mu.Unlock()
	if leads {
		d.Refused(uid, Refusal{Reason: noNodes, Stale: d.cfg.State.Totals().Nodes > 0})
	}
}

var noNodes = model.Reason{
	Kind: model.NotEnoughResources, Subject: "nodes", FromNodes: true, Message: "the cluster has no nodes that the scheduler knows",
}

// Seen records that the scheduling queue has a pod: one that it did not know, or that another plugin kept out of it.
func (d *Dispatcher) Seen(uid types.UID) {
	d.mu.Lock()
	missed, away := d.waits.absence.away[uid]
	if away {
		d.waits.changed[missed.job] = true
	}
	_, held := d.waits.absence.held[uid]
	d.waits.absence.forget(uid)
	d.mu.Unlock()
	if held {
		d.cfg.State.Hold(uid, "")
	}
	if away || held {
		d.wake()
	}
}

// activate moves pods of a turn to the active queue. Those that are not there then end it: what another plugin holds is not to be
// placed until it lets go, and what the queue does not know is waited for.
func (d *Dispatcher) activate(number uint64, pods []*corev1.Pod) {
	standings := d.cfg.Activate(pods)
	if len(standings) == 0 {
		return
	}
	var noted []Standing
	d.mu.Lock()
	for _, s := range standings {
		task := d.cfg.State.Task(s.Pod)
		if t := d.turn; t == nil || t.number != number || task == nil || d.cycle.pod == s.Pod || !t.waitsFor(s.Pod) {
			// It got on, or is over, since.
			continue
		}
		if s.GatedBy != "" {
			d.waits.absence.held[s.Pod] = s.GatedBy
		} else {
			d.waits.absence.away[s.Pod] = away{task.Job, d.cfg.Clock.Now().Add(overtakenAfter)}
			d.waits.changed[task.Job] = true
		}
		noted = append(noted, s)
	}
	if len(noted) > 0 {
		d.end(TurnChanged)
	}
	d.mu.Unlock()
	d.recheck(noted, pods)
}

// recheck asks the queue once more where pods are that were noted as absent, and tells the model of those that plugins hold. What the queue
// got, or a plugin let go, before that was noted has told nobody.
func (d *Dispatcher) recheck(noted []Standing, pods []*corev1.Pod) {
	if len(noted) == 0 {
		return
	}
	was := map[types.UID]Standing{}
	for _, s := range noted {
		if was[s.Pod] = s; s.GatedBy != "" {
			d.cfg.State.Hold(s.Pod, s.GatedBy)
		}
	}
	still := map[Standing]bool{}
	for _, s := range d.cfg.Activate(slices.DeleteFunc(slices.Clone(pods), func(p *corev1.Pod) bool {
		_, asked := was[p.UID]
		return !asked
	})) {
		still[s] = true
	}
	for _, s := range noted {
		if still[s] {
			continue
		}
		// Whoever was told that it was let go may have found that the model had yet to be told that it was held.
		d.cfg.State.Hold(s.Pod, "")
		d.Seen(s.Pod)
	}
}

// forgetPods drops what is kept of pods that are gone, or have a node.
func (d *Dispatcher) forgetPods(uids []types.UID) {
	if len(d.waits.absence.away)+len(d.waits.absence.held)+len(d.urgent) == 0 {
		return
	}
	for _, uid := range uids {
		if task := d.cfg.State.Task(uid); task == nil || task.Status != model.Pending && task.Status != model.Allocated {
			d.waits.absence.forget(uid)
			delete(d.urgent, uid)
		}
	}
}

// The bounds of a turn.
const (
	// nudgeAfter is how long a turn may stand still while the scheduler has nothing to do before its pods are activated once more; twice
	// as long, and it is over. Neither happens unless the scheduling queue loses a pod. Run looks so often.
	nudgeAfter = 100 * time.Millisecond
	// overtakenAfter is how long it may stand still while the scheduler is busy with others.
	overtakenAfter = 10 * time.Second
	// mostTurn and mostMember are how long a turn may take in all.
	mostTurn   = 30 * time.Second
	mostMember = 20 * time.Millisecond
)

// watch looks after a turn that stands still: its pods are activated once more, in the end it is over.
func (d *Dispatcher) watch() (activate []*corev1.Pod, wake time.Duration) {
	activate, over := d.turn.nudge(&d.cycle, d.cfg.Clock.Now())
	if over {
		d.waits.setbacks.failed(d.turn.job, 0)
		d.cfg.Recorder.Abandoned()
		d.end(TurnBroken)
		return nil, 0
	}
	return activate, nudgeAfter
}

// nudge returns the pods that have to be activated once more if the turn stands still, and whether it has done so for too long.
func (t *turn) nudge(c *schedulingCycle, now time.Time) (pods []*corev1.Pod, over bool) {
	still := now.Sub(t.progress)
	idle := min(still, now.Sub(c.idle))
	switch {
	case still >= overtakenAfter, now.Sub(t.began) >= mostTurn+time.Duration(len(t.members))*mostMember:
		return nil, true
	case c.on || idle < nudgeAfter:
		return nil, false
	case t.nudged:
		return nil, idle >= 2*nudgeAfter
	}
	t.nudged = true
	if t.members == nil {
		return []*corev1.Pod{t.lead}, false
	}
	for _, m := range t.members {
		if !m.done {
			pods = append(pods, m.pod)
		}
	}
	return pods, false
}
