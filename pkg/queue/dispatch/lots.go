// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"time"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// lots decides what becomes of each lot: whether it may have turns, or is set aside, and what wakes it. All methods are called with the
// dispatcher's lock held.
type lots struct {
	cfg     *Config
	outbox  *outbox
	limits  limits
	backlog backlog
	rooms   rooms
	lookout lookout
	stalls  stalls
	// newVictims is whether there may be somebody to evict for those that starve.
	newVictims newVictims
	// loosened is the accounts' count of room in queues as of when the lots that wait for it were last looked at.
	loosened uint64
	strict   strictQueues
	// beforeGate is the first job of a queue whose pods stand before its gate; nil when there is none.
	beforeGate func(queue string) *waiting
	// refused is told of a job for which nodes or its queue have no room.
	refused func(*waiting)
}

func newLots(cfg *Config, outbox *outbox) *lots {
	return &lots{
		cfg: cfg, outbox: outbox, limits: limits{cfg}, backlog: newBacklog(cfg.Policies), rooms: newRooms(cfg.State, cfg.Checks),
		stalls: stalls{cfg: cfg}, strict: newStrictQueues(),
	}
}

// reset drops all lots, and goes by the rules as they are now.
func (s *lots) reset() {
	s.backlog.reset(s.cfg.Policies)
	s.stalls.refused = nil
	s.rooms.reset(s.cfg.Checks)
	s.lookout.events, s.lookout.unindexed = 0, false
	s.loosened, s.newVictims.loosened = 0, 0
	s.strict = newStrictQueues()
}

// of is the lot for which a turn is, or was, planned; nil before that, and if it is gone.
func (s *lots) of(t *turn) *lot { return s.backlog.lots[t.lot] }

// keyOf is the key of the lot that a job belongs to. One that failed is a lot of its own: it has its turns within the allowance.
func (s *lots) keyOf(w *waiting, job *model.Job) lotKey {
	if w == nil {
		return keyOf(job, false, s.cfg.Policies.AloneInTurns())
	}
	key := keyOf(job, w.exact, w.failures > 0 || s.cfg.Policies.AloneInTurns())
	key.guest, key.runs = w.applied != nil, w.runs
	return key
}

// join puts a job into the lot of its like. A job that changed is not parked for what it asked before.
func (s *lots) join(w *waiting) {
	key := s.keyOf(w, w.job.Job)
	if w.lot != nil && w.lot.key != key {
		s.leave(w)
	}
	s.strict.stir(key.queue)
	if l := s.backlog.put(w, key); l.stage != ready && !key.guest {
		s.wait(w, l.reason)
		s.tell(w, l.reason)
	}
}

// wait takes in that a job waits for a reason from now on, be it that its like were refused.
func (s *lots) wait(w *waiting, reason model.Reason) {
	if reason.FromNodes || reason.Kind == model.QueueFull {
		s.refused(w)
	}
}

// promote has victims sought for a job that has become the first of a lot which is set aside: nobody may be evicted for the one that was
// judged, and somebody for this one. What rests goes on resting.
func (s *lots) promote(w *waiting) {
	l := w.lot
	if !s.cfg.Evicts || l == nil || l.best() != w || l.stage != parked && l.stage != held || l.resting() {
		return
	}
	if now := l.standing(s.cfg.Policies); l.judged != now {
		l.judged = now
		s.backlog.wake(l, false)
	}
}

// leave takes a job out of its lot, and forgets an empty lot.
func (s *lots) leave(w *waiting) {
	if w.lot == nil {
		return
	}
	queue := w.lot.key.queue
	s.strict.stir(queue)
	if gone := s.backlog.remove(w); gone != nil {
		delete(s.strict.behind[queue], gone)
		s.rooms.unfollow(gone)
	}
}

// tell reports why a job waits, if that is news, be it in the numbers only.
func (s *lots) tell(w *waiting, reason model.Reason) {
	if w.reported == reason {
		return
	}
	w.reported = reason
	s.outbox.report(w.job.Key, reason)
}

// hold sets a lot aside until its queue may have more room.
func (s *lots) hold(l *lot, reason model.Reason) {
	s.cfg.Recorder.Parked(reason.Kind)
	job := l.best().job.Job
	s.backlog.setAside(l, held, 0, s.cfg.Clock.Now())
	l.outgrows = s.limits.outgrows(job)
	s.give(l, reason)
	s.lookout.expect(l)
}

// withhold sets a lot aside until somebody outside has answered, or answers otherwise. Evictions do not help it.
func (s *lots) withhold(l *lot, reason model.Reason) {
	s.backlog.setAside(l, parked, model.OutsideAnswered, s.cfg.Clock.Now())
	l.checks = 0
	s.lookout.expect(l)
	if reason.Kind != model.Unanswered {
		s.cfg.Recorder.Parked(reason.Kind)
		s.give(l, reason)
	}
}

// release makes the lots ready again that a queue's limit held, or that wait for evictions to give their queue room, if some queue may have more
// since.
func (s *lots) release() {
	loosened := s.cfg.Policies.Book().Loosened()
	if s.loosened == loosened {
		return
	}
	s.loosened = loosened
	s.backlog.wakeAll(held)
	if s.lookout.events&model.EvictionAnswered == 0 {
		return
	}
	for l := range s.backlog.aside[parked] {
		if l.helps&model.EvictionAnswered != 0 {
			s.backlog.wake(l, true)
		}
	}
}

// give records why the jobs of a lot wait, and tells it of those to whom it is news.
func (s *lots) give(l *lot, reason model.Reason) {
	changed := !l.reason.Same(reason)
	l.reason = reason
	if l.key.guest {
		// They are told why they are not let in.
		return
	}
	for _, w := range l.jobs.Items() {
		s.wait(w, reason)
		if changed || !w.reported.Same(reason) {
			s.tell(w, reason)
		}
	}
}

// park sets a lot aside until something happens that can help it. Missed: it happened already, while its plan was made.
func (s *lots) park(l *lot, reason model.Reason, missed bool) {
	s.cfg.Recorder.Parked(reason.Kind)
	s.backlog.setAside(l, parked, helpedBy(l.best()), s.cfg.Clock.Now())
	s.rooms.setAside(l)
	if missed && !l.indexed() {
		l.checks = len(retryDelays)
	}
	if l.checks > 0 {
		l.checks--
		l.notBefore = s.cfg.Clock.Now().Add(retryDelays[l.checks])
	}
	s.give(l, reason)
	s.lookout.expect(l)
}

// parkUnplanned sets a lot aside again though nothing was planned for it: why it waits is as old as before.
func (s *lots) parkUnplanned(l *lot) {
	explainedAt := l.explainedAt
	s.park(l, l.reason, false)
	if !explainedAt.IsZero() {
		l.explainedAt = explainedAt
		s.lookout.expect(l)
	}
}

// refuse sets a lot aside for the reason that one of its jobs was given.
func (s *lots) refuse(l *lot, t *turn, r Refusal) {
	if r.Reason.Kind == model.QueueFull {
		// It was let in because others might go for it, and they do not.
		s.stalls.note(l, r.Reason)
		s.hold(l, r.Reason)
	} else {
		s.stalls.note(l, r.Reason)
		helps := helpedBy(l.best())
		if r.Unmet {
			helps &^= byRoom | model.PodPlaced | model.NodeLost | model.KeptRoomFreed
		}
		missed := s.missed(l, t, helps)
		l.uncounted, l.swept = l.uncounted || r.Uncounted, false
		switch l.lack = l.lacks(); {
		case l.lack > 0:
			l.doubts = 0
		case !missed || l.missed:
			l.doubts++
		}
		l.missed, l.placesThen = missed, l.places()
		s.park(l, r.Reason, missed)
		l.helps = helps
		if r.Stale {
			l.notBefore = s.cfg.Clock.Now().Add(retryDelays[0])
		} else if l.indexed() {
			missed = s.rooms.heed(l, t, r.Vetoes) || missed
		}
		if missed {
			s.backlog.wake(l, true)
		}
	}
	l.notBefore = Earliest(l.notBefore, r.Again)
	s.lookout.expect(l)
}

// rest sets a lot aside for a time, because an attempt of one of its jobs failed. Nothing but the time helps it.
func (s *lots) rest(l *lot, last time.Duration) {
	s.backlog.setAside(l, parked, 0, s.cfg.Clock.Now())
	l.notBefore, l.doubts = s.cfg.Clock.Now().Add(last), l.doubts+1
	s.lookout.expect(l)
}

// leaveRoom sets a lot aside until others have had the room that they were promised, or a time.
func (s *lots) leaveRoom(l *lot, until time.Time) {
	s.backlog.setAside(l, parked, byRoom, s.cfg.Clock.Now())
	l.notBefore = until
	s.lookout.expect(l)
}

// missed takes in what happened on nodes, and reports whether something did, since the turn's plan was begun, that helps the lot.
func (s *lots) missed(l *lot, t *turn, helps model.Event) bool {
	if len(l.asks) == 0 {
		s.rooms.follow(l)
		return t.events&helps != 0 && l.lacks() == 0
	}
	s.countRoom()
	switch {
	case !l.indexed() && t.events&helps != 0:
		return true
	case helps&byRoom == 0:
		return false
	}
	// Room that was gone when the plan was made may be back by now.
	back := l.lacks() == 0 && t.events&byRoom != 0 && s.rooms.concernsAny(l, t.touched)
	return back || l.places() > t.placesThen
}

// trust has a lot of which a job was placed have turns like any other again.
func (s *lots) trust(t *turn) {
	l := s.backlog.lots[t.lot]
	if l == nil {
		return
	}
	if l.swept {
		s.cfg.Recorder.Swept()
	}
	l.doubts, l.swept = 0, false
	if !l.stalled {
		l.refusedSince = time.Time{}
	}
	if l.retry {
		wasReady := s.backlog.unready(l)
		l.retry = false
		if wasReady {
			s.backlog.makeReady(l)
		}
	}
}

// countRoom takes in what happened on nodes, and wakes the lots for which there are more places since.
func (s *lots) countRoom() {
	s.rooms.count()
	for l := range s.rooms.gained {
		before := l.lack
		if l.lack = l.lacks(); l.lack == 0 && l.stage == parked && l.helps&byRoom != 0 {
			s.backlog.wake(l, before > 0)
		}
	}
}

// revive wakes the lots that something may have helped, and returns how long until a time set for one comes. Events are what happened.
func (s *lots) revive(events model.Event) time.Duration {
	now := s.cfg.Clock.Now()
	s.backlog.beginPass()
	s.countRoom()
	s.newVictims.note(events, s.cfg.Policies.Book().Loosened(), s.cfg.Evicts, s.cfg.Policies.Moves())
	h := happening{events: events, judged: s.rooms.judged, victims: s.newVictims.due(now), now: now}
	if h.victims || s.lookout.due(h) {
		s.lookAtAll(h)
	}
	wake := min(idleWait, s.lookout.next.Sub(now))
	if s.newVictims.there {
		wake = min(wake, s.newVictims.next.Sub(now))
	}
	s.rooms.judged = false
	return wake
}

// appointments are the times at which lots are looked at though nothing happens.
func (s *lots) appointments() []time.Time {
	var times []time.Time
	for _, l := range s.backlog.lots {
		if (l.stage == parked || l.stage == held) && !l.notBefore.IsZero() {
			times = append(times, l.notBefore)
		}
	}
	if at := s.stalls.next(); !at.IsZero() {
		times = append(times, at)
	}
	if s.newVictims.there {
		times = append(times, s.newVictims.next)
	}
	return times
}

// lookAtAll wakes what is set aside and may have been helped by something else than counted room, and notes what the others wait for.
func (s *lots) lookAtAll(h happening) {
	s.lookout = lookout{next: h.now.Add(idleWait)}
	for _, lots := range []lotSet{s.backlog.aside[parked], s.backlog.aside[held]} {
		for l := range lots {
			if wakes, surely := h.wakes(l); wakes {
				s.backlog.wake(l, surely)
			}
			s.lookout.expect(l)
		}
	}
}
