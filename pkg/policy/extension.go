// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/queue/account"
)

// Extension is a policy from outside of this package, for a plugin of the tiers that has none here. It stands where the tiers
// have the plugin, and answers through the hooks of this file and as an Admitter. It may have to ask somebody else, but must
// not wait for that: until it knows, it rejects with a reason of the kind Unanswered, and says by the event OutsideAnswered
// that it is to be asked again.
type Extension struct {
	// Plugin is the name in the tiers.
	Plugin string
	Policy any
}

// Withholder keeps queues from turns.
type Withholder interface {
	// Withholds says why jobs of a queue get no turns; the zero Reason when they do.
	Withholds(q *account.Queue) model.Reason
}

// AdmissionObserver is told of jobs that were let into their queues by vote (Volcano's JobEnqueued).
type AdmissionObserver interface {
	Entered(job *model.Job)
}

// Ungroupable tells jobs apart that are alike to all other policies.
type Ungroupable interface {
	// AloneInAdmission: a job that is rejected says nothing about others like it. AloneInTurns: a job that is refused a
	// turn does not.
	AloneInAdmission() bool
	AloneInTurns() bool
}

// Repoller is to be asked again though nothing happens.
type Repoller interface {
	// Again is when; zero: never.
	Again() time.Time
	// Asked says that it is about to be asked again, so that the time is over.
	Asked()
}

// Chooser chooses the victims of a trial among all its candidates at once. The trial says that it has to be asked, and is
// given the answer.
type Chooser interface {
	// Chooses reports whether it does so for actions inside a queue, or across queues.
	Chooses(inside bool) bool
}

// Validator keeps single jobs from turns, and from being let into their queues (Volcano's JobValid).
type Validator interface {
	// Invalid says why, and what to change; empty for a job that may have turns. It is asked again when the job or its queue changes.
	Invalid(job *model.Job) (why string)
}

// Readier has a say in whether a gang starts with what was found for it (Volcano's JobReady). With one, each turn is for one job.
type Readier interface {
	// NotReady says why a job does not start, and what it waits for; empty when it may. The job is as it would be with the planned tasks
	// on their nodes. It is called without the dispatcher's lock, while other hooks may be.
	NotReady(job *model.Job) (why string)
}

// Starver tells for which jobs others may be evicted, as far as their own state goes (Volcano's JobStarving). The first tier with a policy
// that knows decides, and all that know in it have to agree.
type Starver interface {
	Starving(job *model.Job) bool
}

// PreemptSelector chooses who may be evicted for a job of the same queue (Volcano's Preemptable). The first tier that has a policy which
// chooses decides, and all of them have to agree.
type PreemptSelector interface {
	// Preemptable says why a task is not chosen, in a short phrase; empty when it is.
	Preemptable(e Eviction, v model.Victim) (why string)
}

// ReclaimSelector chooses who may be evicted for a job of another queue (Volcano's Reclaimable), as PreemptSelector does.
type ReclaimSelector interface {
	// Reclaimable says why a task is not chosen, in a short phrase; empty when it is.
	Reclaimable(e Eviction, v model.Victim) (why string)
}

// Protector protects tasks from any action, whatever its tier, unless the switch for that kind of action is off.
type Protector interface {
	// Protects says why a task stays, in a short phrase; empty when it may go.
	Protects(e Eviction, v model.Victim) (why string)
}

// Eviction is a search for victims as a policy from outside sees it. What the search has taken so far counts as gone. It must not be kept.
// The hooks that are given one are called without the dispatcher's lock, while others may be.
type Eviction struct {
	trial *Trial
	// of is the usage of the victim's job.
	of *jobUsage
}

// Action is the action that searches.
func (e Eviction) Action() config.Action { return e.trial.ruleSet.action }

// For is the job that is to have the room; nil for the action shuffle, which evicts for nobody.
func (e Eviction) For() *model.Job {
	if e.trial.own == nil {
		return nil
	}
	return e.trial.own.job
}

// Queue is the queue of that job; nil where there is none.
func (e Eviction) Queue() *account.Queue {
	if e.trial.own == nil {
		return nil
	}
	return e.trial.own.queue
}

// QueueOfVictim is the queue of the victim's job.
func (e Eviction) QueueOfVictim() *account.Queue { return e.of.queue }

// Taken is how many tasks of the victim's job are taken already.
func (e Eviction) Taken() int { return e.of.taken }

// Now is the time of the search.
func (e Eviction) Now() time.Time { return e.trial.world.Now }

// AskAgain has the job tried again at a time, or before: then the answer may be another one though nothing happens.
func (e Eviction) AskAgain(at time.Time) { e.trial.refusedUntil(at) }

// outsideStarver is a policy from outside that knows which jobs starve.
type outsideStarver struct{ Starver }

func (s outsideStarver) starving(job *model.Job) bool { return s.Starving(job) }

// outsideRoles are what a policy from outside has to say about victims.
type outsideRoles struct{ policy any }

func (o outsideRoles) selects(inside bool) rule {
	if s, ok := o.policy.(PreemptSelector); ok && inside {
		return func(t *Trial, v model.Victim, h *jobUsage) string { return s.Preemptable(Eviction{t, h}, v) }
	}
	if s, ok := o.policy.(ReclaimSelector); ok && !inside {
		return func(t *Trial, v model.Victim, h *jobUsage) string { return s.Reclaimable(Eviction{t, h}, v) }
	}
	return nil
}

// whyOutside is why a chooser does not choose a task.
const whyOutside = "the extender does not choose it"

// outsiders are the policies from outside.
type outsiders struct {
	// any: there are some.
	any         bool
	withholders []Withholder
	observers   []AdmissionObserver
	repollers   []Repoller
	validators  []Validator
	readiers    []Readier
	// alone: jobs are told apart in admission, and for turns.
	aloneInAdmission, aloneInTurns bool
}

func (o *outsiders) register(p *config.TierPlugin, policy any) {
	enter(&o.withholders, policy, p.Enabled(config.EnableOverused))
	enter(&o.observers, policy, p.Enabled(config.EnableJobEnqueued))
	enter(&o.repollers, policy, true)
	enter(&o.validators, policy, true)
	enter(&o.readiers, policy, p.Enabled(config.EnableJobReady))
	if tellsJobsApart(policy) {
		o.aloneInTurns = true
	}
	if h, ok := policy.(Ungroupable); ok {
		o.aloneInAdmission = o.aloneInAdmission || h.AloneInAdmission()
		o.aloneInTurns = o.aloneInTurns || h.AloneInTurns()
	}
}

// tellsJobsApart reports whether what a policy says of a turn may depend on anything about the job, or about those it could take from.
func tellsJobsApart(policy any) bool {
	switch policy.(type) {
	case Readier, Starver, PreemptSelector, ReclaimSelector, Protector:
		return true
	}
	return false
}

// HasOutsiders reports whether some policies are from outside. Whose turn is next may then depend on each placement: none may be foreseen.
func (o *outsiders) HasOutsiders() bool { return o.any }

// MayWithhold reports whether somebody outside keeps queues from turns.
func (o *outsiders) MayWithhold() bool { return len(o.withholders) > 0 }

// Withheld says why somebody outside keeps a queue from turns; the zero Reason when nobody does.
func (o *outsiders) Withheld(q *account.Queue) model.Reason {
	for _, h := range o.withholders {
		if why := h.Withholds(q); why != (model.Reason{}) {
			return why
		}
	}
	return model.Reason{}
}

// Invalid says why a job gets no turns and is not let in; the zero Reason when it may be.
func (o *outsiders) Invalid(job *model.Job) model.Reason {
	for _, h := range o.validators {
		if why := h.Invalid(job); why != "" {
			return model.Reason{Kind: model.Withheld, Message: why}
		}
	}
	return model.Reason{}
}

// JudgesReady reports whether NotReady may say anything.
func (o *outsiders) JudgesReady() bool { return len(o.readiers) > 0 }

// NotReady says why a job does not start with what was found for it; the zero Reason when it does. It may be called at any time.
func (o *outsiders) NotReady(job *model.Job) model.Reason {
	for _, h := range o.readiers {
		if why := h.NotReady(job); why != "" {
			return model.Reason{Kind: model.Withheld, Message: why}
		}
	}
	return model.Reason{}
}

// Entered tells those who want to know that a job was let into its queue by vote.
func (o *outsiders) Entered(job *model.Job) {
	for _, h := range o.observers {
		h.Entered(job)
	}
}

// Again is when somebody outside is to be asked again though nothing happens; zero: never.
func (o *outsiders) Again() (first time.Time) {
	for _, h := range o.repollers {
		if at := h.Again(); first.IsZero() || !at.IsZero() && at.Before(first) {
			first = at
		}
	}
	return first
}

// Asked says that all outside are about to be asked again.
func (o *outsiders) Asked() {
	for _, h := range o.repollers {
		h.Asked()
	}
}

// AloneInAdmission reports whether a rejected job says nothing about others like it.
func (o *outsiders) AloneInAdmission() bool { return o.aloneInAdmission }

// AloneInTurns reports whether a job that is refused a turn says nothing about others like it.
func (o *outsiders) AloneInTurns() bool { return o.aloneInTurns }

// AsksOutside reports whether somebody outside chooses among the victims of the trial. Until the trial is given the
// answer, there are none.
func (t *Trial) AsksOutside() bool { return t.ruleSet.asks }

// Answer gives the trial what somebody outside chose. If that abstains, the trial goes on as if it were not in the tiers.
func (t *Trial) Answer(vote Vote, chosen map[types.UID]bool) {
	if vote == Abstain {
		t.abstain()
		return
	}
	t.chosen = chosen
}

func (t *Trial) abstain() {
	if t.ruleSet.asks {
		t.ruleSet = t.ruleSet.abstained
	}
}

// selectOutside chooses what somebody outside chose.
func selectOutside(t *Trial, v model.Victim, _ *jobUsage) string {
	if t.chosen[v.Task.UID] {
		return ""
	}
	return whyOutside
}
