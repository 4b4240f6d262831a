// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/queue/account"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// How often queues are looked at: not before so long has passed, nor before the last look has become a hundredth of the time.
const (
	lookAtDuesAfter = time.Second
	lookPart        = 100
)

// dues knows for how long each queue has been below its due: jobs of it wait that it could hold without holding more than it is due. All
// methods are called with the dispatcher's lock held.
type dues struct {
	cfg   *Config
	waits *waitlist
	// looked is when the queues were last looked at, cost how long that took.
	looked time.Time
	cost   time.Duration
	// below are the queues that were below their due then, seconds for how long each queue has been.
	below   map[string]bool
	seconds map[string]float64
	// judged are the queues of which all is known in the look that is on.
	judged map[string]bool
}

func newDues(cfg *Config, waits *waitlist) *dues {
	return &dues{cfg: cfg, waits: waits, below: map[string]bool{}, seconds: map[string]float64{}, judged: map[string]bool{}}
}

// pass looks at the queues if it is time.
func (s *dues) pass() {
	if s.cfg.Clock.Since(s.looked) >= max(lookAtDuesAfter, lookPart*s.cost) {
		s.look()
	}
}

// look adds the time since the last look to the queues that were below their due then, and finds out which are now.
func (s *dues) look() {
	now := s.cfg.Clock.Now()
	for queue := range s.below {
		s.seconds[queue] += now.Sub(s.looked).Seconds()
	}
	s.looked = now
	clear(s.below)
	clear(s.judged)
	for _, l := range s.waits.lots.backlog.lots {
		s.judge(l.best().job.Job)
	}
	for _, a := range s.waits.admissions.applying {
		// Those that claim the same may differ in which of their pods are there.
		for _, w := range a.jobs.Items() {
			if s.judged[a.key.queue] || a.key.podless {
				break
			}
			if w.job.Blocked() == (model.Reason{}) {
				s.judge(w.job.Job)
			}
		}
	}
	s.cost = s.cfg.Clock.Since(now)
}

// judge notes the queue of a job that waits if it is below its due.
func (s *dues) judge(job *model.Job) {
	if s.judged[job.Queue] {
		return
	}
	book := s.cfg.Policies.Book()
	q := book.Queue(job.Queue)
	if q == nil || q.Spec == nil || holdsItsDue(q, book.UsageOf(q).Allocated) {
		s.judged[job.Queue] = true
		return
	}
	if withinDue(q, book.UsageOf(q).Allocated, job.Need()) {
		s.judged[job.Queue], s.below[job.Queue] = true, true
	}
}

// holdsItsDue reports whether a queue holds all that it is due, so that nothing more is within that.
func holdsItsDue(q *account.Queue, held resource.Vector) bool {
	held = held.Counted()
	return !slices.ContainsFunc(q.Deserved, func(due resource.Quantity[float64]) bool {
		return due.Name != corev1.ResourcePods && float64(held.Get(due.Name)) < due.Value
	})
}

// withinDue reports whether a queue that holds so much is due something of what is needed, and would hold no more than its due of any of that
// if it held what is needed, too.
func withinDue(q *account.Queue, held, need resource.Vector) bool {
	held, need = held.Counted(), need.Counted()
	some := false
	for _, due := range q.Deserved {
		more := need.Get(due.Name)
		switch {
		case more <= 0 || due.Name == corev1.ResourcePods:
		case !resource.AtMost(float64(held.Get(due.Name)+more), due.Value):
			return false
		default:
			some = true
		}
	}
	return some
}

// of is for how many seconds a queue has been below its due.
func (s *dues) of(queue string) float64 {
	if s.below[queue] {
		return s.seconds[queue] + s.cfg.Clock.Since(s.looked).Seconds()
	}
	return s.seconds[queue]
}

// forget drops what is known of queues that do not exist any more.
func (s *dues) forget(book *account.Book) {
	for name := range s.seconds {
		if q := book.Queue(name); q == nil || q.Spec == nil {
			delete(s.seconds, name)
		}
	}
}
