// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"time"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/topology/buckets"
)

// priority is Volcano's plugin of that name: the higher PriorityClass first, and within a job the higher task priority.
type priority struct{}

func (priority) CompareJobs(a, b *Ranked) int { return -cmp.Compare(a.Priority, b.Priority) }

func (priority) CompareTasks(a, b *model.Task) int { return -cmp.Compare(a.Priority, b.Priority) }

// gang orders jobs that have not reached their minimum before those that have. As in Volcano the minimums of roles do not
// count here (pkg/scheduler/plugins/gang/gang.go, jobOrderFn: IsReady).
type gang struct{}

func (gang) CompareJobs(a, b *Ranked) int {
	ready := func(j *Ranked) bool { return j.Counts.Ready()+j.Counts.PendingBestEffort >= j.Min() }
	switch x, y := ready(a), ready(b); {
	case x == y:
		return 0
	case y:
		return -1
	}
	return 1
}

// taskTopology places the tasks of a job bucket by bucket. Annotations that are wrong mean nothing here; the plugin that scores
// nodes tells the user.
type taskTopology struct{}

func (taskTopology) Arrange(job *model.Job) Arrangement {
	buckets, err := buckets.Of(job)
	if buckets == nil || err != nil {
		return nil
	}
	return buckets
}

// drf orders jobs by their dominant share of the cluster, the smaller first.
type drf struct{}

func (drf) CompareJobs(a, b *Ranked) int { return cmp.Compare(a.Share, b.Share) }

// sla orders jobs that must not wait longer than a time before those that may, by when that time is over, and lets a
// job in once it is.
type sla struct {
	// limit is for jobs that do not give one; zero for none.
	limit time.Duration
}

// deadline is when the job has waited long enough; zero if it may wait for ever.
func (p sla) deadline(j *model.Job) time.Time {
	limit := p.limit
	if j.Group != nil && j.Group.WaitingTime > 0 {
		limit = j.Group.WaitingTime
	}
	if limit <= 0 {
		return time.Time{}
	}
	return j.Created.Add(limit)
}

func (sla) CompareJobs(a, b *Ranked) int {
	switch x, y := a.Deadline.IsZero(), b.Deadline.IsZero(); {
	case x && y:
		return 0
	case x:
		return 1
	case y:
		return -1
	}
	return a.Deadline.Compare(b.Deadline)
}

func (sla) Admit(w World, j *Ranked) (Vote, model.Reason) {
	if !j.Deadline.IsZero() && !w.Now.Before(j.Deadline) {
		return Permit, model.Reason{}
	}
	return Abstain, model.Reason{}
}
