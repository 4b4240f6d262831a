// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// Settled returns the reason to give for a turn that is refused: that of the first refusal as long as it is the same, so
// that messages do not change with every number.
func (d *Dispatcher) Settled(lead types.UID, reason model.Reason) model.Reason {
	d.mu.Lock()
	defer d.mu.Unlock()
	if t := d.turn; t != nil && t.lead.UID == lead {
		if l := d.lots.of(t); l != nil && l.reason.Same(reason) {
			return l.reason
		}
	}
	return reason
}

// Refusal is why a turn comes to nothing.
type Refusal struct {
	Reason model.Reason
	// Again is when the job is to be tried again though nothing happens; zero: never.
	Again time.Time
	// Exact: somebody went by the labels of the job's pods, so that jobs with other labels may be told otherwise.
	Exact bool
	// Uncounted: the filters take nodes that have no room by the count of places.
	Uncounted bool
	// Unmet: what the pods name, such as a volume claim, is not as they need it. Pods that come and go do not help.
	Unmet bool
	// Stale: the scheduler's cache did not know of all room.
	Stale bool
	// Vetoes are the nodes that filters refuse though they have room.
	Vetoes []Veto
}

// Refused ends the turn because the plan does not hold; the job's lot is parked.
func (d *Dispatcher) Refused(lead types.UID, r Refusal) {
	d.mu.Lock()
	if t := d.turn; t != nil && t.lead.UID == lead && t.resumes != nil {
		// It has found out nothing but that.
		d.end(TurnChanged)
	} else if t != nil && t.lead.UID == lead {
		d.chargeTurn(t)
		d.end(TurnRefused)
		if w := d.waits.jobs[t.job]; w != nil {
			w.refused++
			if r.Exact && w.lot != nil && w.lot.key == t.lot {
				d.waits.tellApart(w)
				t.lot = w.lot.key
			}
		}
		if l := d.lots.of(t); l != nil {
			d.lots.refuse(l, t, r)
		}
	}
	d.mu.Unlock()
	d.proceed()
}

// chargeTurn takes the cost of a plan that came to nothing off the allowance: that of its whole cycle, once this has ended. To tell the API
// server of a refusal may take longer than to find it out.
func (d *Dispatcher) chargeTurn(t *turn) {
	if d.cycle.pod != "" && d.cycle.turn == t.number {
		d.cycle.inVain = true
		return
	}
	now := d.cfg.Clock.Now()
	d.selection.allowance.charge(now, d.cycle.spentOn(t, now))
}

// Repeat ends the turn because it was planned without room that there is, of which the scheduler's cache was yet to learn. The
// job stays where it is in the order, so that nobody takes the room before it. Not so, and the turn goes on, when it has been
// repeated many times in a row: where room comes and goes all the time, there is always some to learn of.
func (d *Dispatcher) Repeat(lead types.UID) bool {
	d.mu.Lock()
	t := d.turn
	if t == nil || t.lead.UID != lead {
		d.mu.Unlock()
		return false
	}
	w := d.waits.jobs[t.job]
	if w == nil || w.repeats == mostRepeats {
		d.mu.Unlock()
		return false
	}
	d.chargeTurn(t)
	d.end(TurnRepeated)
	d.selection.repeated = true
	if w.repeats++; w.repeats > quickRepeats {
		d.breathe()
	}
	d.mu.Unlock()
	d.proceed()
	return true
}

// breathe has no turn begin for a breath, if there is time left for what comes to nothing, or breaths alone take no more than is allowed. Who steps
// a dispatcher through time has the cache catch up before each step.
func (d *Dispatcher) breathe() {
	now := d.cfg.Clock.Now()
	if d.stepped || !d.selection.allowance.left(now) && now.Sub(d.paused) < breath*allowedPart {
		return
	}
	d.paused = now.Add(breath)
	d.selection.allowance.charge(now, breath)
}

// Reserved records that a member holds its node, and reports whether it must wait for others before it binds. The turn
// ends with the last one.
func (d *Dispatcher) Reserved(uid types.UID) (wait bool) {
	d.mu.Lock()
	t := d.turn
	if t == nil || t.members[uid] == nil {
		d.mu.Unlock()
		return false
	}
	t.finish(t.members[uid], d.cfg.Clock.Now())
	if t.open > 0 {
		d.mu.Unlock()
		return t.fragile
	}
	if l := d.lots.of(t); l != nil && l.best().failures > 0 {
		d.chargeTurn(t)
	}
	d.lots.trust(t)
	d.end(TurnPlaced)
	d.mu.Unlock()
	d.proceed()
	return false
}

// Lost records that a pod did not get the node it was meant for, though no plugin failed. If its turn is on, the turn ends: what is
// reserved stays unless the turn is fragile, and the job is planned again first.
func (d *Dispatcher) Lost(uid types.UID, job model.JobKey) {
	d.mu.Lock()
	d.lose(uid, job)
	d.mu.Unlock()
	d.proceed()
}

// Unreserved records that a pod no longer has the node it was meant for. Until Failed is called for it, the scheduling queue does not
// know it, and its job has no turns.
func (d *Dispatcher) Unreserved(uid types.UID, job model.JobKey) {
	d.mu.Lock()
	if d.cycle.handedOver {
		d.waits.absence.away[uid] = away{job, d.cfg.Clock.Now().Add(mostTurn)}
	}
	d.lose(uid, job)
	d.mu.Unlock()
	d.proceed()
}

// lose takes in that a pod does not get its node. Its job rests, unless the pod is gone: whoever deleted it is why.
func (d *Dispatcher) lose(uid types.UID, job model.JobKey) {
	if d.cfg.State.Task(uid) != nil {
		d.waits.setbacks.failed(job, 0)
	}
	if d.turn != nil && d.turn.breaksWithout(uid) {
		d.end(TurnBroken)
	}
}

// Bound records that a pod is on its node: what failed before is forgotten, and its job need not rest any longer.
func (d *Dispatcher) Bound(job model.JobKey) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.waits.setbacks.bound(job) {
		d.wake()
	}
}

// end closes the turn. Members that wait for each other bind if all of them have their nodes.
func (d *Dispatcher) end(result TurnResult) {
	t := d.turn
	d.cfg.Recorder.Turn(t.phase(), result, d.cfg.Clock.Since(t.began))
	d.turn = nil
	if w := d.waits.jobs[t.job]; w != nil && result != TurnRepeated {
		w.repeats = 0
	}
	if t.resumes != nil && result != TurnRepeated {
		d.waits.resumption.drop(t.resumes)
	}
	for _, key := range t.jobs() {
		d.waits.changed[key] = true
	}
	if t.fragile {
		d.outbox.settle(slices.Collect(maps.Keys(t.members)), result == TurnPlaced)
	}
}

// checkMembers drops members that no longer wait for a node: deleted, finished or bound by someone else. The turn ends
// when none is left; a fragile one, whose members only bind together, ends at once.
func (d *Dispatcher) checkMembers(changed []types.UID) {
	t := d.turn
	gone := false
	for _, uid := range changed {
		task := d.cfg.State.Task(uid)
		if m := t.members[uid]; m != nil && !m.done && (task == nil || task.Status != model.Pending && task.Status != model.Allocated) {
			t.finish(m, d.cfg.Clock.Now())
			gone = true
		}
		gone = gone || t.members == nil && uid == t.lead.UID && !t.maybeLedBy(task)
	}
	switch {
	case !gone:
	case t.members == nil:
		d.end(TurnChanged)
	case t.fragile || t.open == 0:
		d.end(TurnBroken)
	}
}

// fail charges the job whose pod failed with what the turn took, and says so. Jobs that ask for the same wait as long: what fails for
// one is likely to fail for them.
func (d *Dispatcher) fail(key model.JobKey, err error) {
	w := d.waits.jobs[key]
	if w == nil {
		return
	}
	cost := d.cycle.spentOn(d.turn, d.cfg.Clock.Now())
	d.chargeTurn(d.turn)
	reason := model.Reason{Kind: model.SchedulerError, Message: fmt.Sprintf("planning failed: %v", err)}
	if l := w.lot; l != nil && cost > 0 {
		d.lots.rest(l, chargedPart*cost)
	}
	d.waits.setbacks.failed(key, cost)
	d.lots.tell(w, reason)
}

// Errored ends the turn because planning failed; the job is tried again after a back-off.
func (d *Dispatcher) Errored(lead types.UID, err error) {
	d.mu.Lock()
	if t := d.turn; t != nil && t.lead.UID == lead {
		d.fail(t.job, err)
		d.end(TurnErrored)
	}
	d.mu.Unlock()
	d.proceed()
}
