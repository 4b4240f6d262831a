// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"math"

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
func (t *Trial) Right() string { return t.claim.ground.String() }

// claim is what a trial seeks, and by which right.
type claim struct {
	ground ground
	need   resource.Vector
	// entitled: the queue may take so much by its due.
	entitled bool
	// shy: some queue would fall below its due.
	shy bool
	// gain is what the beneficiary's queue gets of its due with all that is needed; before is what queues held that have given something up
	// since the search began.
	gain   resource.Portion
	before map[*account.Queue]resource.Vector
	// rest: the task that is judged is not the first of those that go together.
	rest bool
}

// Seek begins a search for so much on top of what the beneficiary holds, and says why its queue may take nothing; the zero Reason when it
// may. Before it, and for actions that do not go by queues, victims are judged as if the queue were entitled.
func (t *Trial) Seek(need resource.Vector) model.Reason {
	t.claim = claim{ground: byDue, need: need}
	if t.ruleSet.inside() || t.ruleSet.completes() {
		return model.Reason{}
	}
	why := t.rules.entitled(t.own.queue, t.own.job, need)
	t.claim.entitled = why == (model.Reason{})
	if !t.claim.entitled && t.Relax() {
		return model.Reason{}
	}
	return why
}

// Relax has the search that found nobody begin anew by the next ground that may find somebody, and reports whether there is one. Nothing may
// be taken or gained.
func (t *Trial) Relax() bool {
	if t.ruleSet.inside() || t.ruleSet.completes() {
		return false
	}
	for next := t.claim.ground + 1; next <= byFlow; next++ {
		switch {
		case next == byGain && t.claim.entitled && t.claim.shy:
			t.claim.before = map[*account.Queue]resource.Vector{}
			t.claim.gain = t.gain()
		case next == byFlow && t.rules.flows(t.own.queue, t.own.job, t.claim.need):
		default:
			continue
		}
		t.claim.ground = next
		return true
	}
	return false
}

// gain is what the beneficiary's queue has more of its due with all that is needed.
func (t *Trial) gain() resource.Portion {
	q := t.own.queue
	held := without(t.accounts.Held(q), t.half).Counted()
	var gain resource.Portion
	for _, a := range held.More(t.claim.need) {
		due, now := q.Deserved.Get(a.Name), float64(held.Get(a.Name))
		if more := min(now+float64(a.Value), due) - min(now, due); more > 0 {
			gain = append(gain, resource.Quantity[float64]{Name: a.Name, Value: more})
		}
	}
	return gain
}

// givesUp says why a queue may not give up a request by its due; empty when it may. All: the queue is due nothing of resources that it is not
// said to be due.
func (t *Trial) givesUp(q *account.Queue, request resource.Vector, all bool) string {
	switch {
	case t.claim.ground == byGain:
		return t.worth(q, request, all)
	case t.keepsDue(q, request, all):
		return ""
	}
	t.claim.shy = true
	return whyDue
}

// worth says why a queue may not give up a request though it falls below its due; empty when it may: it was above its due of something that is
// asked for until then, and the queues of all victims lose less than is gained. For example, two queues hold three pods of a core each and
// are due 2.5. A third one is due one, holds nothing, and asks for a pod: half a core is lost, and one is gained.
func (t *Trial) worth(q *account.Queue, request resource.Vector, all bool) string {
	if !t.claim.rest && !t.above(q, request, all) {
		return whyDue
	}
	less := false
	for _, r := range t.resources(request) {
		loss, gain := t.lost(q, request, r), t.claim.gain.Get(r)
		switch {
		case !resource.AtMost(loss, gain):
			return whyLoss
		case t.ask.Get(r) > 0 && !resource.AtMost(gain, loss):
			less = true
		}
	}
	if !less {
		return whyLoss
	}
	return ""
}

// resources are those that count when losses are compared with the gain.
func (t *Trial) resources(request resource.Vector) []corev1.ResourceName {
	var names []corev1.ResourceName
	sum := request.Counted().Clone()
	sum.Add(t.claim.need.Counted())
	for q, held := range t.claim.before {
		more := held.Counted().Clone()
		more.Sub(t.accounts.Held(q).Counted())
		sum.Add(more)
	}
	for _, a := range sum {
		if a.Value > 0 && a.Name != corev1.ResourcePods {
			names = append(names, a.Name)
		}
	}
	return names
}

// above reports whether a queue holds more than its due of something in a request that is asked for.
func (t *Trial) above(q *account.Queue, request resource.Vector, all bool) bool {
	held := t.accounts.Held(q).Counted()
	for _, a := range request.Counted() {
		if a.Value <= 0 || a.Name == corev1.ResourcePods || t.ask.Get(a.Name) <= 0 || all && resource.IsDevices(a.Name) && q.Deserved.Get(a.Name) <= 0 {
			continue
		}
		if !resource.AtMost(float64(held.Get(a.Name)), q.Deserved.Get(a.Name)) {
			return true
		}
	}
	return false
}

// lost is what queues have lost of what they are due of a resource, with a request of one of them on top.
func (t *Trial) lost(giver *account.Queue, request resource.Vector, name corev1.ResourceName) (lost float64) {
	seen := false
	for q, before := range t.claim.before {
		now := t.accounts.Held(q).Counted().Get(name)
		if q == giver {
			seen = true
			now -= request.Get(name)
		}
		lost += lostOf(q.Deserved.Get(name), before.Counted().Get(name), now)
	}
	if !seen {
		held := t.accounts.Held(giver).Counted().Get(name)
		lost += lostOf(giver.Deserved.Get(name), held, held-request.Get(name))
	}
	return lost
}

// lostOf is what is lost of a due.
func lostOf(due float64, before, now int64) float64 {
	return max(0, min(float64(before), due)-min(float64(now), due))
}

// noteBefore remembers what a queue held before it gave something up.
func (t *Trial) noteBefore(q *account.Queue) {
	if t.claim.before == nil || q == t.own.queue {
		return
	}
	if _, known := t.claim.before[q]; !known {
		t.claim.before[q] = t.accounts.Held(q).Clone()
	}
}

// toll is what a victim's queue would lose of its due with this victim alone, as a part of what is gained. It does not change while victims
// are taken.
func (t *Trial) toll(v model.Victim) (toll float64) {
	q := t.usageOf(v.Job).queue
	held, known := t.claim.before[q]
	if !known {
		held = t.accounts.Held(q)
	}
	held = held.Counted()
	for _, a := range v.Task.Charge.Counted() {
		if a.Name == corev1.ResourcePods || a.Value <= 0 {
			continue
		}
		now := held.Get(a.Name)
		switch loss, gain := lostOf(q.Deserved.Get(a.Name), now, now-a.Value), t.claim.gain.Get(a.Name); {
		case loss > 0 && gain > 0:
			toll = max(toll, loss/gain)
		case loss > 0:
			return math.Inf(1)
		}
	}
	return toll
}

// letsFlow says why a request is not taken from a queue by a flow; empty when it is. The beneficiary's queue, and those above it up to where
// the paths part, stay within what flows to them with all that is needed. The victim's keep it.
func (t *Trial) letsFlow(h *jobUsage, request resource.Vector) string {
	rest := t.claim.need.Clone()
	for _, task := range t.gained {
		rest.Sub(task.Charge)
	}
	for _, q := range t.own.queue.Apart(h.queue) {
		flow := resource.Limit{Amounts: q.Flow(), Unnamed: resource.Nothing}
		if len(flow.Refuses(rest, without(t.accounts.Held(q), t.half))) > 0 {
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
