// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"
	"time"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/queue/account"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// Why nobody of a job is a victim.
const (
	whySelf         = "it is of the job itself"
	whyOtherQueue   = "it is in another queue"
	whySameQueue    = "it is in the same queue"
	whyQueueFault   = "its queue is left out"
	whyQueueUnknown = "its queue does not exist"
	whyJobStays     = "its job is not to be evicted"
	whyNoGroup      = "its PodGroup does not exist, so that nobody knows its minimum"
)

// jobUsage is a job in a trial: what it holds, and what is left of it.
type jobUsage struct {
	job    *model.Job
	ranked *Ranked
	// queue is never nil.
	queue *account.Queue
	// stays says why nobody of the job is a victim, and until when if that ends; empty when somebody may be.
	stays string
	until time.Time
	// held is what the job holds: of the beneficiary also what it gained.
	held resource.Vector
	// leaf names the job in the tree of hierarchical drf.
	leaf string
	// left is who is not taken, taken how many are. broken: the job was below a minimum to begin with.
	left   model.Left
	taken  int
	broken bool
	// lapses is from when on a broken gang goes as a whole; zero for never.
	lapses time.Time
	// atOnce is how many may be taken as far as the PodGroup goes; revocable: some waiting task may be evicted, or run on
	// revocable nodes. Only tdm asks.
	atOnce    int
	revocable bool
	distance  int
	// apart are the queues that the job is in and the beneficiary is not.
	apart []*account.Queue
}

// usageOf returns the state of a job.
func (t *Trial) usageOf(job *model.Job) *jobUsage {
	if t.last != nil && t.last.job == job {
		return t.last
	}
	h := t.usages[job.Key]
	if h == nil {
		h = t.admit(job)
		t.relate(h)
		t.usages[job.Key] = h
	}
	t.last = h
	return h
}

// admit opens the state of a job.
func (t *Trial) admit(job *model.Job) *jobUsage {
	h := &jobUsage{
		job: job, ranked: t.Rank(job), queue: t.accounts.Queue(job.Queue), held: job.Usage.Allocated.Clone(),
		left: job.Left(), broken: !job.Started(), atOnce: job.EvictableAtOnce(), lapses: t.world.Lapses.of(job),
	}
	if h.queue == nil {
		h.queue = &account.Queue{Name: job.Queue}
	}
	if t.tree != nil {
		h.leaf = leafOf(job.Key)
	}
	return h
}

// relate finds how a job's queue is related to that of the beneficiary, if there is one.
func (t *Trial) relate(h *jobUsage) {
	if t.own == nil {
		return
	}
	h.apart = []*account.Queue{h.queue}
	if t.accounts.Mode() == account.Hierarchy && !t.ruleSet.completes() {
		h.apart, h.distance = h.queue.Apart(t.own.queue), t.own.queue.Distance(h.queue)
	}
	h.stays, h.until = t.relation(h)
}

// relation says why nobody of a job is a victim, and until when if that ends.
func (t *Trial) relation(h *jobUsage) (why string, until time.Time) {
	if h.job.Group == nil && h.job.Key.Source != model.FromPod {
		return whyNoGroup, until
	}
	if t.ruleSet.ofGangs() || t.ruleSet.completes() {
		if h.job.Key == t.own.job.Key {
			return whySelf, until
		}
		if may, said := h.job.Preemptable(); said && !may {
			return whyJobStays, until
		}
	}
	same := h.job.Queue == t.own.job.Queue
	if t.ruleSet.moves != nil {
		return t.whyNotMoved(h, same), until
	}
	switch inside := t.ruleSet.inside(); {
	case same && (inside || t.ruleSet.completes()):
		return "", until
	case inside:
		return whyOtherQueue, until
	case same:
		return whySameQueue, until
	}
	return t.shelteredBy(h.queue)
}

// shelteredBy says why nobody of a queue is a victim for other queues, and until when if that ends.
func (t *Trial) shelteredBy(q *account.Queue) (why string, until time.Time) {
	switch {
	case q.Spec == nil:
		return whyQueueUnknown, until
	case q.Fault != (model.Reason{}):
		return whyQueueFault, until
	case !q.Spec.Reclaimable:
		return "queue " + q.Name + " is not reclaimable", until
	}
	if t.world.BarredQueues != nil {
		if until = t.world.BarredQueues(q.Name); until.After(t.world.Now) {
			return "queue " + q.Name + " and this one have just taken from each other", until
		}
	}
	return "", time.Time{}
}

// count counts n tasks like this one as back.
func (h *jobUsage) count(task *model.Task, n int) {
	h.left.Count(task, n)
	h.taken -= n
	h.held.AddTimes(task.Charge, int64(n))
}

// Candidate says why a task can never be a victim in this trial, whatever was taken before, in a short phrase; empty when
// it may be one.
func (t *Trial) Candidate(v model.Victim) string {
	h := t.usageOf(v.Job)
	if h.stays != "" {
		t.refusedUntil(h.until)
		return h.stays
	}
	switch v.Task.Status {
	case model.Running:
	case model.Bound:
		if !t.ruleSet.inside() && !t.ruleSet.completes() {
			return whyNotRunning
		}
	case model.Releasing:
		return "it terminates already"
	default:
		return "it is not on a node"
	}
	switch {
	case t.bestEffort && !v.Task.BestEffort:
		return "it asks for resources, and this job does not"
	case !v.Task.Preemptable():
		return "it is not to be evicted (" + model.PreemptableKey + ")"
	}
	if m := t.ruleSet.moves; m != nil {
		if why := m.stays(t, v, h); why != "" {
			return why
		}
	}
	if t.world.Refused != nil {
		if until := t.world.Refused(v.Task.UID); until.After(t.world.Now) {
			t.refusedUntil(until)
			return "the API server has just refused its eviction"
		}
	}
	return ""
}

// Rule names the plugins that choose the victims, such as "priority" or "priority, drf".
func (t *Trial) Rule() string { return strings.Join(t.ruleSet.chosenBy, ", ") }

// WholeJobs reports whether a job at its minimum may be evicted as a whole.
func (t *Trial) WholeJobs() bool { return t.ruleSet.ofGangs() && t.ruleSet.whole }

// Lapsed reports whether a gang has been broken for so long that it goes as a whole, before others: too few of its members are left
// to be of use.
func (t *Trial) Lapsed(job *model.Job) bool { return t.usageOf(job).lapsed(t.world.Now) }

func (h *jobUsage) lapsed(now time.Time) bool { return model.Reached(h.lapses, now) }

// refusedUntil remembers when somebody who was refused might not be.
func (t *Trial) refusedUntil(until time.Time) {
	if !until.IsZero() && (t.again.IsZero() || until.Before(t.again)) {
		t.again = until
	}
}

// Again is the earliest time at which somebody who was refused in this trial for a time (by a cooldown of pods or queues,
// or because the API server refused an eviction) might not be; zero for never.
func (t *Trial) Again() time.Time { return t.again }
