// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/queue/account"
	"github.com/caldera-scheduler/caldera/pkg/resource"
	"github.com/caldera-scheduler/caldera/pkg/volcano/arguments"
)

// A rule says why a task is no victim of a trial, in a short phrase; empty when it has nothing against it. What was taken
// before counts as gone.
//
// Rules have two roles, which Volcano does not tell apart (its first tier with a non-empty list of victims decides alone,
// pkg/scheduler/framework/session_plugins.go, Preemptable and Reclaimable). Selectors choose: the first tier that has one
// for an action decides, all of its selectors have to agree, and without any selector nobody is evicted. Guards protect:
// every one that is not switched off is asked, whatever its tier.
type rule func(t *Trial, v model.Victim, h *jobUsage) (why string)

// The roles of policies in evictions: inside one queue (preempt, gangpreempt), or across queues (reclaim, gangreclaim).
type (
	insideSelector interface {
		selectInside(t *Trial, v model.Victim, h *jobUsage) string
	}
	acrossSelector interface {
		selectAcross(t *Trial, v model.Victim, h *jobUsage) string
	}
	guard interface {
		guard(t *Trial, v model.Victim, h *jobUsage) string
	}
	insideGuard interface {
		guardInside(t *Trial, v model.Victim, h *jobUsage) string
	}
)

// claimant tells whether a queue may take from others.
type claimant interface {
	// entitled says why the queue may not take so much on top of what it holds, besides what does not count by what it is due of a job's
	// own; the zero Reason when it may.
	entitled(q *account.Queue, own, need resource.Vector) model.Reason
}

// flower tells whether a queue may take what its siblings leave of what the queue above them is due.
type flower interface {
	flows(q *account.Queue, own, need resource.Vector) bool
}

// starver tells whether a job lacks what others may be evicted for.
type starver interface {
	starving(job *model.Job) bool
}

// ruleSet is how one action judges victims.
type ruleSet struct {
	action    config.Action
	selectors []rule
	// chosenBy are the plugins whose selectors these are.
	chosenBy []string
	// decided: the selectors are those of a tier before the one that is being read.
	decided bool
	guards  []rule
	// gangs: jobs keep their minimums. whole: they may also be evicted as a whole.
	gangs, whole bool
	// asks: somebody outside is among those who select. abstained is the rule set without them; nil in that one itself.
	asks      bool
	abstained *ruleSet
	// byPriority: only jobs of lower priority are selected. freely: nobody of this package selects, so that what queues are due may not matter.
	byPriority, freely bool
	// moves is how an action chooses that moves pods; nil for one that takes their room.
	moves *moving
}

// completion is the rule set of the action complete. Whoever switches a guard off for one kind of action only has it asked here.
func completion() ruleSet {
	return ruleSet{action: config.Complete, selectors: []rule{selectYielding}, chosenBy: []string{"the order of broken gangs"}}
}

// consolidation is the rule set of the action consolidate. Its guards are those that protect whatever the action.
func consolidation(args *config.BatchQueueArgs) (c *ruleSet, errs field.ErrorList) {
	m := &moving{}
	decoded, _ := arguments.DecodeAction(&config.ActionConfiguration{Name: config.Consolidate}, nil)
	for i := range args.Configurations {
		if of := &args.Configurations[i]; of.Name == config.Consolidate {
			decoded, errs = arguments.DecodeAction(of, field.NewPath("configurations").Index(i))
		}
	}
	m.Moves = decoded.Moves
	c = &ruleSet{
		action: config.Consolidate, selectors: []rule{m.selectMovable}, chosenBy: []string{string(config.Consolidate)}, guards: []rule{minRuntime}, moves: m,
	}
	c.abstained = c
	return c, errs
}

// completes reports whether broken gangs give way to another one: the order of jobs alone decides, whatever their queues.
func (c *ruleSet) completes() bool { return c.action == config.Complete }

// inside reports whether the action stays in the beneficiary's queue.
func (c *ruleSet) inside() bool { return c.action == config.Preempt || c.action == config.GangPreempt }

// ofGangs reports whether the action looks at whole jobs.
func (c *ruleSet) ofGangs() bool {
	return c.action == config.GangPreempt || c.action == config.GangReclaim
}

// offers reports whether anybody can be a victim as far as the tiers go.
func (c *ruleSet) offers() bool { return len(c.selectors) > 0 }

// evictions are the rules of all actions that evict for a job, compiled from the tiers. They never change.
type evictions struct {
	// actions are the configured ones, in order.
	actions []config.Action
	// ruleSets are those of all actions there are.
	ruleSets  []*ruleSet
	claimants []claimant
	flowers   []flower
	// protection has the guards that are asked when nobody is to have the room.
	protection ruleSet
	// completion is how broken gangs give way.
	completion ruleSet
	// starvers are those of the first tier that has any; starved: that tier has been read.
	starvers []starver
	starved  bool
}

// configure reads what actions there are, and their arguments.
func (e *evictions) configure(args *config.BatchQueueArgs) (errs field.ErrorList) {
	e.completion, e.protection.guards = completion(), []rule{minRuntime}
	for _, action := range []config.Action{config.Preempt, config.Reclaim, config.GangPreempt, config.GangReclaim} {
		c := &ruleSet{action: action, guards: []rule{minRuntime}}
		if c.ofGangs() {
			// Whatever the tiers say: Volcano's bundles honour minimums even where the plugin is switched off.
			c.gangs, c.whole = true, true
			for i := range args.Configurations {
				if of := &args.Configurations[i]; of.Name == action {
					decoded, wrong := arguments.DecodeAction(of, field.NewPath("configurations").Index(i))
					c.whole = decoded.AllowWholeBundle
					errs = append(errs, wrong...)
				}
			}
		}
		without := *c
		c.abstained = &without
		e.ruleSets = append(e.ruleSets, c)
	}
	moves, wrong := consolidation(args)
	e.ruleSets, errs = append(e.ruleSets, moves), append(errs, wrong...)
	for _, action := range args.Actions {
		if e.ruleSet(action) != nil {
			e.actions = append(e.actions, action)
		}
	}
	return errs
}

// ruleSet returns how an action judges; nil for one that evicts nobody.
func (e *evictions) ruleSet(action config.Action) *ruleSet {
	if action == config.Complete {
		return &e.completion
	}
	if i := slices.IndexFunc(e.ruleSets, func(c *ruleSet) bool { return c.action == action }); i >= 0 {
		return e.ruleSets[i]
	}
	return nil
}

// open begins a tier.
func (e *evictions) open() {
	for _, c := range e.ruleSets {
		c.decided, c.abstained.decided = c.offers(), c.abstained.offers()
	}
	e.starved = len(e.starvers) > 0
}

// register enters a policy of the current tier for the roles that it has and that are not switched off.
func (e *evictions) register(p *config.TierPlugin, policy any) {
	for _, c := range e.ruleSets {
		on := p.Enabled(config.EnableReclaimable)
		if c.inside() {
			on = p.Enabled(config.EnablePreemptable)
		}
		if c.moves != nil {
			if on || p.Enabled(config.EnablePreemptable) {
				c.protect(policy)
				c.gangs = false // It asks itself: who is alone in a job is moved though the job has nobody to spare.
			}
			continue
		}
		if on {
			c.register(p.Name, policy)
			c.abstained.register(p.Name, policy)
		}
	}
	if p.Enabled(config.EnableVictim) {
		e.protection.protect(policy)
	}
	if p.Enabled(config.EnablePreemptable) || p.Enabled(config.EnableReclaimable) {
		e.completion.protect(policy)
	}
	enter(&e.claimants, policy, p.Enabled(config.EnablePreemptive))
	enter(&e.flowers, policy, p.Enabled(config.EnablePreemptive))
	if !e.starved {
		enter(&e.starvers, policy, p.Enabled(config.EnableJobStarving))
		if s, ok := policy.(Starver); ok && p.Enabled(config.EnableJobStarving) {
			e.starvers = append(e.starvers, outsideStarver{s})
		}
	}
}

// protect enters a policy as a guard whatever the action. The minimum of a broken gang is no reason for it not to give way.
func (c *ruleSet) protect(policy any) {
	if g, ok := policy.(guard); ok {
		c.guards = append(c.guards, g.guard)
	}
	if g, ok := policy.(Protector); ok {
		c.guards = append(c.guards, func(t *Trial, v model.Victim, h *jobUsage) string { return g.Protects(Eviction{t, h}, v) })
	}
	if _, ok := policy.(gang); ok {
		c.gangs = !c.completes()
	}
}

func (c *ruleSet) register(name string, policy any) {
	c.protect(policy)
	var selects rule
	if c.inside() {
		if g, ok := policy.(insideGuard); ok {
			c.guards = append(c.guards, g.guardInside)
		}
		if s, ok := policy.(insideSelector); ok {
			selects = s.selectInside
		}
	} else if s, ok := policy.(acrossSelector); ok {
		selects = s.selectAcross
	}
	if o, ok := policy.(Chooser); ok && c.abstained != nil && o.Chooses(c.inside()) {
		selects = selectOutside
	}
	own := selects != nil
	if !own {
		selects = outsideRoles{policy}.selects(c.inside())
	}
	if selects != nil && !c.decided {
		c.freely = !own && (c.freely || !c.offers())
		c.selectors, c.chosenBy = append(c.selectors, selects), append(c.chosenBy, name)
		switch policy.(type) {
		case priority:
			c.byPriority = true
		case Chooser:
			c.asks = true
		}
	}
}

// Starving reports whether others may be evicted for the job as far as its own state goes: the first tier with a policy
// that knows decides, and all that know in it have to agree. Nobody asked: no.
func (e *evictions) Starving(job *model.Job) bool {
	for _, p := range e.starvers {
		if !p.starving(job) {
			return false
		}
	}
	return len(e.starvers) > 0
}

// entitled says why a queue may not take so much from others for a job, on top of what it holds; the zero Reason when it may.
func (e *evictions) entitled(q *account.Queue, job *model.Job, need resource.Vector) model.Reason {
	switch {
	case q == nil || q.Spec == nil:
		return model.QueueRefuses(nil, job)
	case q.Fault != (model.Reason{}):
		return q.Fault
	case !q.Spec.Open():
		return model.Reason{
			Kind: model.QueueClosed, Subject: q.Name, Message: "queue \"" + q.Name + "\" is " + string(q.Spec.State) + " and takes nothing from others",
		}
	}
	own := job.OwnHalf()
	for _, p := range e.claimants {
		if why := p.entitled(q, own, need); why != (model.Reason{}) {
			return why
		}
	}
	return model.Reason{}
}

// mayTake says why a queue may take so much from others for a job neither by what it is due nor by a flow; the zero Reason when it may.
func (e *evictions) mayTake(q *account.Queue, job *model.Job, need resource.Vector) model.Reason {
	why := e.entitled(q, job, need)
	if why != (model.Reason{}) && e.flows(q, job, need) {
		return model.Reason{}
	}
	return why
}

// flows reports whether a queue may take so much from others for a job by a flow.
func (e *evictions) flows(q *account.Queue, job *model.Job, need resource.Vector) bool {
	if q == nil || q.Spec == nil || q.Fault != (model.Reason{}) || !q.Spec.Open() {
		return false
	}
	own := job.OwnHalf()
	return len(e.flowers) > 0 && !slices.ContainsFunc(e.flowers, func(p flower) bool { return !p.flows(q, own, need) })
}
