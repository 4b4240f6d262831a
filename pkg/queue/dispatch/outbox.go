// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// outbox keeps what was decided under the dispatcher's lock. It is told after that, because those who are told have locks of their own. The lock
// is held when a method is called.
type outbox struct {
	next outgoing
	// reported numbers the reports, so that who is told late knows which came last.
	reported uint64
	// telling is how many goroutines tell what they took.
	telling int
}

// outgoing is what is to be told.
type outgoing struct {
	reports     []report
	settlements []settlement
	admissions  []admission
	faults      []fault
	troubles    []Trouble
	// through are tasks that were let through the gates of their queues.
	through []*model.Task
	// abandoned are jobs for which room is no longer to be reserved.
	abandoned []model.JobKey
}

// report is why a job waits; the zero reason: it does not.
type report struct {
	job    model.JobKey
	reason model.Reason
	number uint64
}

// settlement says whether the members that wait for each other may bind.
type settlement struct {
	members []types.UID
	bind    bool
}

// admission is a decision that the model has to be told.
type admission struct {
	job      model.JobKey
	admitted bool
}

// fault is a queue that is left out of scheduling, or no longer is.
type fault struct {
	queue  *model.Queue
	reason model.Reason
}

func (o *outbox) report(job model.JobKey, reason model.Reason) {
	o.reported++
	o.next.reports = append(o.next.reports, report{job: job, reason: reason, number: o.reported})
}

func (o *outbox) settle(members []types.UID, bind bool) {
	o.next.settlements = append(o.next.settlements, settlement{members: members, bind: bind})
}

func (o *outbox) admit(job model.JobKey, admitted bool) {
	o.next.admissions = append(o.next.admissions, admission{job: job, admitted: admitted})
}

func (o *outbox) letThrough(tasks []*model.Task) { o.next.through = append(o.next.through, tasks...) }

// admits reports whether the model is yet to be told of jobs that were let in, or of tasks that were let through a gate.
func (o *outbox) admits() bool {
	return len(o.next.through) > 0 || slices.ContainsFunc(o.next.admissions, func(a admission) bool { return a.admitted })
}

func (o *outbox) fault(queue *model.Queue, reason model.Reason) {
	o.next.faults = append(o.next.faults, fault{queue: queue, reason: reason})
}

func (o *outbox) trouble(t Trouble) { o.next.troubles = append(o.next.troubles, t) }

func (o *outbox) abandon(job model.JobKey) { o.next.abandoned = append(o.next.abandoned, job) }

// quiet reports whether nothing that others decide by is still to be told, or just being told. Nobody decides by reports and faults.
func (o *outbox) quiet() bool {
	return o.telling == 0 && len(o.next.settlements) == 0 && len(o.next.admissions) == 0 && len(o.next.through) == 0 &&
		len(o.next.troubles) == 0 && len(o.next.abandoned) == 0
}

// take hands over what is to be told. The caller tells it without the lock, and then calls told with the lock held.
func (o *outbox) take() outgoing {
	taken := o.next
	o.next = outgoing{}
	o.telling++
	return taken
}

// told notes that what was taken has been told.
func (o *outbox) told() { o.telling-- }

// send tells all. The dispatcher's lock is not held. They were collected in no order; of those about the same job the later one is the last.
func (out outgoing) send(cfg *Config) {
	slices.SortStableFunc(out.admissions, func(a, b admission) int { return a.job.Compare(b.job) })
	slices.SortStableFunc(out.troubles, func(a, b Trouble) int { return a.Job.Compare(b.Job) })
	slices.SortStableFunc(out.reports, func(a, b report) int { return a.job.Compare(b.job) })
	for _, f := range out.faults {
		cfg.Fault(f.queue, f.reason)
	}
	for _, a := range out.admissions {
		cfg.State.Admit(a.job, a.admitted)
	}
	if len(out.through) > 0 {
		uids := make([]types.UID, len(out.through))
		for i, t := range out.through {
			uids[i] = t.UID
		}
		cfg.State.LetThrough(uids...)
		cfg.Ungate(out.through)
	}
	slices.SortFunc(out.abandoned, model.JobKey.Compare)
	for _, job := range out.abandoned {
		cfg.Abandon(job)
	}
	for _, s := range out.settlements {
		cfg.Settle(s.members, s.bind)
	}
	for _, t := range out.troubles {
		if t.Stage == TimeOver {
			cfg.Release(t)
		} else {
			cfg.Tell(t)
		}
	}
	for _, r := range out.reports {
		cfg.Report(r.job, r.reason, r.number)
	}
}
