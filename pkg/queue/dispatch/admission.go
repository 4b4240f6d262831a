// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"crypto/sha256"
	"slices"
	"time"

	"github.com/caldera-scheduler/caldera/pkg/heap"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/policy"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// afterTimeout is how long a job rests that gave its admission back because its pods did not come.
const afterTimeout = time.Minute

// applicants are jobs of one queue that ask to be let in and claim the same: when one is rejected, so are the others.
type applicants struct {
	key  applicantKey
	jobs *heap.Heap[*application]
	at   int
	// reason is why they were last rejected; zero when they have not been asked for. RejectedAt is when its numbers were found. Asks: one of them
	// is new, or changed since, or the numbers are old.
	reason     model.Reason
	rejectedAt time.Time
	asks       bool
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
	// priority decides whom it may have evicted, and so what it finds room in.
	priority int32
	// overdue: the job has waited as long as it may, podless: none of its pods is there. Either can let it in where others are rejected.
	overdue, podless bool
	// alone is set where jobs that claim the same are told apart.
	alone model.JobKey
}

// admissions are the jobs that ask to be let into their queues. All methods are called with the dispatcher's lock held.
type admissions struct {
	cfg    *Config
	outbox *outbox
	lots   *lots
	// blocked says what keeps a job from having turns, or from being let into its queue, at all.
	blocked func(job *model.Job, admitted bool) model.Reason
	// keptIdle is what is kept of idle room for holders, all nodes together.
	keptIdle func() resource.Vector
	applying map[applicantKey]*applicants
	// asked: some have not been voted on. Unbarred: fewer promises keep those out that have been.
	asked, unbarred bool
	// freed is the accounts' count of room in queues as of when all were last voted on.
	freed uint64
}

func newAdmissions(cfg *Config, outbox *outbox, lots *lots, blocked func(*model.Job, bool) model.Reason) admissions {
	return admissions{cfg: cfg, outbox: outbox, lots: lots, blocked: blocked, applying: map[applicantKey]*applicants{}}
}

// reset drops all that is known of applicants.
func (s *admissions) reset() {
	s.applying, s.asked, s.freed = map[applicantKey]*applicants{}, false, 0
}

// apply puts a job among those that ask to be let in.
func (s *admissions) apply(w *waiting) {
	job := w.job
	key := applicantKey{queue: job.Queue, namespace: job.Key.Namespace, priority: job.Priority, podless: job.Counts.Total() == 0}
	key.claim = sha256.Sum256([]byte(w.job.Claim().String() + "/" + policy.Missing(job.Job).String()))
	key.overdue = !job.Deadline.IsZero() && !job.Deadline.After(s.cfg.Clock.Now())
	if s.cfg.Policies.AloneInAdmission() {
		key.alone = job.Key
	}
	if w.applied != nil && w.applied.to.key != key {
		s.withdraw(w)
	}
	a := s.applying[key]
	if a == nil {
		a = &applicants{key: key, at: -1, jobs: heap.New(func(a, b *application) bool { return compareJobs(s.cfg.Policies, a.waiting, b.waiting) < 0 })}
		s.applying[key] = a
	}
	if w.applied == nil {
		w.applied = &application{waiting: w, to: a, place: -1}
	}
	a.jobs.Put(w.applied)
	if a.reason != (model.Reason{}) {
		s.lots.tell(w, a.reason)
		s.lots.refused(w)
	}
	a.asks, s.asked = true, true
}

// withdraw takes a job from those that ask to be let in.
func (s *admissions) withdraw(w *waiting) {
	if w.applied == nil {
		return
	}
	a := w.applied.to
	a.jobs.Remove(w.applied)
	w.applied = nil
	if a.jobs.Len() == 0 {
		delete(s.applying, a.key)
		return
	}
	// The next one may be trusted where this one was not.
	a.asks, s.asked = true, true
}

// admit lets jobs into their queues, in the order of turns, as the policies vote. A rejected job holds up no other, in
// its queue or elsewhere. Events are what happened since.
func (s *admissions) admit(events model.Event) {
	freed := s.cfg.Policies.Book().Freed()
	helped := events&(model.RoomMade|model.NodeChanged|model.NodeLost|model.QueueChanged|model.QuotaChanged|model.OutsideAnswered) != 0
	anew := helped || s.unbarred || s.freed != freed
	if len(s.applying) == 0 || !s.asked && !anew {
		return
	}
	s.asked, s.unbarred, s.freed = false, false, freed
	queues := map[string][]*applicants{}
	for key, a := range s.applying {
		// As long as nothing helps, what was rejected is rejected again.
		if anew || a.asks {
			queues[key.queue] = append(queues[key.queue], a)
		}
	}
	names := make([]string, 0, len(queues))
	for name := range queues {
		names = append(names, name)
	}
	policies := s.cfg.Policies
	slices.SortFunc(names, func(a, b string) int {
		return policies.CompareQueues(policies.Book().Queue(a), policies.Book().Queue(b))
	})
	world := s.world()
	for _, name := range names {
		s.admitFrom(queues[name], world)
	}
}

// world is what admission goes by besides the accounts.
func (s *admissions) world() policy.World {
	return policy.World{Used: s.cfg.State.Totals().Used, Quotas: s.cfg.State.Quotas, Now: s.cfg.Clock.Now()}
}

// admitFrom asks for the jobs of one queue, the first one first, until all that are left are rejected. Those that are rejected before
// anybody is let in would be afterwards: only the others are put in order.
func (s *admissions) admitFrom(candidates []*applicants, world policy.World) {
	open := heap.New(func(a, b *applicants) bool {
		return compareJobs(s.cfg.Policies, a.jobs.Top().waiting, b.jobs.Top().waiting) < 0
	})
	var so verdicts
	for _, a := range candidates {
		rejected, guests := so.imply(a)
		switch {
		case rejected:
			s.inviteAll(a, guests)
		case s.ask(a, world):
			open.Put(a)
		case s.cfg.Policies.AdmitsByClaim():
			so.note(a)
		}
	}
	for entered := false; open.Len() > 0; entered = true {
		a := open.Pop()
		if entered && !s.ask(a, world) {
			continue
		}
		w := a.jobs.Top().waiting
		s.lots.leave(w)
		s.letIn(w)
		s.cfg.Policies.Entered(w.job.Job)
		if a.jobs.Len() > 0 {
			open.Put(a)
		}
	}
}

// ask reports whether the first of the applicants may be let in. If not, all are told why.
func (s *admissions) ask(a *applicants, world policy.World) bool {
	w := a.jobs.Top().waiting
	fresh := a.asks
	if a.asks = false; !fresh {
		world.Known = a.reason
	}
	reason := s.cfg.Policies.Admit(world, w.job)
	switch {
	case reason == (model.Reason{}), s.trusted(world, w):
		return true
	case reason.Kind == model.Unanswered:
		return false
	}
	news := !a.reason.Same(reason)
	if a.reason = reason; world.Known != reason {
		a.rejectedAt = s.cfg.Clock.Now()
	}
	if news || fresh {
		for _, w := range a.jobs.Items() {
			s.lots.refused(w.waiting)
			if news || !w.reported.Same(reason) {
				s.lots.tell(w.waiting, reason)
			}
		}
	}
	s.inviteAll(a, s.hosts(world, w))
	return false
}

// letIn admits a job. The accounts know at once, the model after the lock is released.
func (s *admissions) letIn(w *waiting) {
	s.withdraw(w)
	s.cfg.Recorder.Admitted(w.job.Queue, s.cfg.Clock.Since(w.job.Created))
	job := *w.job.Job
	job.Admitted = true
	w.job = s.cfg.Policies.Rank(&job)
	s.cfg.Policies.SetJob(job.Key, &job)
	s.outbox.admit(job.Key, true)
	s.lots.tell(w, model.Reason{})
}
