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

// whyOutside is why a chooser does not choose a task.
const whyOutside = "the extender does not choose it"

// outsiders are the policies from outside.
type outsiders struct {
	// any: there are some.
	any         bool
	withholders []Withholder
	observers   []AdmissionObserver
	repollers   []Repoller
	// alone: jobs are told apart in admission, and for turns.
	aloneInAdmission, aloneInTurns bool
}

func (o *outsiders) register(p *config.TierPlugin, policy any) {
	enter(&o.withholders, policy, p.Enabled(config.EnableOverused))
	enter(&o.observers, policy, p.Enabled(config.EnableJobEnqueued))
	enter(&o.repollers, policy, true)
	if h, ok := policy.(Ungroupable); ok {
		o.aloneInAdmission = o.aloneInAdmission || h.AloneInAdmission()
		o.aloneInTurns = o.aloneInTurns || h.AloneInTurns()
	}
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
