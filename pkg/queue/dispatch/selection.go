// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"cmp"
	"slices"
	"time"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/model"
)

// selection chooses whose turn is next, and who may share it. All methods are called with the dispatcher's lock held.
type selection struct {
	cfg   *Config
	waits *waitlist
	lots  *lots
	// allowance is the time for plans that may come to nothing.
	allowance allowance
	// roomy: the last turn was for most room. Repeated: it was repeated, and who had it is still first.
	roomy, repeated bool
	// turns counts those that were begun.
	turns uint64
}

// mostFollowers is how many jobs may share a turn with the first: what they need is planned and placed in some milliseconds, for which a
// more important job may have to wait.
const mostFollowers = 31

// next takes the first job, of the first queue, that may fit and begins its turn.
func (s *selection) next() *turn {
	s.lots.release()
	s.lots.moveUp()
	if t := s.resume(); t != nil {
		return t
	}
	for _, l := range s.waits.promised.review() {
		if l.stage == parked && s.lots.backlog.lots[l.key] == l {
			s.lots.backlog.wake(l, true)
		}
	}
	s.lots.backlog.beginPass()
	if s.lots.backlog.empty() {
		return nil
	}
	s.lots.backlog.retrying = s.allowance.left(s.cfg.Clock.Now())
	totals := s.cfg.State.Totals()
	if t := s.roomiest(totals); t != nil {
		return t
	}
	for line := range s.lots.backlog.linesInOrder {
		for l := s.lots.backlog.first(line); l != nil; l = s.lots.backlog.first(line) {
			if t := s.try(l, totals, false); t != nil {
				return t
			}
		}
	}
	return s.lend(totals)
}

// number is that of the turn that is on, nil for none, or of the last one.
func (s *selection) number(on *turn) uint64 {
	if on != nil {
		return on.number
	}
	return s.turns
}

// untilRetry is how long until lots may have turns that wait for the allowance.
func (s *selection) untilRetry() time.Duration {
	if !s.lots.backlog.retriesLeft() {
		return idleWait
	}
	return s.allowance.until(s.cfg.Clock.Now())
}

// roomiest begins every second turn, while the allowance is spent, for the job with most places to spare: first plans, which are not put
// off, may come to nothing one after the other, and what surely fits is not to wait for all of them. Of those whose places are not
// counted yet the youngest is counted, so that whoever comes behind many is found. A turn that is repeated is followed by none of these: it may
// be for the very room that its job was yet to learn of.
func (s *selection) roomiest(totals model.Totals) *turn {
	if s.roomy = !s.roomy && !s.repeated && !s.lots.backlog.retrying; !s.roomy {
		return nil
	}
	s.lots.countRoom()
	most, youngest := s.extremes()
	if youngest != nil {
		if s.lots.rooms.follow(youngest); most == nil || youngest.roomierThan(most) {
			most = youngest
		}
	}
	if most == nil {
		return nil
	}
	return s.try(most, totals, false)
}

// extremes are the lot with most places to spare, of those whose places are counted, and of the others the one whose first job is the youngest; nil
// where there is none.
func (s *selection) extremes() (most, youngest *lot) {
	for _, line := range s.lots.backlog.active {
		for _, l := range line.ready.Items() {
			switch {
			case len(l.asks) == 0 && (youngest == nil || l.youngerThan(youngest)):
				youngest = l
			case len(l.asks) > 0 && (most == nil || l.roomierThan(most)):
				most = l
			}
		}
	}
	return most, youngest
}

// roomierThan reports whether it is more likely that there is room for the lot's first job than for another's, as far as places are
// counted: they tell most of pods that go by their nodes alone.
func (l *lot) roomierThan(o *lot) bool {
	if a, b := l.best().job.Traits == 0, o.best().job.Traits == 0; a != b {
		return a
	}
	if a, b := l.spare(), o.spare(); a != b {
		return a > b
	}
	return l.youngerThan(o)
}

// youngerThan compares the lots' first jobs.
func (l *lot) youngerThan(o *lot) bool {
	a, b := l.best().job, o.best().job
	return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.UID, b.UID)) > 0
}

// try begins a turn for the first job of a lot. If it may not have one, the lot is no longer ready.
func (s *selection) try(l *lot, totals model.Totals, borrowing bool) *turn {
	w := l.best()
	if l.key.guest && !s.waits.admissions.welcome(w) {
		return nil
	}
	if reason := s.lots.limits.withheld(w.job.Job); reason != (model.Reason{}) {
		s.lots.withhold(l, reason)
		return nil
	}
	if ahead := s.lots.ahead(l); ahead != nil {
		s.lots.queueUp(l, ahead)
		return nil
	}
	if until := s.waits.promised.leaves(l, totals); !until.IsZero() {
		s.lots.leaveRoom(l, until)
		return nil
	}
	limit := s.lots.limits.refuses(w.job.Job, borrowing)
	if limit == (model.Reason{}) {
		limit = s.waits.holders.keeps(w, borrowing)
	}
	barred, hopeless := s.prospects(l, limit, totals)
	if (barred || hopeless) && !s.waits.holders.looks(w.job.Job) && !s.maySearch(l, borrowing) {
		s.putOff(l, limit, barred)
		return nil
	}
	if !barred && s.awaitsAnswers(l, borrowing) {
		return nil
	}
	t := s.beginFirst(l)
	if t == nil {
		return nil
	}
	t.borrowing, t.nodesFirst = borrowing, limit != (model.Reason{})
	if barred {
		t.limit = limit
	}
	return t
}

// prospects tells whether what its queue may have keeps a lot's first job from a turn, and whether no node can have room for it yet.
func (s *selection) prospects(l *lot, limit model.Reason, totals model.Totals) (barred, hopeless bool) {
	job := l.best().job.Job
	fits := l.lacks() == 0 && s.cfg.MayFit(job, totals)
	// Where both the nodes and what the queue is due are short, it is told of the nodes: more of them help.
	barred = limit != (model.Reason{}) && (fits || s.lots.limits.bounded(job))
	// The first attempt is a full plan even when it must fail: its reason says what is short where.
	return barred, !fits && !l.swept && (l.reason.FromNodes || s.waits.holders.rests(job.Key))
}

// awaitsAnswers parks a lot whose first job's room depends on evictions that have no answer yet, and reports whether it did.
func (s *selection) awaitsAnswers(l *lot, borrowing bool) bool {
	reason := s.lots.limits.unanswered(l.best().job.Job, borrowing)
	if reason == (model.Reason{}) {
		return false
	}
	s.lots.park(l, reason, false)
	l.helps |= model.EvictionAnswered
	s.lots.lookout.expect(l)
	return true
}

// beginFirst begins a turn for the first job of a lot. One that has nobody to lead it leaves the lot.
func (s *selection) beginFirst(l *lot) *turn {
	w := l.best()
	t := s.begin(w.job.Key)
	if t == nil {
		// The job changed since it was taken in, and will be taken in again.
		s.lots.leave(w)
		return nil
	}
	if l.retry {
		s.cfg.Recorder.Retried()
	}
	return t
}

// putOff sets a lot aside without a turn: its queue has no room for it, or still no node has.
func (s *selection) putOff(l *lot, limit model.Reason, barred bool) {
	h := s.waits.holders.of[l.best().job.Key]
	if barred && h == nil {
		s.lots.hold(l, limit)
	} else {
		s.lots.parkUnplanned(l)
	}
	if h != nil {
		l.notBefore = h.appointment(s.cfg.Clock.Now())
		s.lots.lookout.expect(l)
	}
}

// begin makes the turn of a job; nil when it has no task to lead it.
func (s *selection) begin(key model.JobKey) *turn {
	job := s.waits.job(key)
	if job == nil {
		return nil
	}
	lead := s.cfg.Lead(job)
	if lead == nil {
		return nil
	}
	now := s.cfg.Clock.Now()
	s.repeated = false
	s.turns++
	return &turn{number: s.turns, job: job.Key, uid: job.UID, least: job.Min(), lead: lead.Pod, progress: now, began: now}
}

// lend gives a turn to a gang that needs more than its queue will ever be due, once nobody else has a use for the room:
// two such gangs would otherwise keep each other waiting on an idle cluster. The queue's other limits stand.
func (s *selection) lend(totals model.Totals) *turn {
	first := s.lots.backlog.firstHeld(func(l *lot) bool {
		return l.outgrows && !l.key.guest && s.lots.limits.refuses(l.best().job.Job, true) == (model.Reason{})
	})
	if first == nil {
		return nil
	}
	s.lots.backlog.move(first, ready)
	return s.try(first, totals, true)
}

// maySearch reports whether it may help to look for victims for a lot now, as far as a glance at the queues tells. If it is
// too soon, the lot is looked at again later.
func (s *selection) maySearch(l *lot, borrowing bool) bool {
	job := l.best().job.Job
	if !s.cfg.Evicts || l.key.guest || job.Counts.Nominated > 0 && !s.waits.holders.rests(job.Key) {
		return s.cfg.Evicts && !l.key.guest
	}
	l.starving, l.patientUntil = s.starving(job), s.patientUntil(job)
	return l.starving && !s.lots.newVictims.tooSoon(*l.lastSearch(borrowing), s.cfg.Clock.Now()) && len(s.mayEvict(job)) > 0 && !s.overtakes(l)
}

// overtakes reports whether victims would be sought for a lot that has just come before they are for the first of those that starve in its queue,
// which may find some by now and is to be looked at some time later. That one has its turn first: else the newcomer might take what can be had only
// because it has come. Those that were refused before are looked at together, in order.
func (s *selection) overtakes(l *lot) bool {
	now := s.cfg.Clock.Now()
	if !l.explainedAt.IsZero() || !s.lots.newVictims.there || !s.lots.newVictims.next.After(now) {
		return false
	}
	first := s.lots.firstStarving(l.key.lineKey)
	if first == nil || first == l || compareJobs(s.cfg.Policies, first.best(), l.best()) > 0 || first.searched.Add(searchPause).After(now) ||
		len(s.mayEvict(first.best().job.Job)) == 0 {
		return false
	}
	s.lots.backlog.wake(first, false)
	return true
}

// starving reports whether others may be evicted for a job as far as its own state goes: the policies say so, or it is the broken gang that
// is completed first.
func (s *selection) starving(job *model.Job) bool {
	return job.Key == s.waits.completer || s.starves(job)
}

// starves reports whether the policies say that others may be evicted for a job, and it is old enough for that.
func (s *selection) starves(job *model.Job) bool {
	return s.cfg.Policies.Starving(job) && s.patientUntil(job).IsZero()
}

// patientUntil is from when on others may be evicted for a job, if that is yet to come; zero if it is not.
func (s *selection) patientUntil(job *model.Job) time.Time {
	if from := job.MayEvictFrom(); from.After(s.cfg.Clock.Now()) {
		return from
	}
	return time.Time{}
}

// mayEvict returns the actions by which a starving job might find a victim, in order. That broken gangs give way comes before all that
// selectors say.
func (s *selection) mayEvict(job *model.Job) []config.Action {
	var may []config.Action
	if s.waits.othersYield(job.Key) {
		may = append(may, config.Complete)
	}
	if s.starves(job) {
		may = append(may, s.cfg.Policies.MayEvict(job)...)
	}
	if s.cfg.Policies.Moves() && !s.cfg.MayFit(job, s.cfg.State.Totals()) {
		may = slices.DeleteFunc(may, func(action config.Action) bool { return action == config.Consolidate })
	}
	return may
}

// followers returns the jobs that would have the next turns one after the other if each found room, as long as they are single pods. A
// turn for each would plan for each anew. The lock is held.
func (s *selection) followers(t *turn) []*model.Job {
	lead := s.waits.jobs[t.job]
	if lead == nil || lead.lot == nil || lead.lot.key != t.lot || !single(lead.job.Job) || !s.mayBeFollowed(t) {
		return nil
	}
	line := s.lots.backlog.lines[t.lot.lineKey]
	if line == nil || !line.ready.Has(lead.lot) {
		return nil
	}
	var jobs []*model.Job
	var out []*waiting
	for line.ready.Len() > 0 && len(jobs) < mostFollowers {
		l := line.ready.Top()
		w := l.best()
		if w != lead {
			job := s.follower(line, w, lead)
			if job == nil {
				break
			}
			jobs = append(jobs, job)
		}
		out = append(out, w)
		// The next one shows when this one is out of the order.
		s.lots.backlog.unready(l)
		l.jobs.Remove(w)
		if l.jobs.Len() > 0 {
			s.lots.backlog.makeReady(l)
		}
	}
	for _, w := range out {
		s.lots.backlog.unready(w.lot)
		w.lot.jobs.Put(w)
		s.lots.backlog.makeReady(w.lot)
	}
	return jobs
}

// mayBeFollowed reports whether a placement of the turn's job says nothing about whose turn is next. A guest is let in by itself. Where
// several queues have jobs it may change their order, and policies from outside may go by anything. Evictions that are not agreed to may be refused, and their room is not
// to be counted on.
func (s *selection) mayBeFollowed(t *turn) bool {
	return s.lots.backlog.queues() == 1 && !t.lot.guest && !t.borrowing && !t.nodesFirst && t.limit == (model.Reason{}) &&
		len(s.waits.holders.of) == 0 && !s.cfg.Policies.HasOutsiders() && len(s.cfg.State.Evicting()) == 0 && s.waits.promised.byQueue[t.lot.queue] == nil
}

// follower returns a job that is a single pod; nil when it is more, has nothing to place, asks for something else by now, or has been
// told before that there is no room for what it asks: unless that is what the lead asks for, it is for a plan of its own to tell.
func (s *selection) follower(line *line, w, lead *waiting) *model.Job {
	if w.lot != lead.lot && w.lot.reason != (model.Reason{}) {
		return nil
	}
	if r := line.retries; s.lots.backlog.retrying && r.Len() > 0 && compareJobs(s.cfg.Policies, r.Top().best(), w) < 0 {
		// One that may be tried again comes before it.
		return nil
	}
	job := s.waits.job(w.job.Key)
	if job == nil || !single(job) {
		return nil
	}
	if s.waits.changed[job.Key] {
		key := keyOf(job, w.exact, false)
		if key.runs = w.runs; key != w.lot.key {
			return nil
		}
	}
	return job
}

// single reports whether a job is one pod that asks for something, may go anywhere, and for which no room is kept.
func single(job *model.Job) bool {
	return job.Counts.Total() == 1 && job.Counts.Placeable() == 1 && job.Counts.Nominated == 0 && job.Requirement().Tasks == 1 &&
		!job.Together()
}
