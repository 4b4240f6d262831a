// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"fmt"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/policy"
	"github.com/caldera-scheduler/caldera/pkg/queue/account"
)

// limits says what queues let jobs have. It keeps nothing: all is asked of the policies' accounts and of the model.
type limits struct{ cfg *Config }

func (l limits) queueOf(job *model.Job) *account.Queue {
	return l.cfg.Policies.Book().Queue(job.Queue)
}

// refuses says what keeps the job's queue from holding what the job's next turn needs. Pods that ask for nothing are kept from nothing.
func (l limits) refuses(job *model.Job, borrowing bool) model.Reason {
	need := job.Need()
	if need.BestEffort() {
		return model.Reason{}
	}
	policies, q, own := l.cfg.Policies, l.queueOf(job), job.OwnHalf()
	if job.Counts.Nominated == 0 && !borrowing {
		if reason := policies.Overused(q, own); reason != (model.Reason{}) {
			return reason
		}
	}
	if job.Counts.Nominated > 0 || !job.Usage.Claimed.IsZero() {
		return l.budget(job, borrowing).Refuses(need)
	}
	return policies.Refuses(q, own, need, borrowing)
}

// budget is what the job's queue may take for it. What is kept for the job, by evictions or by the gate, counts as free.
func (l limits) budget(job *model.Job, borrowing bool) *policy.Budget {
	b := l.cfg.Policies.Budget(l.queueOf(job), job.OwnHalf(), borrowing)
	if job.Counts.Nominated > 0 && l.cfg.Policies.Book().Mode() == account.Proportion {
		// What the queue is due sinks while victims leave; the room that was made is the job's all the same.
		b.Excuse()
	}
	b.Release(job.Queue, job.Usage.Reserved)
	switch claimed := job.Usage.Claimed; {
	case claimed.IsZero():
	case job.Need().Exceeding(claimed) == nil:
		// It was let through for all it needs. Others that were may keep more than the limit has become since; who comes first has it.
		b.Waive(l.cfg.Policies.Book())
	default:
		b.Release(job.Queue, claimed)
	}
	return b
}

// unanswered keeps a job from taking what its queue holds until the API server has agreed to evict: should it refuse, the
// queue would hold more than it may. Room that is only kept is not held yet.
func (l limits) unanswered(job *model.Job, borrowing bool) model.Reason {
	evicting := l.cfg.State.Evicting()
	if len(evicting) == 0 || job.Need().BestEffort() {
		return model.Reason{}
	}
	queueOf := func(t *model.Task) string {
		if owner := l.cfg.State.Summary(t.Job); owner != nil {
			return owner.Queue
		}
		return ""
	}
	b := l.budget(job, borrowing)
	for _, t := range l.cfg.State.Nominated() {
		if t.Job != job.Key {
			b.Release(queueOf(t), t.Charge)
		}
	}
	for _, t := range evicting {
		b.Retain(queueOf(t), t.Charge)
	}
	if b.Refuses(job.Need()) == (model.Reason{}) {
		return model.Reason{}
	}
	return model.Reason{
		Kind: model.WaitingForVictims, Subject: job.Queue,
		Message: fmt.Sprintf("queue %q is full until the API server has agreed to evictions that are decided", job.Queue),
	}
}

// bounded reports whether capability refuses what the job's next turn needs, so that more nodes would not help. In a tree
// nothing else does.
func (l limits) bounded(job *model.Job) bool {
	q, book := l.queueOf(job), l.cfg.Policies.Book()
	held := book.UsageOf(q).Taken().Clone()
	held.Sub(job.Usage.Claimed)
	return book.Mode() == account.Hierarchy || q.Capability.Refuses(job.Need(), held) != nil
}

// outgrows reports whether the job needs more than its queue will ever be due.
func (l limits) outgrows(job *model.Job) bool { return l.cfg.Policies.Outgrows(l.queueOf(job), job) }

// withheld says why somebody outside keeps the job's queue from turns. Pods that ask for nothing are kept from nothing.
func (l limits) withheld(job *model.Job) model.Reason {
	if !l.cfg.Policies.MayWithhold() || job.Need().BestEffort() {
		return model.Reason{}
	}
	return l.cfg.Policies.Withheld(l.queueOf(job))
}
