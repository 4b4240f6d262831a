// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package votes

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/plugins/extender/protocol"
	"github.com/caldera-scheduler/caldera/pkg/policy"
	"github.com/caldera-scheduler/caldera/pkg/queue/account"
)

// jobVersion changes with what the extender is told of a job that asks to be let in.
type jobVersion struct {
	uid    types.UID
	group  *model.Group
	counts model.Counts
}

// Admit asks whether a job is let into its queue. It does not wait for the answer.
func (v *Voter) Admit(_ policy.World, j *policy.Ranked) (policy.Vote, model.Reason) {
	verb, job := v.cfg.Args.JobEnqueueableVerb, j.Job
	if verb == "" {
		return policy.Abstain, model.Reason{}
	}
	return v.vote(job.Key, jobVersion{job.UID, job.Group, job.Counts}, func(ctx context.Context) (policy.Vote, model.Reason) {
		var ballot protocol.Ballot
		if err := v.client.Call(ctx, verb, protocol.OfJob{Job: protocol.JobOf(v.whole(job))}, &ballot); err != nil {
			return v.failed(ctx, err)
		}
		switch {
		case ballot.Vote > 0:
			return policy.Permit, model.Reason{}
		case ballot.Vote == 0:
			return policy.Abstain, model.Reason{}
		}
		reason := withheld("the extender at %s does not let the job into queue %q", v.client.URL(verb), job.Queue)
		reason.Kind = model.NotAdmitted
		return policy.Reject, reason
	})
}

// Withholds asks whether a queue is overused. It does not wait for the answer.
func (v *Voter) Withholds(q *account.Queue) model.Reason {
	verb, spec := v.cfg.Args.QueueOverusedVerb, q.Spec
	if verb == "" || spec == nil {
		return model.Reason{}
	}
	_, reason := v.vote(spec.Name, spec, func(ctx context.Context) (policy.Vote, model.Reason) {
		var overuse protocol.Overuse
		if err := v.client.Call(ctx, verb, protocol.OfQueue{Queue: protocol.QueueOf(spec)}, &overuse); err != nil {
			return v.failed(ctx, err)
		}
		if overuse.Overused {
			return policy.Reject, withheld("the extender at %s says that queue %q is overused", v.client.URL(verb), spec.Name)
		}
		return policy.Permit, model.Reason{}
	})
	return reason
}

// Entered tells that a job was let into its queue. Nobody waits for that.
func (v *Voter) Entered(job *model.Job) {
	verb := v.cfg.Args.JobEnqueuedVerb
	if verb == "" {
		return
	}
	v.count(1)
	go func() {
		defer v.count(-1)
		if !v.enter() {
			return
		}
		defer v.leave()
		if err := v.client.Call(v.background, verb, protocol.OfJob{Job: protocol.JobOf(v.whole(job))}, &struct{}{}); err != nil {
			klog.FromContext(v.background).Error(err, "Extender was not told that a job was let into its queue", "job", job.Key)
		}
	}()
}

// AloneInAdmission reports whether the extender votes on jobs that ask to be let in.
func (v *Voter) AloneInAdmission() bool { return v.cfg.Args.JobEnqueueableVerb != "" }

// AloneInTurns reports whether the extender votes on jobs that are about to start.
func (v *Voter) AloneInTurns() bool { return v.cfg.Args.JobReadyVerb != "" }

// Chooses reports whether the extender chooses victims for actions inside a queue, or across queues.
func (v *Voter) Chooses(inside bool) bool {
	if inside {
		return v.cfg.Args.PreemptableVerb != ""
	}
	return v.cfg.Args.ReclaimableVerb != ""
}

// Choose asks which of the candidates are victims of an action inside a queue, or across queues, for a task. It waits for
// the answer. An extender that may fail abstains then; in Volcano it would keep everybody.
func (v *Voter) Choose(ctx context.Context, inside bool, evictor *model.Task, candidates []*model.Task) (policy.Vote, map[types.UID]bool) {
	verb := v.cfg.Args.ReclaimableVerb
	if inside {
		verb = v.cfg.Args.PreemptableVerb
	}
	if !protocol.Concerns(v.cfg.Args.Args.ManagedResources, evictor.Pod) {
		return policy.Abstain, nil
	}
	question := protocol.Choose{Evictor: protocol.TaskOf(evictor), Evictees: make([]*protocol.Task, len(candidates))}
	for i, t := range candidates {
		question.Evictees[i] = protocol.TaskOf(t)
	}
	var ballot protocol.Ballot
	if err := v.client.Call(ctx, verb, question, &ballot); err != nil {
		vote, reason := v.failed(ctx, err)
		klog.FromContext(ctx).V(3).Info("Extender chose no victims", "reason", reason.Message)
		return vote, nil
	}
	if ballot.Vote == 0 {
		return policy.Abstain, nil
	}
	chosen := make(map[types.UID]bool, len(ballot.Victims))
	for _, victim := range ballot.Victims {
		chosen[types.UID(victim.UID)] = true
	}
	return policy.Permit, chosen
}

// Ready asks whether a job is ready with what its turn places, and says why not and when to try again. It waits for the
// answer. A failure is not taken for a yes, as it is in Volcano where the extender may not fail.
func (v *Voter) Ready(ctx context.Context, job *model.Job) (reason model.Reason, again time.Time) {
	verb := v.cfg.Args.JobReadyVerb
	if verb == "" {
		return model.Reason{}, time.Time{}
	}
	again = v.cfg.Clock.Now().Add(hold)
	var readiness protocol.Readiness
	if err := v.client.Call(ctx, verb, protocol.OfJob{Job: protocol.JobOf(job)}, &readiness); err != nil {
		if _, reason = v.failed(ctx, err); reason == (model.Reason{}) {
			return reason, time.Time{}
		}
		return reason, again
	}
	if !readiness.Ready {
		return withheld("the extender at %s says that the job is not ready", v.client.URL(verb)), again
	}
	return model.Reason{}, time.Time{}
}

// ExternalHold says why nothing may start because no session could be opened, and when to try again; the zero Reason when one was.
func (v *Voter) ExternalHold() (reason model.Reason, again time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.shut == (model.Reason{}) {
		return model.Reason{}, time.Time{}
	}
	return v.shut, v.cfg.Clock.Now().Add(hold)
}

// whole is a job with its tasks: those that the dispatcher has are without.
func (v *Voter) whole(job *model.Job) *model.Job {
	if whole := v.cfg.Job(job.Key); whole != nil {
		return whole
	}
	return job
}

// sessions opens a session and closes it, over and over.
func (v *Voter) sessions(ctx context.Context) {
	ticker := v.cfg.Clock.NewTicker(hold)
	defer ticker.Stop()
	for first := true; ; first = false {
		opened := v.open(ctx, first)
		select {
		case <-ctx.Done():
			v.close(context.WithoutCancel(ctx), opened)
			return
		case <-ticker.C():
		}
		v.close(ctx, opened)
	}
}

// open tells that a session opens. Until it succeeds nothing starts, unless the extender may fail; in Volcano the session
// would go on without it.
func (v *Voter) open(ctx context.Context, first bool) (opened bool) {
	verb := v.cfg.Args.OnSessionOpenVerb
	if verb == "" {
		return true
	}
	session, err := v.cfg.Session()
	if err == nil {
		err = v.client.Call(ctx, verb, session, nil)
	}
	var shut model.Reason
	if err != nil {
		_, shut = v.failed(ctx, err)
	}
	v.mu.Lock()
	changed := v.shut != shut
	v.shut = shut
	v.mu.Unlock()
	if changed {
		v.cfg.Changed()
	}
	if first && !v.cfg.Args.Args.Ignorable {
		v.mu.Lock()
		v.inquiries--
		v.mu.Unlock()
	}
	return err == nil
}

// close tells that a session that was opened is over.
func (v *Voter) close(ctx context.Context, opened bool) {
	verb := v.cfg.Args.OnSessionCloseVerb
	if verb == "" || !opened {
		return
	}
	if err := v.client.Call(ctx, verb, protocol.End{}, nil); err != nil && ctx.Err() == nil {
		klog.FromContext(ctx).Error(err, "Extender was not told that the session is over")
	}
}
