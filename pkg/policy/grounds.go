// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/queue/account"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// ground is the right by which a job's queue takes from other queues. A search goes by one at a time, in this order, and by the next only if
// it found nobody.
//
// No two decisions undo each other. Let each queue hold H and be due D. By each ground the sum of min(H, D) over all queues rises for
// something that is asked for. By a flow it may stay as it is, and that of min(H, flow) rises. By the first ground that is so of one resource; where there are
// several, Reversible sees to it.
type ground uint8

const (
	// byDue: a queue that gives something up keeps its due of something that is asked for.
	byDue ground = iota
	// byGain: it may fall below its due with the last pod or job that it gives up. What all such queues lose of their dues is less than what the
	// job's queue gains of its own.
	byGain
	// byFlow: queues share what their siblings leave of what the queue above them is due. Nobody loses what flows to it.
	byFlow
)

func (g ground) String() string { return [...]string{"due", "gain", "flow"}[g] }

// Right names the right by which the trial takes from other queues: due, gain or flow.
func (t *Trial) Right() string { return t.right.ground.String() }

// right is what a trial seeks, and by which ground.
type right struct {
	ground ground
	need   resource.Vector
	// entitled: the queue may take so much by its due.
	entitled bool
	// shy: some queue would fall below its due.
	shy bool
	// rest: the task that is judged is not the first of those that go together.
	rest bool
	losses
}

// Seek begins a search for so much on top of what the beneficiary holds, and says why its queue may take nothing; the zero Reason when it
// may. Before it, and for actions that do not go by queues, victims are judged as if the queue were entitled.
func (t *Trial) Seek(need resource.Vector) model.Reason {
	t.right = right{ground: byDue, need: need}
	if t.ruleSet.inside() || t.ruleSet.completes() {
		return model.Reason{}
	}
	if t.ruleSet.moves != nil {
		return t.rules.mayTake(t.own.queue, t.own.job, need)
	}
	why := t.rules.entitled(t.own.queue, t.own.job, need)
	t.right.entitled = why == (model.Reason{})
	if !t.right.entitled && t.Relax() {
		return model.Reason{}
	}
	return why
}

// Relax has the search that found nobody begin anew by the next ground that may find somebody, and reports whether there is one. Nothing may
// be taken or gained.
func (t *Trial) Relax() bool {
	if t.ruleSet.inside() || t.ruleSet.completes() || t.ruleSet.moves != nil {
		return false
	}
	for next := t.right.ground + 1; next <= byFlow; next++ {
		switch {
		case next == byGain && t.right.shy && t.withinDue():
			t.right.losses = newLosses(t.accounts, t.own.queue, t.half, t.right.need)
		case next == byFlow && t.rules.flows(t.own.queue, t.own.job, t.right.need):
		default:
			continue
		}
		t.right.ground = next
		return true
	}
	return false
}

// withinDue reports whether the beneficiary's queue stays within its due of all that it asks for. Of two resources it could else take one of which it
// is due nothing more, and be taken from again.
func (t *Trial) withinDue() bool {
	q := t.own.queue
	due := resource.Limit{Amounts: q.Deserved, Unnamed: resource.Nothing}
	return t.right.entitled && len(due.Refuses(t.right.need, without(t.accounts.Held(q), t.half))) == 0
}

// givesUp says why a queue may not give up a request by its due; empty when it may. All: the queue is due nothing of resources that it is not
// said to be due.
func (t *Trial) givesUp(q *account.Queue, request resource.Vector, all bool) string {
	switch r := &t.right; {
	case r.ground == byGain && !r.rest && !t.above(q, request, all):
		return whyDue
	case r.ground == byGain:
		return r.judge(q, request, t.ask)
	case t.keepsDue(q, request, all):
		return ""
	}
	t.right.shy = true
	return whyDue
}

// above reports whether a queue holds more than its due of something in a request that is asked for.
func (t *Trial) above(q *account.Queue, request resource.Vector, all bool) bool {
	held := t.accounts.Held(q).Counted()
	for _, a := range request.Counted() {
		due := q.Deserved.Get(a.Name)
		if a.Value <= 0 || a.Name == corev1.ResourcePods || t.ask.Get(a.Name) <= 0 || all && resource.IsDevices(a.Name) && due <= 0 {
			continue
		}
		if !resource.AtMost(float64(held.Get(a.Name)), due) {
			return true
		}
	}
	return false
}

// letsFlow says why a request is not taken from a queue by a flow; empty when it is. The beneficiary's queue, and those above it up to where
// the paths part, stay within what flows to them with all that is needed. The victim's keep it.
func (t *Trial) letsFlow(h *jobUsage, request resource.Vector) string {
	rest := t.right.need.Clone()
	for _, task := range t.gained {
		rest.Sub(task.Charge)
	}
	for _, q := range t.own.queue.Apart(h.queue) {
		flow := resource.Limit{Amounts: q.Flow(), Unnamed: resource.Nothing}
		if len(flow.Refuses(q.Flowing(rest), without(t.accounts.Held(q), t.half))) > 0 {
			return whyOwnFlow
		}
	}
	for _, q := range h.apart {
		held := t.accounts.Held(q).Counted()
		for _, a := range request.Counted() {
			if a.Value > 0 && a.Name != corev1.ResourcePods && !resource.AtMost(q.Flow().Get(a.Name), float64(held.Get(a.Name)-a.Value)) {
				return whyFlow
			}
		}
	}
	return ""
}
