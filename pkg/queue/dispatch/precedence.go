// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"cmp"
	"slices"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/policy"
)

// Line is the jobs of one queue that wait, in the order in which they would have turns.
type Line struct {
	Queue string
	Jobs  []Waiting
}

// stander is a job that waits as it was when it was read, and what its place depends on.
type stander struct {
	inLine
	Waiting
}

// Lines returns the jobs that wait, queue by queue, in the order in which queues would have turns now. Those that may have no turn, for
// whatever reason, are in their places.
func (v View) Lines() []Line {
	reading := v.d.read()
	defer reading.done()
	policies := v.d.cfg.Policies
	byQueue := map[string][]*stander{}
	reading.jobs(v.d.waits, func(w *waiting) {
		// Of its own: the policies may keep in it what they find out.
		job := *w.job
		byQueue[job.Queue] = append(byQueue[job.Queue], &stander{inLine{&job, w.partial}, w.view()})
	})
	lines := make([]Line, 0, len(byQueue))
	for queue, jobs := range byQueue {
		slices.SortFunc(jobs, func(a, b *stander) int {
			reading.step()
			return a.compare(policies, &b.inLine)
		})
		line := Line{Queue: queue, Jobs: make([]Waiting, len(jobs))}
		for i := range jobs {
			line.Jobs[i] = jobs[i].Waiting
		}
		lines = append(lines, line)
	}
	slices.SortFunc(lines, func(a, b Line) int {
		reading.step()
		return compareQueues(policies, a.Queue, b.Queue)
	})
	return lines
}

// whyPartial is the rule that comes before all policies.
const whyPartial = "a gang that holds nodes for too few of its pods is completed before all other jobs"

// decideJobs is compareJobs with what decides.
func decideJobs(policies *policy.Set, a, b *waiting) policy.Decision {
	if a.partial == b.partial {
		return policies.DecideJobs(a.job, b.job)
	}
	of := map[bool]string{true: "holds nodes for too few of its pods", false: "does not"}
	return policy.Decision{Order: compareJobs(policies, a, b), Rule: whyPartial, A: of[a.partial], B: of[b.partial]}
}

// compareQueues is the order of two queues by name, negative when a goes first. Those without an account come last.
func compareQueues(policies *policy.Set, a, b string) int {
	switch x, y := policies.Book().Queue(a), policies.Book().Queue(b); {
	case x != nil && y != nil:
		return policies.CompareQueues(x, y)
	case x != nil:
		return -1
	case y != nil:
		return 1
	}
	return cmp.Compare(a, b)
}

// decideQueues is compareQueues with what decides.
func decideQueues(policies *policy.Set, a, b string) policy.Decision {
	if x, y := policies.Book().Queue(a), policies.Book().Queue(b); x != nil && y != nil {
		return policies.DecideQueues(x, y)
	}
	return policy.Decision{
		Order: compareQueues(policies, a, b), Rule: "a queue that is known goes first, then the one whose name comes first", A: "queue " + a, B: "queue " + b,
	}
}

// Precedence is which of two jobs would have a turn first, and what decides that.
type Precedence struct {
	policy.Decision
	// Queues: it is decided between their queues.
	Queues bool
}

// Precedence says which of two jobs would have a turn before the other if there were room for both, and what decides that; false if one of them does
// not wait. It works before Run, too.
func (v View) Precedence(a, b model.JobKey) (Precedence, bool) {
	v.d.mu.Lock()
	defer v.d.mu.Unlock()
	v.account()
	x, y := v.d.waits.waiter(a), v.d.waits.waiter(b)
	if x == nil || y == nil {
		return Precedence{}, false
	}
	if x.job.Queue == y.job.Queue || x.partial || y.partial {
		return Precedence{Decision: decideJobs(v.d.cfg.Policies, x, y)}, true
	}
	return Precedence{Decision: decideQueues(v.d.cfg.Policies, x.job.Queue, y.job.Queue), Queues: true}, true
}

// waiter is a job that waits, as of now before Run; nil if it does not.
func (s *waitlist) waiter(key model.JobKey) *waiting {
	if w := s.jobs[key]; w != nil {
		return w
	}
	job := s.summary(key)
	if job == nil || !waits(job) {
		return nil
	}
	w := &waiting{at: -1, inLine: inLine{partial: s.broken.precedes(job)}}
	w.job = s.cfg.Policies.Rank(job)
	return w
}
