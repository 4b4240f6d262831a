// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// outbox is what was decided under the dispatcher's lock and is told after it, to those who take locks of their own. All methods are called with
// the lock held.
type outbox struct {
	letters letters
	// reported numbers the reports, so that who is told late knows which came last.
	reported uint64
	// telling is how many goroutines tell what they took.
	telling int
}

// letters are what is to be told.
type letters struct {
	reports     []report
	settlements []settlement
	admissions  []admission
	faults      []fault
	troubles    []Trouble
}

// report is why a job waits; the zero reason: it does not.
type report struct {
	job    model.JobKey
	reason model.Reason
	number uint64
}

// settlement is what becomes of the members of a fragile turn.
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
	o.letters.reports = append(o.letters.reports, report{job: job, reason: reason, number: o.reported})
}

func (o *outbox) settle(members []types.UID, bind bool) {
	o.letters.settlements = append(o.letters.settlements, settlement{members: members, bind: bind})
}

func (o *outbox) admit(job model.JobKey, admitted bool) {
	o.letters.admissions = append(o.letters.admissions, admission{job: job, admitted: admitted})
}

// admits reports whether the model is yet to be told of jobs that were let in.
func (o *outbox) admits() bool {
	return slices.ContainsFunc(o.letters.admissions, func(a admission) bool { return a.admitted })
}

func (o *outbox) fault(queue *model.Queue, reason model.Reason) {
	o.letters.faults = append(o.letters.faults, fault{queue: queue, reason: reason})
}

func (o *outbox) trouble(t Trouble) { o.letters.troubles = append(o.letters.troubles, t) }

// quiet reports whether nothing that others decide by is still to be told, or just being told. Nobody decides by reports and faults.
func (o *outbox) quiet() bool {
	return o.telling == 0 && len(o.letters.settlements) == 0 && len(o.letters.admissions) == 0 && len(o.letters.troubles) == 0
}

// take hands over what is to be told. The caller tells it without the lock, and then calls told with the lock held.
func (o *outbox) take() letters {
	taken := o.letters
	o.letters = letters{}
	o.telling++
	return taken
}

// told notes that what was taken has been told.
func (o *outbox) told() { o.telling-- }

// send tells all. The dispatcher's lock is not held. They were collected in no order; of those about the same job the later one is the last.
func (l letters) send(cfg *Config) {
	slices.SortStableFunc(l.admissions, func(a, b admission) int { return a.job.Compare(b.job) })
	slices.SortStableFunc(l.troubles, func(a, b Trouble) int { return a.Job.Compare(b.Job) })
	slices.SortStableFunc(l.reports, func(a, b report) int { return a.job.Compare(b.job) })
	for _, f := range l.faults {
		cfg.Fault(f.queue, f.reason)
	}
	for _, a := range l.admissions {
		cfg.State.Admit(a.job, a.admitted)
	}
	for _, s := range l.settlements {
		cfg.Settle(s.members, s.bind)
	}
	for _, t := range l.troubles {
		if t.Stage == TimeOver {
			cfg.Release(t)
		} else {
			cfg.Tell(t)
		}
	}
	for _, r := range l.reports {
		cfg.Report(r.job, r.reason, r.number)
	}
}
