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

// first is the job of a queue that is to start next: the first that was let in and has not started; nil when there is none. What a job asks for
// beyond its minimum holds nobody up.
func (s *lots) first(queue string) *waiting {
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

// queueUp sets a lot aside until the job ahead of it has started, or is gone.
func (s *lots) queueUp(l *lot, ahead *waiting) {
	reason := model.Reason{Kind: model.NotFirst, Subject: l.key.queue, Message: fmt.Sprintf(
		"job %s comes first, and has yet to start; queue %q lets its jobs start one after the other: wait, or set its spec.dequeueStrategy to traverse",
		ahead.job.Key, l.key.queue)}
	s.cfg.Recorder.Parked(reason.Kind)
	s.backlog.setAside(l, parked, 0, s.cfg.Clock.Now())
	l.behind, l.checks, s.queuing = true, 0, true
	s.give(l, reason)
	s.lookout.expect(l)
}

// moveUp lets lots have turns ahead of which nobody is any more.
func (s *lots) moveUp() {
	if !s.queuing {
		return
	}
	s.queuing = false
	var free []*lot
	firsts := map[string]*waiting{}
	for l := range s.backlog.aside[parked] {
		if !l.behind {
			continue
		}
		queue := l.key.queue
		if _, known := firsts[queue]; !known && s.limits.strict(queue) {
			firsts[queue] = s.first(queue)
		}
		if first := firsts[queue]; first == nil || !l.key.guest && compareJobs(s.cfg.Policies, l.best(), first) <= 0 {
			free = append(free, l)
		} else {
			s.queuing = true
		}
	}
	for _, l := range free {
		l.behind = false
		s.backlog.wake(l, true)
	}
}
