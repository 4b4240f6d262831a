// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"math"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/queue/account"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// Why a selector does not choose a task.
const (
	whyPriority     = "its job's priority is not lower"
	whyTaskPriority = "its priority is not lower"
	whyShare        = "its job would hold a smaller share than this one"
	whyBranch       = "its queue would hold less for its weight than this one"
	whyUnrelated    = "it has nothing that is asked for"
	whyDue          = "its queue would fall below what it deserves"
	whyLoss         = "its queue would lose as much of what it deserves as this one would gain"
	whyOwnFlow      = "nothing more of what other queues deserve and leave flows to this one"
	whyFlow         = "its queue, or one above it, would fall below what others leave to it"
	whyAboveDue     = "a queue above it would fall below what it deserves"
	whyGuarantee    = "its queue would fall below its guarantee"
	whyEqualFooting = "neither its queue nor this one deserves what is asked for"
	whyFirst        = "its gang is not broken, or not for long enough, or is to be completed first"
)

// shareSlack is by how much a share may differ from another and be the same (Volcano pkg/scheduler/plugins/drf/drf.go,
// shareDelta).
const shareSlack = 1e-6

// selectInside chooses tasks of jobs with a lower priority and, within the job itself, of lower task priority.
func (priority) selectInside(t *Trial, v model.Victim, h *jobUsage) string {
	switch {
	case h != t.own:
		if h.job.Priority >= t.own.job.Priority {
			return whyPriority
		}
	case v.Task.Priority >= t.taskPriority():
		return whyTaskPriority
	}
	return ""
}

// selectInside chooses tasks whose jobs keep a share of the cluster that is no smaller than the beneficiary's. Unlike in
// Volcano, what is subtracted is what was taken, and not what was rejected too.
func (drf) selectInside(t *Trial, v model.Victim, h *jobUsage) string {
	held := h.held
	if h == t.own {
		held = without(held, t.half)
	}
	left, right := t.expected().Dominant(t.portion), dominantWithout(held, v.Task.Charge, t.portion)
	if left < right || math.Abs(left-right) <= shareSlack {
		return ""
	}
	return whyShare
}

// dominantWithout is the dominant share of what is left of v without some of it.
func dominantWithout(v, without resource.Vector, whole resource.Portion) float64 {
	share := 0.0
	for _, w := range whole {
		if w.Value > 0 {
			share = max(share, float64(v.Get(w.Name)-without.Get(w.Name))/w.Value)
		}
	}
	return share
}

// selectYielding chooses broken gangs that come after the beneficiary in the order of jobs. That order is total: of any two gangs only one
// can give way to the other. One that lost members gives way once it has been broken for long.
func selectYielding(t *Trial, _ model.Victim, h *jobUsage) string {
	if h.lapses.After(t.world.Now) {
		t.refusedUntil(h.lapses)
	}
	if h.lapsed(t.world.Now) && t.CompareJobs(t.own.ranked, h.ranked) < 0 {
		return ""
	}
	return whyFirst
}

// selectAcross chooses tasks of queues that stay ahead of the beneficiary's in the tree, if it gets what it asks for. In a flat tree it is enough
// if they hold as much for their weights as this one then: what is taken back would put them ahead. In Volcano they have to hold more, so that
// one of two equal queues keeps all of the cluster if the other one's gang is half as large.
func (*hierarchical) selectAcross(t *Trial, v model.Victim, h *jobUsage) string {
	tree := t.contest()
	left := h.held.Clone()
	left.Sub(v.Task.Charge)
	tree.SetJob(h.leaf, h.job.Queue, left, h.job.Usage.Requested)
	chosen := tree.Behind(t.own.job.Queue, h.job.Queue) < 0 || tree.Level(t.own.job.Queue, h.job.Queue, shareSlack)
	tree.SetJob(h.leaf, h.job.Queue, h.held.Clone(), h.job.Usage.Requested)
	if chosen {
		return ""
	}
	return whyBranch
}

// selectAcross chooses tasks of queues that hold more than their due. See keepsDue.
func (proportion) selectAcross(t *Trial, v model.Victim, h *jobUsage) string {
	request := t.loss(h.queue, v.Task)
	switch {
	case t.unrelated(request):
		return whyUnrelated
	case !h.keepsGuarantees(t, request):
		return whyGuarantee
	case v.Task.BestEffort || !h.queue.Due():
		return ""
	}
	return t.givesUp(h.queue, request, true)
}

// selectAcross chooses tasks of queues that hold more than their due, or whose due has nothing to do with the task. In a
// tree the same is asked of as many queues above as the argument ancestorReclaimLevel says, up to where the beneficiary's
// are the same. Source: Volcano pkg/scheduler/plugins/capacity/capacity.go (reference section 4.7); see keepsDue for what
// differs.
func (p capacity) selectAcross(t *Trial, v model.Victim, h *jobUsage) string {
	request := t.loss(h.queue, v.Task)
	switch {
	case t.unrelated(request):
		return whyUnrelated
	case !h.keepsGuarantees(t, request):
		return whyGuarantee
	case t.right.ground == byFlow:
		return t.letsFlow(h, request)
	case unrelated(request, h.queue.Deserved):
		if p.onEqualFooting(t, h) {
			return whyEqualFooting
		}
	default:
		if why := t.givesUp(h.queue, request, false); why != "" {
			return why
		}
	}
	if !p.tree || t.ruleSet.ofGangs() {
		return ""
	}
	for level := 1; level <= p.levels; level++ {
		q := h.queue.Ancestor(level)
		if q == nil || q.Parent == nil {
			break
		}
		if q != t.own.queue.Ancestor(level) && !unrelated(request, q.Deserved) && !t.keepsDue(q, request, false) {
			return whyAboveDue
		}
	}
	return ""
}

// loss is what a queue holds less without a task. Devices that it shares with tasks which go along with it, all that share them, are lost, too.
func (t *Trial) loss(q *account.Queue, task *model.Task) resource.Vector {
	charge := task.Charge
	if charge.SharesDevices() && len(t.along) > 0 {
		charge = charge.Clone()
		for _, v := range t.along {
			charge.Add(v.Task.Charge.OfShared())
		}
	}
	return t.accounts.Held(q).Fewer(charge)
}

// unrelated reports whether what a task has is no use to the beneficiary. Of a gang that is evicted whole some tasks may
// be of none.
func (t *Trial) unrelated(request resource.Vector) bool {
	return t.bestEffort || !t.ruleSet.ofGangs() && !shares(request, t.ask)
}

// onEqualFooting reports whether the beneficiary's queue is due nothing of what it asks for, and the queues are relatives
// within the levels that are looked at.
func (p capacity) onEqualFooting(t *Trial, h *jobUsage) bool {
	if !p.tree || p.levels == 0 || t.ruleSet.ofGangs() || !unrelated(t.ask, t.own.queue.Deserved) {
		return false
	}
	for level := 1; level <= p.levels; level++ {
		if q := h.queue.Ancestor(level); q != nil && q.Parent != nil && q.Above(t.own.queue) {
			return true
		}
	}
	return false
}

// keepsDue reports whether a queue would still hold its due of some resource that the beneficiary asks for after giving
// up a request: that is what makes it a victim. Volcano is content if the queue holds more than its due before, and so
// takes one task too many; it also looks at resources that the beneficiary has no use for. Where all resources count,
// the queue is due nothing of those that it is not said to be due. If it is due nothing of what the beneficiary asks for,
// the rest of the request decides. Devices count only for queues that are due some.
func (t *Trial) keepsDue(q *account.Queue, request resource.Vector, all bool) bool {
	held := t.accounts.Held(q).Counted()
	keeps, decided := false, false
	for _, a := range request {
		due := q.Deserved.Get(a.Name)
		if a.Value <= 0 || a.Name == corev1.ResourcePods || due <= 0 && (!all || resource.IsDevices(a.Name)) {
			continue
		}
		left := [1]resource.Amount{{Name: a.Name, Value: held.Get(a.Name) - a.Value}}
		kept := (resource.Portion{{Name: a.Name, Value: due}}).Within(left[:])
		switch asked := t.ask.Get(a.Name) > 0; {
		case asked && !decided:
			keeps, decided = kept, true
		case asked == decided:
			keeps = keeps || kept
		}
	}
	return keeps
}

// keepsGuarantees reports whether the task's queue, and every queue above it that is not above the beneficiary's, would
// still hold what it is guaranteed of everything in a request. Volcano asks the queue itself only.
func (h *jobUsage) keepsGuarantees(t *Trial, request resource.Vector) bool {
	for _, q := range h.apart {
		for _, least := range q.Guarantee {
			if v := request.Get(least.Name); v > 0 && t.accounts.Held(q).Counted().Get(least.Name)-v < least.Value {
				return false
			}
		}
	}
	return true
}

// shares reports whether two requests have a resource in common, pod slots aside.
func shares(a, b resource.Vector) bool {
	for _, x := range a {
		if x.Value > 0 && x.Name != corev1.ResourcePods && b.Get(x.Name) > 0 {
			return true
		}
	}
	return false
}

// unrelated reports whether a due names nothing of a request, pod slots aside.
func unrelated(request resource.Vector, due resource.Portion) bool {
	for _, x := range request {
		if x.Value > 0 && x.Name != corev1.ResourcePods && due.Get(x.Name) > 0 {
			return false
		}
	}
	return true
}

// entitled lets a queue take what keeps it within its due of every resource that it asks for, for a gang of whose members some do not count
// also within its limits.
func (p proportion) entitled(q *account.Queue, own, need resource.Vector) model.Reason {
	var bounds []Bound
	limits(p, q, own, false, func(b Bound) bool {
		bounds = append(bounds, b)
		return true
	})
	if over := bounds[0].Limit.Refuses(need, bounds[0].Held); len(over) > 0 {
		return notEntitled(q, over, bounds[0].Held, need)
	}
	return bounds[len(bounds)-1].refuses(need)
}

// entitled lets a queue take what keeps it within its limits, and within its due of some resource that it asks for; in a
// tree, what keeps one of the queues above it there will do, as many levels up as ancestorReclaimLevel says. A queue above
// it that has no room may get some from others below it, as far as they hold more than their due.
func (p capacity) entitled(q *account.Queue, own, need resource.Vector) (why model.Reason) {
	if why = p.limited(q, need); why != (model.Reason{}) {
		return why
	}
	for level := 0; level <= p.levels; level++ {
		above := q.Ancestor(level)
		if above == nil || level > 0 && above.Parent == nil {
			break
		}
		due := resource.Limit{Amounts: above.Deserved, Unnamed: resource.Nothing}
		held := p.held(above, own)
		over := due.Refuses(need, held)
		if len(over) < asked(held.More(need)) {
			return model.Reason{}
		}
		if level == 0 {
			why = notEntitled(q, over, held, need)
		}
	}
	return why
}

// held is what a queue holds besides what does not count.
func (p capacity) held(q *account.Queue, own resource.Vector) resource.Vector {
	if p.tree {
		return without(q.Total.Allocated, own)
	}
	return without(q.Own.Allocated, own)
}

// flows lets a queue take what keeps it within its limits, and within what flows to it of all that it asks for and that flows at all.
func (p capacity) flows(q *account.Queue, own, need resource.Vector) bool {
	if !p.flow || asked(q.Flowing(need)) == 0 || p.limited(q, need) != (model.Reason{}) {
		return false
	}
	flow := resource.Limit{Amounts: q.Flow(), Unnamed: resource.Nothing}
	return len(flow.Refuses(q.Flowing(need), p.held(q, own))) == 0
}

// limited says why a queue may not hold so much more, even if others below the queues above it give up what is beyond their due.
func (p capacity) limited(q *account.Queue, need resource.Vector) (why model.Reason) {
	p.Limits(q, false, func(b Bound) bool {
		if why = b.refuses(need); why != (model.Reason{}) && b.Queue != q {
			b.Held = b.Held.Clone()
			yields(b.Queue, q, &b.Held)
			if b.refuses(need) == (model.Reason{}) {
				why = model.Reason{}
			}
		}
		return why == (model.Reason{})
	})
	return why
}

// asked counts the resources that are asked for, pod slots aside.
func asked(need resource.Vector) (n int) {
	for _, a := range need {
		if a.Value > 0 && a.Name != corev1.ResourcePods {
			n++
		}
	}
	return n
}

// yields subtracts what the queues below one, all but the one that takes, hold beyond their due and may lose.
func yields(from, taker *account.Queue, held *resource.Vector) {
	for _, q := range from.Children {
		yields(q, taker, held)
		if !q.Leaf() || q == taker || !mayLose(q) {
			continue
		}
		for _, a := range q.Total.Allocated.Counted() {
			if spare := a.Value - int64(q.Deserved.Get(a.Name)); spare > 0 {
				held.Sub(resource.Vector{{Name: a.Name, Value: spare}})
			}
		}
	}
}

// notEntitled says of which resources a queue would hold more than its due.
func notEntitled(q *account.Queue, over []corev1.ResourceName, held, need resource.Vector) model.Reason {
	details := make([]string, len(over))
	need, held = held.More(need), held.Counted()
	for i, name := range over {
		details[i] = fmt.Sprintf("%s: %s held, %s asked for, %s deserved", name,
			format(name, held.Get(name)), format(name, need.Get(name)), format(name, int64(q.Deserved.Get(name))))
	}
	if len(details) == 0 {
		details = []string{"nothing is asked for"}
	}
	return model.Reason{
		Kind: model.QueueFull, Subject: q.Name,
		Message: fmt.Sprintf("queue %q may take nothing from others: %s", q.Name, strings.Join(details, "; ")),
	}
}
