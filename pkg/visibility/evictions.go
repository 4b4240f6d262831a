// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility

import (
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/caldera-scheduler/caldera/pkg/apis/visibility/v1alpha1"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/preemption/eviction"
)

// Evictions returns the decisions that concern a namespace, the newest first; all of them if it is empty. Who asks for one namespace is told the names of
// its own pods only.
func (v *Views) Evictions(namespace string) []v1alpha1.EvictionDecision {
	all := v.evictions.get(v.source.Clock, v.makeEvictions)
	if namespace == "" {
		return all
	}
	var views []v1alpha1.EvictionDecision
	for i := range all {
		if view, concerns := within(all[i], namespace); concerns {
			views = append(views, view)
		}
	}
	return views
}

func (v *Views) makeEvictions(time.Time) []v1alpha1.EvictionDecision {
	decisions := v.source.Ledger.Decisions()
	views := make([]v1alpha1.EvictionDecision, len(decisions))
	for i := range decisions {
		views[i] = decisionView(&decisions[i])
	}
	return views
}

// within is what of a decision concerns a namespace, and whether anything does. The decision itself is left as it is.
func within(view v1alpha1.EvictionDecision, namespace string) (v1alpha1.EvictionDecision, bool) {
	s := &view.Status
	var own []v1alpha1.EvictionVictim
	for i := range s.Victims {
		if s.Victims[i].Namespace == namespace {
			own = append(own, s.Victims[i])
		}
	}
	s.Victims, s.OtherVictims = own, int32(len(s.Victims)-len(own))
	isFor := s.Job != nil && s.Job.Namespace == namespace
	if !isFor {
		s.Members = nil
		if s.OtherVictims > 0 {
			// It may name pods.
			s.Problem = ""
		}
	}
	view.Namespace = namespace
	return view, isFor || len(own) > 0
}

func decisionView(d *eviction.Decision) v1alpha1.EvictionDecision {
	view := v1alpha1.EvictionDecision{
		ObjectMeta: metav1.ObjectMeta{Name: strconv.FormatUint(d.ID, 10), CreationTimestamp: metav1.NewTime(d.Time)},
		Status: v1alpha1.EvictionDecisionStatus{
			Action: d.Action, Pods: int32(len(d.Members)), Victims: make([]v1alpha1.EvictionVictim, 0, len(d.Victims)),
			Outcome: string(d.Outcome), Ended: optional(d.Ended), Problem: d.Problem,
		},
	}
	if d.Beneficiary != (model.JobKey{}) {
		view.Namespace, view.Status.Job = d.Beneficiary.Namespace, new(jobReference(d.Beneficiary, d.Queue))
	}
	for _, m := range d.Members {
		view.Status.Members = append(view.Status.Members, v1alpha1.EvictionMember{
			Namespace: m.Namespace, Name: m.Name, UID: m.UID, Node: m.Node, Request: m.Request.List(),
		})
	}
	for _, p := range d.Victims {
		view.Status.Victims = append(view.Status.Victims, victimView(p))
	}
	for _, k := range d.Kept {
		view.Status.Kept = append(view.Status.Kept, v1alpha1.KeptPods{Reason: k.Reason, Pods: int32(k.Pods)})
	}
	if view.Namespace == "" && len(d.Victims) > 0 {
		view.Namespace = view.Status.Victims[0].Namespace
	}
	return view
}

func victimView(p *eviction.Victim) v1alpha1.EvictionVictim {
	view := v1alpha1.EvictionVictim{
		UID: p.UID, Node: p.Node, Request: p.Request.List(), Job: jobReference(p.Job, p.Queue), Rule: p.Why, MovesTo: p.MovesTo, Budgeted: p.Budgeted,
		State: string(p.State), Evicted: p.Evicted, Deadline: optional(p.Deadline), Problem: p.Problem,
	}
	if p.Pod != nil {
		view.Namespace, view.Name = p.Pod.Namespace, p.Pod.Name
	}
	return view
}

// optional is nil for the zero time.
func optional(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return new(metav1.NewTime(t))
}
