// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/policy"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// A job that needs much room at a time may wait for ever: whatever is freed goes to others that need less. So room is reserved for a job that nodes
// have refused for long, if the policies have the plugin reservation. It becomes a holder. Few jobs hold at a time, one of a queue at most, and a
// holder stays one until it starts, is gone, or gives up. Where and when it will start is for the planner to find out; whoever keeps the room is
// not the dispatcher. Here it is decided whose turn may end so, and who may use the room until it is needed.

const (
	// aheadPause is how long a job is passed over that would not fit however many pods end.
	aheadPause = 5 * time.Minute
	// punctual is how much later than told a job may start, for the time that a turn takes.
	punctual = time.Second
)

// LookAgain is after how long a holder has a turn though there cannot be room for it yet: others than its leavers may be in its way by now.
const LookAgain = 30 * time.Second

// ReservationResult is what becomes of reserved room.
type ReservationResult string

// What becomes of it.
const (
	// ReservationMade: room is reserved for a job for which none was.
	ReservationMade ReservationResult = "made"
	// ReservationKept: the job starts, and no later than it was first told if that was a bound. ReservationLate: later.
	ReservationKept ReservationResult = "kept"
	ReservationLate ReservationResult = "late"
	// ReservationEnded: the job is gone, gives up, or has others evicted instead.
	ReservationEnded ReservationResult = "ended"
)

// holders are the jobs for which room is reserved. All methods are called with the dispatcher's lock held.
type holders struct {
	candidacy
	cfg        *Config
	of         map[model.JobKey]*holder
	jobs       map[model.JobKey]*waiting
	outbox     *outbox
	lots       *lots
	admissions *admissions
	// job returns a job as it is now, with its tasks, or nil.
	job func(model.JobKey) *model.Job
}

// candidacy is who may hold next.
type candidacy struct {
	// sought is the job that may become one, and next the first time at which there may be another; zero: none is known of.
	sought model.JobKey
	next   time.Time
	// letIn is the job that was last let in for this.
	letIn model.JobKey
}

// holder is a job for which room is reserved, since when.
type holder struct {
	policy.Reserved
	since time.Time
	// first is by when it was first told that it would start, if that was a bound and no matter of what its queue is due; looked is when it last had a turn.
	first, looked time.Time
	// need is what the holder takes. Leavers are the pods that give back by then: those in the way, and those that pass.
	// True are those that give it to the holder's own queue.
	need    resource.Vector
	leavers map[types.UID]bool
	// original are the pods that were in its way when it became a holder.
	original []types.UID
	// noted is what has to be known once the scheduler has started anew.
	noted *model.Reservation
}

// patience is since when nodes have refused a job, and how it may come to reserved room.
type patience struct {
	// refusedFrom is since when nodes have refused the job; zero when they have not.
	refusedFrom time.Time
	// dueFrom is from when on it may hold; zero: it may not. NotAhead is until when the job is passed over.
	dueFrom, notAhead time.Time
	// runs is the class of how long the job runs; 0 when that is not known, or does not matter.
	runs uint8
}

func newHolders(cfg *Config, s *waitlist) *holders {
	return &holders{cfg: cfg, of: map[model.JobKey]*holder{}, jobs: s.jobs, outbox: s.outbox, lots: s.lots, admissions: &s.admissions, job: s.job}
}

// reset goes by the rules as they are now. What was promised stays so, if room is still reserved for so many.
func (s *holders) reset() {
	most := 0
	if r := s.cfg.Policies.Reservation(); r != nil {
		most = r.Holders
	}
	eldest := slices.SortedFunc(maps.Keys(s.of), func(a, b model.JobKey) int {
		return cmp.Or(s.of[a].since.Compare(s.of[b].since), a.Compare(b))
	})
	for _, key := range eldest[min(most, len(eldest)):] {
		s.bar(key)
	}
	s.sought, s.next = model.JobKey{}, s.cfg.Clock.Now()
}

// expect has candidates looked for at a time.
func (s *holders) expect(at time.Time) {
	if s.cfg.Policies.Reservation() != nil {
		s.next = Earliest(s.next, at)
	}
}

// refused takes in that nodes or its queue have no room for a job, or that it is not let in.
func (s *holders) refused(w *waiting) {
	if !w.refusedFrom.IsZero() {
		return
	}
	w.refusedFrom = s.cfg.Clock.Now()
	s.watchDue(w)
}

// watchDue takes in from when on a job may hold, and has it considered then.
func (s *holders) watchDue(w *waiting) {
	r := s.cfg.Policies.Reservation()
	if r == nil || w.refusedFrom.IsZero() {
		return
	}
	before := w.dueFrom
	if w.dueFrom = w.due(r); w.dueFrom != before && !w.dueFrom.IsZero() {
		s.expect(w.dueFrom)
	}
}

// since is since when the job has waited for room, also under a scheduler before this one.
func (w *waiting) since() time.Time {
	if g := w.job.Group; g != nil && !g.WithoutRoom.IsZero() && g.WithoutRoom.Before(w.refusedFrom) {
		return g.WithoutRoom
	}
	return w.refusedFrom
}

// due is from when on a job may hold; zero: it may not. Who held under a scheduler before this one may at once.
func (w *waiting) due(r *policy.Reservation) time.Time {
	if g := w.job.Group; g != nil && g.Held {
		return model.Later(w.refusedFrom, w.notAhead)
	}
	from, may := r.From(w.job, w.since())
	if !may {
		return time.Time{}
	}
	return model.Later(from, w.notAhead)
}

// follow takes in a job that changed; nil when it is gone.
func (s *holders) follow(key model.JobKey, job *model.Job) {
	if key == s.letIn && (job == nil || job.Started() || !job.LetIn()) {
		s.letIn = model.JobKey{}
		s.expect(s.cfg.Clock.Now())
	}
	if key == s.sought && (job == nil || job.Started()) {
		// There was room for it. The next one is not to wait for the time that it had.
		s.sought = model.JobKey{}
		s.expect(s.cfg.Clock.Now())
	}
	h := s.of[key]
	switch {
	case h == nil || job != nil && job.Counts.Nominated > 0:
	case job == nil || !job.Started():
		s.drop(key, ReservationEnded)
	case !h.first.IsZero() && s.cfg.Clock.Now().After(h.first.Add(punctual)):
		s.drop(key, ReservationLate)
	default:
		s.drop(key, ReservationKept)
	}
}

// drop ends a reservation. Who left room for it may have it, and another job may hold.
func (s *holders) drop(key model.JobKey, how ReservationResult) {
	delete(s.of, key)
	s.cfg.Recorder.Reservation(how)
	s.expect(s.cfg.Clock.Now())
	// Their queue kept room for it.
	s.lots.backlog.wakeAll(held)
}

// missingGrace is for how long a holder may lack pods: who creates one again that was deleted takes a moment for it.
const missingGrace = 2 * time.Minute

// blocked takes in that a holder cannot start whatever room it has. Pods may come again for a while, and it returns until when. Everything else, like a
// closed queue, has the holder give up.
func (s *holders) blocked(key model.JobKey, reason model.ReasonKind) time.Time {
	h := s.of[key]
	if h == nil {
		return time.Time{}
	}
	if until := h.looked.Add(missingGrace); reason == model.NotEnoughTasks && until.After(s.cfg.Clock.Now()) {
		return until
	}
	s.bar(key)
	return time.Time{}
}

// bar has a job give up.
func (s *holders) bar(key model.JobKey) {
	if s.of[key] != nil {
		s.drop(key, ReservationEnded)
		s.outbox.abandon(key)
	}
}

// hasFrom reports whether a job of a queue holds.
func (s *holders) hasFrom(queue string) bool {
	for _, h := range s.of {
		if h.Holder.Queue == queue {
			return true
		}
	}
	return false
}

// seeks reports whether a job is to have a turn because it may become a holder.
func (s *holders) seeks(job *model.Job) bool {
	r := s.cfg.Policies.Reservation()
	return r != nil && job.Key == s.sought && len(s.of) < r.Holders && !s.hasFrom(job.Queue)
}

// runtimeClass rounds how long a job runs up to a fourth of a power of two seconds, so that not every job is a lot of its own; 0 when it is not known.
func runtimeClass(r model.Runtime) uint8 {
	if r.Lasts == 0 {
		return 0
	}
	return uint8(1 + max(0, math.Ceil(4*math.Log2(r.Lasts.Seconds())))) //nolint:gosec // a year is 101
}

// seek looks for the job that is to hold next, has it have a turn, and returns how long until another may be.
func (s *holders) seek() time.Duration {
	r, now := s.cfg.Policies.Reservation(), s.cfg.Clock.Now()
	switch {
	case r == nil:
		return idleWait
	case s.next.IsZero() || s.next.After(now):
		return s.wait(now)
	}
	s.next = time.Time{}
	if len(s.of) >= r.Holders {
		return idleWait
	}
	first := s.firstCandidate(r, now)
	if first == nil {
		return s.wait(now)
	}
	s.sought = first.job.Key
	// Should that come to nothing, another one is to have its turn.
	s.expect(now.Add(searchPause))
	switch {
	case first.applied == nil && first.lot.stage != ready:
		s.lots.backlog.wake(first.lot, true)
	case first.applied != nil:
		// Its pods may be created once it is let in; if so, it comes back to this when nodes refuse it.
		s.letIn = first.job.Key
		s.lots.leave(first)
		s.admissions.letIn(first)
		s.cfg.Policies.Entered(first.job.Job)
	}
	return searchPause
}

// firstCandidate is the first of the jobs that have waited for long and may hold; nil when there is none. It takes in when others will have.
func (s *holders) firstCandidate(r *policy.Reservation, now time.Time) (first *waiting) {
	consider := func(w *waiting) {
		if w.refusedFrom.IsZero() || s.hasFrom(w.job.Queue) {
			return
		}
		switch due := w.due(r); {
		case due.IsZero():
		case due.After(now):
			s.expect(due)
		case !s.mayHold(w):
			// Nobody tells when it may.
			s.expect(now.Add(LookAgain))
		case first == nil || s.candidate(w).Compare(s.candidate(first)) < 0:
			first = w
		}
	}
	for _, l := range s.lots.backlog.lots {
		if !l.key.guest {
			consider(l.best())
		}
	}
	if s.awaits() {
		return first
	}
	for _, a := range s.admissions.applying {
		consider(a.jobs.Top().waiting)
	}
	return first
}

// awaits reports whether a job was let in to hold and does not yet. What it was promised keeps others out: nobody else is let in before it holds or gives
// its admission back.
func (s *holders) awaits() bool {
	w := s.jobs[s.letIn]
	return w != nil && w.job.LetIn() && !w.job.Started() && s.of[s.letIn] == nil
}

// wait is how long until another job may hold.
func (s *holders) wait(now time.Time) time.Duration {
	if s.next.IsZero() {
		return idleWait
	}
	return s.next.Sub(now)
}

// mayHold reports whether nothing but running pods keeps a job from starting: nodes refuse it, or it is not let in for what others hold or were
// promised.
func (s *holders) mayHold(w *waiting) bool {
	job := w.job.Job
	switch {
	case job.Started(), job.Counts.Nominated > 0, job.NeverFits:
		return false
	case w.applied != nil:
		return !job.Claim().IsZero() && s.cfg.Policies.AdmitHolder(s.admissions.world(), w.job)
	}
	return job.LetIn() && !w.lot.resting() && !job.Need().BestEffort() && job.Counts.Placeable() >= job.Requirement().Tasks
}

// candidate is a job as one that may hold.
func (s *holders) candidate(w *waiting) policy.Candidate {
	c := policy.Candidate{Ranked: w.job, Queue: s.queuePriority(w.job.Queue), Lost: w.partial, Since: w.since()}
	if q := s.cfg.Policies.Book().Queue(w.job.Queue); q != nil {
		c.Due = s.cfg.Policies.DueFor(q.Name, w.job.Need(), s.cfg.Policies.Book().UsageOf(q).Allocated)
	}
	return c
}

func (s *holders) queuePriority(name string) int32 {
	if q := s.cfg.Policies.Book().Queue(name); q != nil && q.Spec != nil {
		return q.Spec.Priority
	}
	return 0
}

// watchRuntime takes in how long a job runs, where that matters.
func (s *holders) watchRuntime(w *waiting) {
	w.runs = 0
	if r := s.cfg.Policies.Reservation(); r != nil {
		if job := s.cfg.State.Job(w.job.Key); job != nil {
			w.runs = runtimeClass(job.Runtime(r.Declared()))
		}
	}
}

// Pass lets a job use room that is reserved for another one.
type Pass struct {
	Holder model.JobKey
	By     policy.Passage
}

// passes tells whose reserved room a job may use now.
func (s *holders) passes(w *waiting, job *model.Job) []Pass {
	r := s.cfg.Policies.Reservation()
	if r == nil || len(s.of) == 0 {
		return nil
	}
	var passes []Pass
	now := s.cfg.Clock.Now()
	passer := policy.Passer{
		Job: job, Queue: s.queuePriority(job.Queue), Lost: w != nil && w.partial, Runs: job.Runtime(r.Declared()),
		Due: s.cfg.Policies.DueFor(job.Queue, job.Need(), nil),
	}
	for key, h := range s.of {
		if key == job.Key {
			continue
		}
		by := r.Passage(h.Reserved, passer, now)
		if by != policy.NoPassage && (by != policy.Shortly || s.obstructed(h)) {
			passes = append(passes, Pass{Holder: key, By: by})
		}
	}
	return passes
}

// passed takes in that pods of a turn get nodes. Those that may use the room of a holder give back what they take before it starts. A pod that is
// placed once more, because a bind of it failed, may be too late for that by now.
func (s *holders) passed(w *waiting, job *model.Job, pods []*corev1.Pod) {
	if len(s.of) == 0 || job == nil {
		return
	}
	for _, h := range s.of {
		for _, pod := range pods {
			delete(h.leavers, pod.UID)
		}
	}
	for _, p := range s.passes(w, job) {
		h := s.of[p.Holder]
		if p.By == policy.Precedence {
			continue
		}
		for _, pod := range pods {
			h.leavers[pod.UID] = h.Holder.Queue == job.Queue
		}
	}
}

// obstructed reports whether a pod that was in the way when the holder became one still is.
func (s *holders) obstructed(h *holder) bool { return slices.ContainsFunc(h.original, s.holdsNode) }

func (s *holders) holdsNode(uid types.UID) bool {
	t := s.cfg.State.Task(uid)
	return t != nil && t.Status.HoldsNode()
}

// attemptAhead says what a turn that is about to be refused may do about reserved room.
func (d *Dispatcher) attemptAhead(a *Attempt) {
	r, key, now := d.cfg.Policies.Reservation(), a.Job.Key, d.cfg.Clock.Now()
	h := d.waits.holders.of[key]
	if r == nil {
		return
	}
	if h == nil {
		if a.Reserves = !d.turn.borrowing && d.waits.holders.seeks(a.Job); a.Reserves {
			a.reserveBy(d.cfg.Policies)
		}
		return
	}
	a.reserveBy(d.cfg.Policies)
	if h.looked = now; r.GiveUpAfter > 0 && now.Sub(h.since) >= r.GiveUpAfter {
		d.waits.holders.bar(key)
		if w := d.waits.jobs[key]; w != nil {
			// It waits anew.
			w.notAhead = now.Add(max(r.After, aheadPause))
		}
		return
	}
	// It has others evicted, and is planned anew, as if no room were reserved for it.
	a.Holds, a.Reserves, a.Job = true, true, a.Job.WithoutReserved()
}

// looks reports whether a job is to have a turn though it cannot start yet: so that room is reserved for it, or to look after that.
func (s *holders) looks(job *model.Job) bool { return s.due(job.Key) || s.seeks(job) }

// rests reports whether a job holds and has had a turn just now. Due: whether it holds and is to have one.
func (s *holders) rests(key model.JobKey) bool { return s.of[key] != nil && !s.due(key) }

func (s *holders) due(key model.JobKey) bool {
	h := s.of[key]
	return h != nil && s.cfg.Clock.Since(h.looked) >= LookAgain
}

// appointment is when a holder has its next turn at the latest.
func (h *holder) appointment(now time.Time) time.Time {
	again := h.looked.Add(LookAgain)
	if h.Start.After(now) {
		again = Earliest(again, h.Start)
	}
	return again
}

// keeps says that a queue keeps for a holder what a job needs, which may not pass that one; the zero Reason when it does not.
func (s *holders) keeps(w *waiting, borrowing bool) model.Reason {
	job := w.job.Job
	holder, kept := s.keptOf(job)
	if kept.IsZero() {
		return model.Reason{}
	}
	all := job.Need().Clone()
	all.Add(kept)
	policies := s.cfg.Policies
	if policies.Allows(policies.Book().Queue(job.Queue), job.OwnHalf(), all, borrowing) {
		return model.Reason{}
	}
	full := s.job(job.Key)
	if full == nil || slices.ContainsFunc(s.passes(w, full), func(p Pass) bool { return p.Holder == holder }) {
		return model.Reason{}
	}
	return model.Reason{Kind: model.QueueFull, Subject: job.Queue, Message: fmt.Sprintf("queue %q keeps what it may hold for a job that has waited for longer, and for which room is reserved", job.Queue)}
}

// Room is room that is reserved: when the last of the leavers, the pods that are there, is expected to have ended. Bound: they are stopped by then.
// Guessed: of some nobody has said when they end. IfDue: the job's queue may hold less by then because others ask for more.
type Room struct {
	Start                 time.Time
	Bound, Guessed, IfDue bool
	Leavers               []types.UID
}

// hold makes a job a holder, or gives it other room. Told is what was reserved for it before the scheduler started; nil: nothing.
func (s *holders) hold(job *model.Job, room Room, told *model.Reservation) {
	now := s.cfg.Clock.Now()
	h := &holder{since: now, looked: now, need: job.Need(), leavers: map[types.UID]bool{}}
	if before := s.of[job.Key]; before != nil {
		h.since, h.first, h.original = before.since, before.first, before.original
	} else {
		s.cfg.Recorder.Reservation(ReservationMade)
		if h.original = room.Leavers; room.Bound && !room.IfDue {
			h.first = room.Start
		}
		if told != nil {
			h.since, h.first, h.original = Earliest(told.Since, now), told.First, told.InTheWay
		}
	}
	var back resource.Vector
	for _, uid := range room.Leavers {
		t := s.cfg.State.Task(uid)
		if t == nil {
			continue
		}
		owner := s.cfg.State.Summary(t.Job)
		if h.leavers[uid] = owner != nil && owner.Queue == job.Queue; h.leavers[uid] {
			back.Add(t.Charge)
		}
	}
	h.Reserved = policy.Reserved{
		Holder: job, Queue: s.queuePriority(job.Queue), Start: room.Start, Bound: room.Bound,
		Borrows: !s.cfg.Policies.DueFor(job.Queue, h.need, back),
	}
	h.noted = s.note(job, h, room)
	s.of[job.Key], s.sought = h, model.JobKey{}
}

// keptOf is what a job's queue keeps for a holder that would not have it once the pods have ended that give back to the queue.
func (s *holders) keptOf(job *model.Job) (of model.JobKey, kept resource.Vector) {
	for key, h := range s.of {
		if h.Holder.Queue != job.Queue || key == job.Key {
			continue
		}
		return key, s.lacks(h, func(ofQueue bool) bool { return ofQueue })
	}
	return model.JobKey{}, nil
}

// lacks is what a holder needs beside what some of its leavers give back. What terminates does not count for its queue any more.
func (s *holders) lacks(h *holder, which func(ofQueue bool) bool) resource.Vector {
	lacks := h.need.Clone()
	for uid, ofQueue := range h.leavers {
		switch t := s.cfg.State.Task(uid); {
		case t == nil || t.Completed():
			delete(h.leavers, uid)
		case which(ofQueue) && t.Status.HoldsNode() && t.Status != model.Releasing:
			lacks.Sub(t.Charge)
		}
	}
	for i := range lacks {
		lacks[i].Value = max(0, lacks[i].Value)
	}
	return lacks
}

// keptIdle is what is kept for holders of idle room, all nodes together.
func (s *holders) keptIdle() (kept resource.Vector) {
	for _, h := range s.of {
		kept.Add(s.lacks(h, func(bool) bool { return true }))
	}
	return kept
}

// Reserve ends the turn that the pod leads because room is reserved for its job. Room says where and until when. The model must have been
// told before.
func (d *Dispatcher) Reserve(lead types.UID, room Room) {
	d.mu.Lock()
	if t := d.turn; t != nil && t.lead.UID == lead {
		if job := d.waits.summary(t.job); job != nil {
			d.waits.holders.hold(job, room, t.resumes)
		}
		d.end(TurnReserved)
	}
	d.mu.Unlock()
	d.proceed()
}

// NoneAhead notes that no room can be reserved for the job whose turn the pod leads: it would not fit however many pods end.
func (d *Dispatcher) NoneAhead(lead types.UID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.turn == nil || d.turn.lead.UID != lead {
		return
	}
	w := d.waits.jobs[d.turn.job]
	if w == nil {
		return
	}
	now := d.cfg.Clock.Now()
	// Of many such jobs each is looked at in turn, in a twentieth of the time.
	d.waits.holders.next = model.Later(d.waits.holders.next, now.Add(chargedPart*d.cycle.spentOn(d.turn, now)))
	d.waits.holders.sought = model.JobKey{}
	if w.notAhead = now.Add(aheadPause); w.job.Key == d.waits.holders.letIn && w.job.LetIn() {
		d.waits.holders.letIn = model.JobKey{}
		w.notBefore = now.Add(afterTimeout)
		d.outbox.admit(w.job.Key, false)
	}
}
