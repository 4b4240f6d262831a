// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package policy holds Volcano's queue and job policies and the tiers that combine their answers. A policy answers typed
// questions about jobs and the accounts of queues; it does not log, watch, or know the scheduler framework. One that
// keeps sums of its own follows the jobs as the accounts do.
package policy

import (
	"strings"
	"time"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/queue/account"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// Ranked is a job with what its place in the order depends on, as of when it was ranked.
type Ranked struct {
	*model.Job
	// Share is the dominant part of the cluster that the job holds, 0 to 1, besides what does not count: see model.Job.OwnHalf.
	Share float64
	// Deadline is when the job has waited long enough; zero for a job without a limit.
	Deadline time.Time

	claim   resource.Vector
	claimed bool
}

// Claim is what admitting the job promises it. It is found out when it is first asked for: one that is rejected is asked for often.
func (r *Ranked) Claim() resource.Vector {
	if !r.claimed {
		r.claim, r.claimed = r.Job.Claim(), true
	}
	return r.claim
}

// JobOrderer compares two jobs of a queue: negative when a goes first, zero without an opinion.
type JobOrderer interface {
	CompareJobs(a, b *Ranked) int
}

// QueueOrderer compares two queues: negative when a goes first, zero without an opinion.
type QueueOrderer interface {
	CompareQueues(a, b *account.Queue) int
}

// TaskOrderer orders the tasks of one job: negative when a goes first, zero without an opinion.
type TaskOrderer interface {
	CompareTasks(a, b *model.Task) int
}

// Arranger orders the tasks of a job by what all of them are.
type Arranger interface {
	// Arrange returns the arrangement of a job's tasks; nil without an opinion.
	Arrange(job *model.Job) Arrangement
}

// Arrangement is how the tasks of one job are to be placed.
type Arrangement interface {
	// Compare orders two waiting tasks: negative when a goes first, zero without an opinion.
	Compare(a, b *model.Task) int
	// Part numbers the tasks that nodes score alike, as far as it goes.
	Part(t *model.Task) int
}

// Overuser tells that a queue holds all it is due, so that none of its jobs has a turn.
type Overuser interface {
	Overused(q *account.Queue) bool
}

// Limiter bounds what a queue may hold.
type Limiter interface {
	// Limits calls yield with each bound on the queue, its own first, until it returns false. While borrowing, what a
	// queue is due does not bound it.
	Limits(q *account.Queue, borrowing bool, yield func(Bound) bool)
}

// dueLimiter is a Limiter whose limits are in part what a queue is due.
type dueLimiter interface {
	// limitsBeside is Limits for a job that holds what does not count by what the queue is due.
	limitsBeside(q *account.Queue, own resource.Vector, yield func(Bound) bool)
}

// Bound is a limit on what a queue holds, and what it holds.
type Bound struct {
	Queue *account.Queue
	Limit resource.Limit
	Held  resource.Vector
}

// Vote is an answer to a question on which a tier decides together.
type Vote int8

// The votes.
const (
	Reject  Vote = -1
	Abstain Vote = 0
	Permit  Vote = 1
)

// Admitter votes on letting a job into its queue (Volcano's JobEnqueueable), and says why it rejects one.
type Admitter interface {
	Admit(w World, j *Ranked) (Vote, model.Reason)
}

// World is what admission looks at besides the job and its queue.
type World struct {
	Queue *account.Queue
	// Cluster is what all nodes have, Used what all pods on them hold, Inqueue what was promised to admitted jobs.
	Cluster, Used, Inqueue resource.Vector
	// Quotas returns the resource quotas of a namespace.
	Quotas func(namespace string) []*model.Quota
	Now    time.Time
	// Known is why the job was rejected when it was last asked for; zero when it was not, or its numbers are to be new. A policy may
	// return it if it is the Same.
	Known model.Reason

	// guest: the question is whether the job may use room that was promised to jobs that nodes have refused for long. Inqueue is
	// without that.
	guest bool

	set *Set
	job *model.Job
}

// reclaimable returns what the job could have others evicted for once it is let in: nil for all of the cluster, else below a queue, that one
// included, and without what is placed beyond the minimums of jobs.
func (w *World) reclaimable(below *account.Queue) resource.Vector {
	return w.set.reclaimable(w.Queue, w.job, below)
}

// notAdmitted is the reason for which a job is not let in: of a kind of bound, for want of the first of some resources. Text is asked for
// unless the reason is known.
func (w *World) notAdmitted(bound string, over []resourceName, nodes bool, text func() string) model.Reason {
	known := &w.Known
	if of, ok := strings.CutSuffix(known.Subject, string(over[0])); ok && of == bound && known.Kind == model.NotAdmitted && known.FromNodes == nodes {
		return *known
	}
	return model.Reason{Kind: model.NotAdmitted, Subject: bound + string(over[0]), Message: text(), FromNodes: nodes}
}

// committed is what counts as taken of a queue.
func (w *World) committed(u *account.Usage) resource.Vector {
	committed := u.Committed()
	if w.guest {
		committed.Sub(u.Stalled)
	}
	return committed
}

// Follower keeps sums over jobs. It is told of every change of a job, nil when the job is gone, and of the queues and
// the cluster.
type Follower interface {
	FollowJob(key model.JobKey, job *model.Job)
	FollowCluster(total resource.Vector)
	FollowQueues(queues []*account.Queue)
}
