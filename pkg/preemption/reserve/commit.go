// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package reserve

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/gang"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/preemption/eviction"
)

// Commit carries a statement out: from now on its victims, chosen by a rule, are leaving and their room is the job's.
func (k *Keeper) Commit(ctx context.Context, action config.Action, rule string, job *model.Job, st gang.Statement) error {
	now := k.clock.Now()
	nominations := make([]model.Nomination, len(st.Placements))
	for i, p := range st.Placements {
		nominations[i] = model.Nomination{UID: p.Task.UID, Node: p.Node}
	}
	uids := make([]types.UID, len(st.Victims))
	for i, v := range st.Victims {
		uids[i] = v.Task.UID
	}
	// The model first: whoever follows the job from now on finds room kept for it. What happened to it meanwhile is
	// looked at in the end.
	k.expect(st.Moves, now)
	k.state.Pipeline(nominations, uids)
	k.Holds.releaseReserved(job.Key)
	var decision *eviction.Decision
	if len(st.Victims) > 0 {
		decision = k.Ledger.Begin(now, k.decision(action, rule, job, st))
	}
	k.wait(job.Key, st, now)
	defer k.follow(model.Change{Jobs: []model.JobKey{job.Key}, Tasks: uids})
	logger := klog.FromContext(ctx)
	pods := make([]*corev1.Pod, len(st.Placements))
	for i, p := range st.Placements {
		pods[i] = p.Task.Pod
	}
	k.queue(pods)
	if err := k.nominate(logger, st.Placements); err != nil {
		return err
	}
	if decision != nil {
		logger.V(2).Info("Evicting", "job", job.Key, "queue", job.Queue, "action", action, "pods", len(uids), "decision", decision.ID)
		k.Executor.Execute(decision)
	}
	return nil
}

// nominate keeps pods of all profiles off the room of some tasks, as far as the scheduling queue knows their pods; else once the API server says it.
func (k *Keeper) nominate(logger klog.Logger, placements []gang.Placement) error {
	for _, p := range placements {
		info, err := framework.NewPodInfo(p.Task.Pod)
		if err != nil {
			return fmt.Errorf("reading pod %s/%s: %w", p.Task.Pod.Namespace, p.Task.Pod.Name, err)
		}
		k.profile.AddNominatedPod(logger, info, &fwk.NominatingInfo{NominatingMode: fwk.ModeOverride, NominatedNodeName: p.Node})
	}
	return nil
}

// decision is a statement as the ledger remembers it.
func (k *Keeper) decision(action config.Action, rule string, job *model.Job, st gang.Statement) eviction.Decision {
	d := eviction.Decision{Action: string(action), Beneficiary: job.Key, Queue: job.Queue}
	for _, p := range st.Placements {
		d.Members = append(d.Members, eviction.Member{
			UID: p.Task.UID, Namespace: p.Task.Pod.Namespace, Name: p.Task.Pod.Name, Node: p.Node, Request: p.Task.Request,
		})
	}
	for i, v := range st.Victims {
		d.Victims = append(d.Victims, k.victim(v, rule))
		if st.Moves != nil {
			d.Victims[i].MovesTo = st.Moves[i].Node
		}
	}
	for reason, n := range st.Kept {
		d.Kept = append(d.Kept, eviction.Kept{Reason: reason, Pods: n})
	}
	slices.SortFunc(d.Kept, func(a, b eviction.Kept) int {
		return cmp.Or(cmp.Compare(b.Pods, a.Pods), cmp.Compare(a.Reason, b.Reason))
	})
	return d
}

func (k *Keeper) victim(v model.Victim, why string) *eviction.Victim {
	victim := &eviction.Victim{
		Pod: v.Task.Pod, UID: v.Task.UID, Job: v.Job.Key, Queue: v.Job.Queue, Node: v.Task.Node, Request: v.Task.Request,
		Why: why,
	}
	for _, b := range k.state.Budgets(v.Task.Pod.Namespace) {
		victim.Budgeted = victim.Budgeted || b.Selector.Matches(labels.Set(v.Task.Pod.Labels))
	}
	return victim
}

// Departure is a pod that is evicted for nobody's sake, and why.
type Departure struct {
	model.Victim
	Why string
}

// Evict has pods evicted for nobody's sake, by the action eviction.Shuffle or eviction.Release. No room is kept.
func (k *Keeper) Evict(ctx context.Context, action string, departures []Departure) {
	d := eviction.Decision{Action: action}
	uids := make([]types.UID, len(departures))
	for i, v := range departures {
		uids[i] = v.Task.UID
		d.Victims = append(d.Victims, k.victim(v.Victim, v.Why))
	}
	// The model first: what happened to a victim meanwhile is looked at in the end.
	k.state.Pipeline(nil, uids)
	decision := k.Ledger.Begin(k.clock.Now(), d)
	klog.FromContext(ctx).V(2).Info("Evicting", "action", action, "pods", len(uids), "decision", decision.ID)
	k.Executor.Execute(decision)
	k.follow(model.Change{Tasks: uids})
}
