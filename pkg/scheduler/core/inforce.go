// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package core

import (
	"cmp"
	"context"
	"slices"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/gang"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/policy"
)

// InForce is what the rules in force say, which others may replace at any time.
type InForce struct {
	state *model.State
	rules atomic.Pointer[Rules]
}

// noRules are in force before Configure.
var noRules = &Rules{}

func newInForce(state *model.State) *InForce {
	f := &InForce{state: state}
	f.rules.Store(noRules)
	return f
}

func (f *InForce) current() *Rules { return f.rules.Load() }

// Arrange says how the policies would have the tasks of a job tried.
func (f *InForce) Arrange(job *model.Job) gang.Arrangement {
	order, part := f.current().policies.Arrange(job)
	return gang.Arrangement{Order: order, Part: part}
}

// DomainsOf says inside of which domains a turn of a job may be planned, and why in none; nil: anywhere.
func (f *InForce) DomainsOf(job *model.Job, nodes []fwk.NodeInfo) (domains []gang.Domain, refusal string) {
	if d := f.current().domains; d != nil {
		return d.DomainsOf(job, nodes)
	}
	return nil, ""
}

// EvictingDomains is in how many of the domains of a job evictions are tried.
func (f *InForce) EvictingDomains() int { return f.current().domains.EvictingDomains() }

// ReservationCanFail reports whether some plugin may refuse a reservation for the pod, so that the members of its gang must
// wait for each other before they bind.
func (f *InForce) ReservationCanFail(pod *corev1.Pod) bool {
	return slices.ContainsFunc(f.current().refusers, func(r Refuser) bool { return r.MayRefuse(pod) })
}

// Evicts reports whether some action evicts.
func (f *InForce) Evicts() bool { return len(f.current().evicting) > 0 }

// PlacesOutside reports whether the extender of the tiers is asked about nodes, which is the plugin Extender's to do.
func (f *InForce) PlacesOutside() bool {
	return f.current().placesOutside
}

// Asking reports whether an extender is being asked for its vote.
func (f *InForce) Asking() bool {
	v := f.current().voter
	return v != nil && v.Asking()
}

// Behind says what a plugin that reads objects by itself has not taken in yet; empty when there is nothing.
func (f *InForce) Behind() string {
	for _, r := range f.current().readers {
		if behind := r.Behind(); behind != "" {
			return behind
		}
	}
	return ""
}

// ExternalHold says why nothing may start, and when to try again; the zero Reason when something may.
func (f *InForce) ExternalHold() (reason model.Reason, again time.Time) {
	v := f.current().voter
	if v == nil {
		return reason, again
	}
	return v.ExternalHold()
}

// Ready says why a job is not ready with these placements, and when to try again; the zero Reason when it is.
func (f *InForce) Ready(ctx context.Context, job *model.Job, placements []gang.Placement) (reason model.Reason, again time.Time) {
	rules := f.current()
	voter := rules.voter
	if voter != nil && !voter.AloneInTurns() {
		voter = nil
	}
	if voter == nil && !rules.policies.JudgesReady() {
		return reason, again
	}
	tasks, nodes := make([]*model.Task, len(placements)), map[types.UID]string{}
	for i, p := range placements {
		tasks[i], nodes[p.Task.UID] = p.Task, p.Node
	}
	then := job.Supposing(model.Allocated, tasks...)
	for i, t := range then.Tasks {
		if node, ok := nodes[t.UID]; ok {
			placed := *t
			placed.Node = node
			then.Tasks[i] = &placed
		}
	}
	if reason = rules.policies.NotReady(then); reason != (model.Reason{}) || voter == nil {
		return reason, again
	}
	return voter.Ready(ctx, then)
}

// Choose has an extender choose among the candidates of a trial for the job whose turn the pod leads, if the tiers say so.
func (f *InForce) Choose(ctx context.Context, action config.Action, lead *corev1.Pod, trial *policy.Trial) {
	evictor := f.state.Task(lead.UID)
	v := f.current().voter
	if v == nil || evictor == nil || !trial.AsksOutside() {
		return
	}
	var candidates []*model.Task
	for job := range f.state.Snapshot().Jobs {
		for _, t := range job.Tasks {
			if t.Status.HoldsNode() && trial.Candidate(model.Victim{Task: t, Job: job}) == "" {
				candidates = append(candidates, t)
			}
		}
	}
	slices.SortFunc(candidates, func(a, b *model.Task) int { return cmp.Compare(a.UID, b.UID) })
	inside := action == config.Preempt || action == config.GangPreempt
	trial.Answer(v.Choose(ctx, inside, evictor, candidates))
}
