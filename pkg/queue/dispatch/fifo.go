// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"fmt"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// strict reports whether a queue has its jobs start one after the other (dequeueStrategy fifo).
func (l limits) strict(queue string) bool {
	q := l.cfg.Policies.Book().Queue(queue)
	return q != nil && q.Spec != nil && q.Spec.FIFO
}

// strictQueues are the queues whose jobs start one after the other, as far as somebody in them waits. A queue in which nothing changed costs
// the turns of others nothing.
type strictQueues struct {
	// behind are the lots that wait for another job of their queue to start first, by queue. A lot that something else has woken since stays
	// until the queue is looked at.
	behind map[string]lotSet
	// firsts are the jobs that are to start next, as long as nothing changes in their queues. Stirred are those in which something has.
	firsts  map[string]*waiting
	stirred map[string]bool
}

func newStrictQueues() strictQueues {
	return strictQueues{behind: map[string]lotSet{}, firsts: map[string]*waiting{}, stirred: map[string]bool{}}
}

// stir notes that a job came to a queue, left it, or changed.
func (q *strictQueues) stir(queue string) {
	if len(q.firsts) > 0 {
		delete(q.firsts, queue)
	}
	if len(q.behind[queue]) > 0 {
		q.stirred[queue] = true
	}
}

// first is the job of a queue that is to start next: the first that was let in and has not started; nil when there is none. What a job asks for
// beyond its minimum holds nobody up.
func (s *lots) first(queue string) *waiting {
	if first, known := s.strict.firsts[queue]; known {
		return first
	}
	var first *waiting
	earlier := func(w *waiting) bool { return first == nil || compareJobs(s.cfg.Policies, w, first) < 0 }
	for _, l := range s.backlog.lots {
		if l.key.queue != queue || l.key.guest || !earlier(l.best()) {
			continue
		}
		if !l.best().job.Started() {
			first = l.best()
			continue
		}
		for _, w := range l.jobs.Items() {
			if !w.job.Started() && earlier(w) {
				first = w
			}
		}
	}
	if w := s.beforeGate(queue); w != nil && earlier(w) {
		first = w
	}
	s.strict.firsts[queue] = first
	return first
}

// ahead is the job that a lot has to let start before it; nil when there is none. Guests come after all that were let in.
func (s *lots) ahead(l *lot) *waiting {
	if !s.limits.strict(l.key.queue) {
		return nil
	}
	first := s.first(l.key.queue)
	if first == nil || !l.key.guest && compareJobs(s.cfg.Policies, l.best(), first) <= 0 {
		return nil
	}
	return first
}

// comesFirst says that a job has to start before others of its queue.
func comesFirst(queue string, ahead *waiting) model.Reason {
	return model.Reason{Kind: model.NotFirst, Subject: queue, Message: fmt.Sprintf(
		"job %s comes first, and has yet to start; queue %q lets its jobs start one after the other: wait, or set its spec.dequeueStrategy to traverse",
		ahead.job.Key, queue)}
}

// queueUp sets a lot aside until the job ahead of it has started, or is gone.
func (s *lots) queueUp(l *lot, ahead *waiting) {
	reason := comesFirst(l.key.queue, ahead)
	s.cfg.Recorder.Parked(reason.Kind)
	s.backlog.setAside(l, parked, 0, s.cfg.Clock.Now())
	l.behind, l.checks = true, 0
	if s.strict.behind[l.key.queue] == nil {
		s.strict.behind[l.key.queue] = lotSet{}
	}
	s.strict.behind[l.key.queue][l] = true
	s.give(l, reason)
	s.lookout.expect(l)
}

// moveUp lets lots have turns ahead of which nobody is any more.
func (s *lots) moveUp() {
	for queue, behind := range s.strict.behind {
		if !s.strict.stirred[queue] && s.limits.strict(queue) {
			continue
		}
		delete(s.strict.stirred, queue)
		for l := range behind {
			waits := l.behind && l.stage == parked
			if waits && s.ahead(l) != nil {
				continue
			}
			delete(behind, l)
			if waits {
				l.behind = false
				s.backlog.wake(l, true)
			}
		}
		if len(behind) == 0 {
			delete(s.strict.behind, queue)
		}
	}
}
