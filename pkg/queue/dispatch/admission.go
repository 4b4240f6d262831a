// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"github.com/caldera-scheduler/caldera/pkg/heap"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/policy"
)

// afterTimeout is how long a job rests that gave its admission back because its pods did not come.
const afterTimeout = time.Minute

// applicants are jobs of one queue that ask to be let in and claim the same: when one is rejected, so are the others.
type applicants struct {
	key  applicantKey
	jobs *heap.Heap[*application]
	at   int
	// reason is why they were last rejected; zero when they have not been asked for. Asks: one of them is new, or changed since.
	reason model.Reason
	asks   bool
	// guests: those that have their pods may have turns all the same.
	guests bool
}

// Position implements heap.Element.
func (a *applicants) Position() *int { return &a.at }

// application is a job among applicants. The job has its own place among those that may have turns.
type application struct {
	*waiting
	to    *applicants
	place int
}

// Position implements heap.Element.
func (a *application) Position() *int { return &a.place }

type applicantKey struct {
	queue, namespace string
	claim            [sha256.Size]byte
	// overdue: the job has waited as long as it may, which can let it in where others are rejected.
	overdue bool
	// alone is set where jobs that claim the same are told apart.
	alone model.JobKey
}

// apply puts a job among those that ask to be let in.
func (d *Dispatcher) apply(w *waiting) {
	job := w.job
	key := applicantKey{queue: job.Queue, namespace: job.Key.Namespace}
	quota := ""
	if job.Group != nil && job.Counts.Total() < job.Min() {
		quota = job.Group.MinQuota.String()
	}
	key.claim = sha256.Sum256([]byte(w.job.Claim().String() + "/" + quota))
	key.overdue = !job.Deadline.IsZero() && !job.Deadline.After(d.cfg.Clock.Now())
	if d.cfg.Policies.AloneInAdmission() {
		key.alone = job.Key
	}
	if w.applied != nil && w.applied.to.key != key {
		d.withdraw(w)
	}
	a := d.applying[key]
	if a == nil {
		a = &applicants{key: key, at: -1, jobs: heap.New(func(a, b *application) bool { return compareJobs(d.cfg.Policies, a.waiting, b.waiting) < 0 })}
		d.applying[key] = a
	}
	if w.applied == nil {
		w.applied = &application{waiting: w, to: a, place: -1}
	}
	a.jobs.Put(w.applied)
	if a.reason != (model.Reason{}) {
		d.tell(w, a.reason)
	}
	a.asks, d.asked = true, true
}

// withdraw takes a job from those that ask to be let in.
func (d *Dispatcher) withdraw(w *waiting) {
	if w.applied == nil {
		return
	}
	a := w.applied.to
	a.jobs.Remove(w.applied)
	w.applied = nil
	if a.jobs.Len() == 0 {
		delete(d.applying, a.key)
		return
	}
	// The next one may be trusted where this one was not.
	a.asks, d.asked = true, true
}

// admit lets jobs into their queues, in the order of turns, as the policies vote. A rejected job holds up no other, in
// its queue or elsewhere.
func (d *Dispatcher) admit() {
	freed := d.cfg.Policies.Book().Freed()
	helped := d.events&(model.RoomMade|model.NodeChanged|model.NodeLost|model.QueueChanged|model.QuotaChanged|model.OutsideAnswered) != 0
	anew := helped || d.unbarred || d.freed != freed
	if len(d.applying) == 0 || !d.asked && !anew {
		return
	}
	d.asked, d.unbarred, d.freed = false, false, freed
	queues := map[string][]*applicants{}
	for key, a := range d.applying {
		// As long as nothing helps, what was rejected is rejected again.
		if anew || a.asks {
			queues[key.queue] = append(queues[key.queue], a)
		}
	}
	names := make([]string, 0, len(queues))
	for name := range queues {
		names = append(names, name)
	}
	policies := d.cfg.Policies
	slices.SortFunc(names, func(a, b string) int {
		return policies.CompareQueues(policies.Book().Queue(a), policies.Book().Queue(b))
	})
	world := d.world()
	for _, name := range names {
		d.admitFrom(queues[name], world)
	}
}

// world is what admission goes by besides the accounts.
func (d *Dispatcher) world() policy.World {
	return policy.World{Used: d.cfg.State.Totals().Used, Quotas: d.cfg.State.Quotas, Now: d.cfg.Clock.Now()}
}

// admitFrom asks for the jobs of one queue, the first one first, until all that are left are rejected. Those that are rejected before
// anybody is let in would be afterwards: only the others are put in order.
func (d *Dispatcher) admitFrom(candidates []*applicants, world policy.World) {
	open := heap.New(func(a, b *applicants) bool {
		return compareJobs(d.cfg.Policies, a.jobs.Top().waiting, b.jobs.Top().waiting) < 0
	})
	var so verdicts
	for _, a := range candidates {
		rejected, guests := so.imply(a)
		switch {
		case rejected:
			d.inviteAll(a, guests)
		case d.ask(a, world):
			open.Put(a)
		case d.cfg.Policies.AdmitsByClaim():
			so.note(a)
		}
	}
	for entered := false; open.Len() > 0; entered = true {
		a := open.Pop()
		if entered && !d.ask(a, world) {
			continue
		}
		w := a.jobs.Top().waiting
		d.leave(w)
		d.letIn(w)
		d.cfg.Policies.Entered(w.job.Job)
		if a.jobs.Len() > 0 {
			open.Put(a)
		}
	}
}

// ask reports whether the first of the applicants may be let in. If not, all are told why.
func (d *Dispatcher) ask(a *applicants, world policy.World) bool {
	w := a.jobs.Top().waiting
	fresh := a.asks
	if a.asks = false; !fresh {
		world.Known = a.reason
	}
	reason := d.cfg.Policies.Admit(world, w.job)
	switch {
	case reason == (model.Reason{}), d.trusted(world, w):
		return true
	case reason.Kind == model.Unanswered:
		return false
	}
	news := !a.reason.Same(reason)
	a.reason = reason
	if news || fresh {
		for _, w := range a.jobs.Items() {
			if news || !w.reported.Same(reason) {
				d.tell(w.waiting, reason)
			}
		}
	}
	d.inviteAll(a, d.hosts(world, w))
	return false
}

// letIn admits a job. The accounts know at once, the model after the lock is released.
func (d *Dispatcher) letIn(w *waiting) {
	d.withdraw(w)
	d.cfg.Recorder.Admitted(w.job.Queue, d.cfg.Clock.Since(w.job.Created))
	job := *w.job.Job
	job.Admitted = true
	w.job = d.cfg.Policies.Rank(&job)
	d.cfg.Policies.SetJob(job.Key, &job)
	d.outbox.admit(job.Key, true)
	d.tell(w, model.Reason{})
}

// watchPods keeps the time since when an admitted job is without pods, and has it give its admission back when that is
// too long: what it was promised keeps others waiting.
func (d *Dispatcher) watchPods(w *waiting) {
	job := w.job
	if d.cfg.AdmissionTimeout == 0 || job.Group == nil || job.Counts.Total() > 0 || job.Key.Source != model.FromVolcano {
		w.podless = time.Time{}
		return
	}
	now := d.cfg.Clock.Now()
	switch {
	case w.podless.IsZero():
		w.podless = now
	case now.Sub(w.podless) >= d.cfg.AdmissionTimeout:
		w.podless, w.notBefore = time.Time{}, now.Add(afterTimeout)
		d.outbox.admit(job.Key, false)
		d.tell(w, model.Reason{Kind: model.NotAdmitted, Subject: "no pods", Message: fmt.Sprintf(
			"gave its admission back: no pod of it was created within %s of being Inqueue", d.cfg.AdmissionTimeout)})
		return
	}
	d.alarms.set(job.Key, w.podless.Add(d.cfg.AdmissionTimeout))
}
