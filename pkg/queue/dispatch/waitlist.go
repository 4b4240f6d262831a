// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"fmt"
	"slices"
	"time"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// waitlist knows the jobs that wait, and puts each where it belongs: among those that ask to be let into their queue, in the lot of its like, or
// aside with the reason. All methods are called with the dispatcher's lock held.
type waitlist struct {
	cfg    *Config
	outbox *outbox
	lots   *lots
	jobs   map[model.JobKey]*waiting
	// changed, queues and events are what happened since the last update.
	changed map[model.JobKey]bool
	queues  map[string]bool
	events  model.Event
	// booked are the jobs that the accounts have, before Run.
	booked map[model.JobKey]bool
	// nodes are the totals of the nodes when these last changed.
	nodes model.Totals
	// usable is the model's count of changes of what jobs can use, as of when the policies were told.
	usable uint64
	// completer is the first of the jobs that go before others because they are partial.
	completer   model.JobKey
	admissions  admissions
	gates       *gates
	alarms      alarms
	absence     absence
	queueBlocks queueBlocks
	broken      brokenGangs
	setbacks    setbacks
	promised    *promised
	holders     *holders
	resumption  resumption
	slow        *slowBinds
}

func newWaitlist(cfg *Config, outbox *outbox, lots *lots) *waitlist {
	s := &waitlist{
		cfg: cfg, outbox: outbox, lots: lots, jobs: map[model.JobKey]*waiting{},
		changed: map[model.JobKey]bool{}, queues: map[string]bool{}, booked: map[model.JobKey]bool{},
		alarms: newAlarms(), absence: newAbsence(), queueBlocks: queueBlocks{cfg, outbox, map[string]model.Reason{}},
		slow: newSlowBinds(),
	}
	s.broken = newBrokenGangs(cfg, s.alarms, outbox)
	s.setbacks = newSetbacks(cfg, s.setBack)
	s.admissions = newAdmissions(cfg, outbox, lots, s.blocked)
	s.gates = newGates(cfg, outbox, lots)
	s.promised = newPromised(cfg)
	s.holders = newHolders(cfg, s)
	s.resumption.holders = s.holders
	s.admissions.keptIdle = s.holders.keptIdle
	lots.beforeGate, lots.refused = s.gates.firstOf, s.holders.refused
	return s
}

// startOver has all jobs looked at as if they had just come: the rules are other ones.
func (s *waitlist) startOver() {
	s.lots.reset()
	s.admissions.reset()
	s.gates.reset()
	clear(s.promised.aside)
	s.holders.reset()
	s.resumption.adopt()
	clear(s.booked)
	for key, w := range s.jobs {
		w.lot, w.applied, w.at, w.exact = nil, nil, -1, false
		s.changed[key] = true
	}
	s.changeAll()
}

// update takes in what happened: to the accounts and the order, for those who may be let in, and for those that it may have helped. It returns
// how long until something is to be looked at though nothing happens.
func (s *waitlist) update() time.Duration {
	s.followBinds()
	s.takeIn()
	s.askAgain()
	wake := s.stall()
	s.resumption.readmit()
	s.admissions.admit(s.events)
	if !s.outbox.admits() {
		// Who was let in just now may come first, and is looked at when the model knows.
		s.gates.open()
	}
	wake = min(wake, s.lots.revive(s.events), s.holders.seek())
	s.events = 0
	for _, at := range []time.Time{s.alarms.next(), s.cfg.Policies.Again()} {
		if !at.IsZero() {
			wake = min(wake, max(0, at.Sub(s.cfg.Clock.Now())))
		}
	}
	return wake
}

// job returns a job as it is now, with its tasks, or nil. Without the gang policy its tasks start each on their own.
func (s *waitlist) job(key model.JobKey) *model.Job {
	job := s.cfg.loosen(s.cfg.State.Job(key))
	if job == nil || key != s.completer {
		return job
	}
	marked := *job
	marked.Piecemeal = true
	return &marked
}

// summary returns a job as it is now, without its tasks, or nil.
func (s *waitlist) summary(key model.JobKey) *model.Job {
	job := s.cfg.loosen(s.cfg.State.Summary(key))
	if job == nil {
		return nil
	}
	w, outsized := s.jobs[key], s.cfg.NeverFits(job, s.nodes)
	if stalled := w != nil && w.stalled; stalled || outsized || key == s.completer {
		marked := *job
		marked.NeverFits, marked.Stalled, marked.Piecemeal = outsized, stalled, key == s.completer
		return &marked
	}
	return job
}

// measure takes in how large the nodes are: jobs may be too large for them, or no longer be.
func (s *waitlist) measure() {
	if s.events&(model.NodeChanged|model.NodeLost) == 0 {
		return
	}
	largest := s.nodes.Largest
	s.nodes = s.cfg.State.Totals()
	if slices.Equal(s.nodes.Largest, largest) {
		return
	}
	for key, w := range s.jobs {
		if s.cfg.NeverFits(w.job.Job, s.nodes) != w.job.NeverFits {
			s.changed[key] = true
		}
	}
}

// takeIn brings the accounts and the order up to date with what changed.
func (s *waitlist) takeIn() {
	now := s.cfg.Clock.Now()
	s.cfg.Policies.Pass(now)
	s.alarms.ring(now, func(key model.JobKey) { s.changed[key] = true })
	for key, job := range s.bookIn() {
		s.refresh(key, job)
	}
	s.chooseCompleter()
	if s.broken.lapsed {
		s.broken.lapsed, s.lots.newVictims.there = false, true
	}
	s.changed = emptied(s.changed)
}

// mostKept is how many keys a map may have had that is emptied and used again.
const mostKept = 256

// emptied returns a map without what is in it. One that has had many keys is replaced: to go through it would take as long from then on as if it had
// them still.
func emptied[K comparable](m map[K]bool) map[K]bool {
	if len(m) > mostKept {
		return map[K]bool{}
	}
	clear(m)
	return m
}

// bookIn tells the policies what changed, and returns the jobs that have to be looked at again.
func (s *waitlist) bookIn() map[model.JobKey]*model.Job {
	s.measure()
	policies := s.cfg.Policies
	jobs := make(map[model.JobKey]*model.Job, len(s.changed))
	for key := range s.changed {
		job := s.summary(key)
		jobs[key] = job
		policies.SetJob(key, job)
	}
	if s.events&(model.NodeChanged|model.NodeLost) != 0 && policies.SetCluster(s.nodes.Allocatable) {
		// Shares of the cluster are part of the order of those that hold something.
		for key, w := range s.jobs {
			if w.job.Share > 0 {
				if _, ok := jobs[key]; !ok {
					jobs[key] = w.job.Job
				}
			}
		}
	}
	if s.events&model.NodeChanged != 0 || s.cfg.State.UsableChanges() != s.usable {
		usable, changes := s.cfg.State.Usable()
		policies.SetUsable(usable)
		s.usable = changes
	}
	for name := range s.queues {
		policies.SetQueue(name, s.cfg.State.Queue(name))
	}
	policies.Update()
	if len(s.queues) > 0 {
		s.lots.backlog.rebook(policies.Book())
		s.queues = emptied(s.queues)
		if barred := s.queueBlocks.renew(); len(barred) > 0 {
			for key, w := range s.jobs {
				if _, ok := jobs[key]; !ok && barred[w.job.Queue] {
					jobs[key] = w.job.Job
				}
			}
		}
	}
	return jobs
}

// refresh puts a job where it belongs: among the applicants, in the lot of its like, or aside with the reason.
func (s *waitlist) refresh(key model.JobKey, job *model.Job) {
	if released := s.broken.watch(key, job); released > 0 {
		s.setbacks.released(key, released)
	}
	w := s.jobs[key]
	if w != nil {
		s.gates.stir(w.job.Queue)
	}
	s.holders.follow(key, job)
	if job == nil || !waits(job) {
		if w != nil {
			s.lots.tell(w, model.Reason{})
			s.lots.leave(w)
			s.admissions.withdraw(w)
			s.gates.withdraw(key)
			s.promised.drop(w)
			s.rank(w, nil)
			delete(s.jobs, key)
			s.alarms.drop(key)
		}
		if job == nil {
			s.setbacks.drop(key)
		}
		return
	}
	if w == nil {
		w = &waiting{at: -1, setback: s.setbacks.byJob[key]}
		s.jobs[key] = w
	}
	// The order of lots and applicants must not change under them.
	s.lots.backlog.rerank(w, func() { s.rank(w, job) })
	if w.applied != nil {
		w.applied.to.jobs.Put(w.applied)
	}
	s.gates.stir(job.Queue)
	s.holders.watchRuntime(w)
	s.holders.watchDue(w)
	s.place(w)
	s.lots.promote(w)
	s.watchTurns(w)
	s.restall(w)
	if until := s.promised.follow(w); !until.IsZero() {
		s.alarms.set(key, until)
	}
	s.promised.stir(w)
}

// rank records a job as it is now; nil when it no longer waits.
func (s *waitlist) rank(w *waiting, job *model.Job) {
	if w.partial = job != nil && s.broken.precedes(job); w.partial {
		s.lots.backlog.partial[w] = true
	} else {
		delete(s.lots.backlog.partial, w)
	}
	if job != nil {
		w.job = s.cfg.Policies.Rank(job)
	}
}

// place decides what a job waits for.
func (s *waitlist) place(w *waiting) {
	key, job := w.job.Key, w.job.Job
	admitted := job.LetIn()
	if admitted {
		s.admissions.withdraw(w)
		s.watchPods(w)
	}
	s.gates.withdraw(key)
	if s.rests(w) {
		s.lots.leave(w)
		s.admissions.withdraw(w)
		return
	}
	reason := s.blocked(job, admitted)
	if admitted && s.mayPass(job, reason) {
		s.gates.apply(w, s.job(key))
	}
	if reason != (model.Reason{}) {
		if until := s.holders.blocked(key, reason.Kind); !until.IsZero() {
			s.alarms.set(key, until)
		}
		s.lots.leave(w)
		s.admissions.withdraw(w)
		if !s.gates.has(key) {
			s.lots.tell(w, reason)
		}
		return
	}
	switch {
	case !admitted && s.cfg.Policies.Enqueue:
		if !w.job.Deadline.IsZero() && w.job.Deadline.After(s.cfg.Clock.Now()) {
			s.alarms.set(key, w.job.Deadline)
		}
		s.admissions.apply(w)
		s.admissions.invite(w)
	case !job.Admitted:
		s.admissions.letIn(w)
		s.place(w)
	case job.Counts.Placeable() > 0:
		s.lots.join(w)
	default:
		s.lots.leave(w)
		s.lots.tell(w, model.Reason{})
	}
}

// mayPass reports whether pods of a job that was let in stand before the gate of its queue or are being let through, and nothing else than
// that, or tasks that ask for nothing, is in their way.
func (s *waitlist) mayPass(job *model.Job, reason model.Reason) bool {
	switch reason.Kind {
	case "", model.SchedulingGated, model.BackfillOff:
		return job.Counts.AtQueueGate+job.Counts.LetThrough > 0 && (reason.Kind != model.SchedulingGated || job.OpensByQueue())
	}
	return false
}

// followBinds has the jobs of namespaces looked at that may have turns again because their pods are bound, or may not any more.
func (s *waitlist) followBinds() {
	namespaces := s.slow.take()
	if len(namespaces) == 0 {
		return
	}
	for key := range s.jobs {
		if namespaces[key.Namespace] {
			s.changed[key] = true
		}
	}
}

// rests reports whether a job is not to be looked at for now: pods of its namespace wait to be bound, a plugin was found to hold its pod, or it has
// failed. Where that ends at a time it is looked at then.
func (s *waitlist) rests(w *waiting) bool {
	key, now := w.job.Key, s.cfg.Clock.Now()
	if reason := s.slow.reason(key.Namespace); reason != (model.Reason{}) {
		s.lots.tell(w, reason)
		return true
	}
	if until := s.absence.ofJob(key, now); !until.IsZero() {
		s.alarms.set(key, until)
		return true
	}
	if !w.notBefore.After(now) {
		return false
	}
	s.alarms.set(key, w.notBefore)
	if w.why != (model.Reason{}) {
		s.lots.tell(w, w.why)
	}
	return true
}

// waits reports whether a job has something to wait for: to be let into its queue, tasks without a node, members to make
// up its minimum, or a PodGroup to be mended.
func waits(job *model.Job) bool {
	switch {
	case job.Counts.Placeable() > 0, job.Counts.PendingGated > 0, job.Partial(), job.Blocked().Kind == model.InvalidPodGroup:
		return true
	}
	return job.Key.Source == model.FromVolcano && job.Group != nil && job.Counts.Total() == 0 && !job.Over()
}

// blocked says what keeps a job from having turns, or from being let into its queue, at all.
func (s *waitlist) blocked(job *model.Job, admitted bool) model.Reason {
	if reason := s.cfg.Policies.QueueBlocked(job); reason != (model.Reason{}) {
		return reason
	}
	if reason := s.cfg.Policies.Invalid(job); reason != (model.Reason{}) {
		return reason
	}
	reason := job.Blocked()
	switch {
	case reason == (model.Reason{}):
	case job.Counts.Total() == 0 && job.Group != nil && reason.Kind != model.InvalidPodGroup,
		!admitted && reason.Kind == model.SchedulingGated && job.AtQueueGate():
		// Its pods may not exist before it is let in, and the queue opens its gate to none before.
		return model.Reason{}
	case admitted, !s.cfg.Policies.Enqueue, job.Group == nil, job.Group.MinResources == nil, reason.Kind == model.InvalidPodGroup:
		// A job that does not say what it needs is judged by its pods, once they are all there.
		return reason
	default:
		return model.Reason{}
	}
	if admitted && !s.cfg.Policies.Backfill && job.Counts.Placeable() > 0 && onlyBestEffort(job) {
		return model.Reason{Kind: model.BackfillOff, Message: fmt.Sprintf(
			"%d pods ask for no resources, and the action backfill, which places such pods, is not configured: add it, or requests", job.Counts.Placeable())}
	}
	return model.Reason{}
}

func onlyBestEffort(job *model.Job) bool {
	for _, d := range job.Pending {
		if !d.Charge.BestEffort() {
			return false
		}
	}
	return true
}

// setBack takes in that a job has a setback, another one or none any more.
func (s *waitlist) setBack(key model.JobKey, now setback) {
	if w := s.jobs[key]; w != nil {
		w.setback = now
	}
	s.changed[key] = true
}

// changeAll has everything looked at.
func (s *waitlist) changeAll() {
	for key := range s.booked {
		s.changed[key] = true
	}
	clear(s.booked)
	snapshot := s.cfg.State.Snapshot()
	for job := range snapshot.Jobs {
		s.changed[job.Key] = true
	}
	for q := range snapshot.Queues {
		s.queues[q.Name] = true
	}
	s.events |= model.NodeChanged | model.QueueChanged | model.QuotaChanged
}

// watchPods keeps the time since when an admitted job is without pods, and has it give its admission back when that is
// too long: what it was promised keeps others waiting.
func (s *waitlist) watchPods(w *waiting) {
	job := w.job
	if s.cfg.AdmissionTimeout == 0 || job.Group == nil || job.Counts.Total() > 0 || job.Key.Source != model.FromVolcano {
		w.podless = time.Time{}
		return
	}
	now := s.cfg.Clock.Now()
	switch {
	case w.podless.IsZero():
		w.podless = now
	case now.Sub(w.podless) >= s.cfg.AdmissionTimeout:
		w.podless, w.notBefore = time.Time{}, now.Add(afterTimeout)
		s.outbox.admit(job.Key, false)
		s.lots.tell(w, model.Reason{Kind: model.NotAdmitted, Subject: "no pods", Message: fmt.Sprintf(
			"gave its admission back: no pod of it was created within %s of being Inqueue", s.cfg.AdmissionTimeout)})
		return
	}
	s.alarms.set(job.Key, w.podless.Add(s.cfg.AdmissionTimeout))
}

// stall takes in which lots have stalled, and returns how long until the next may.
func (s *waitlist) stall() time.Duration {
	now := s.cfg.Clock.Now()
	for _, l := range s.lots.stalls.due(now, &s.lots.backlog) {
		l.stalled = true
		for _, w := range l.jobs.Items() {
			s.restall(w)
		}
	}
	if next := s.lots.stalls.next(); !next.IsZero() {
		return next.Sub(now)
	}
	return idleWait
}

// restall tells the accounts whether a job is stalled, if they do not know.
func (s *waitlist) restall(w *waiting) {
	atOnce := w.failures > 0 || s.holders.of[w.job.Key] != nil
	stalled := w.lot != nil && w.lot.stalled || atOnce && s.cfg.StalledAfter > 0 || s.idles(w)
	if w.stalled == stalled {
		return
	}
	s.admissions.unbarred = s.admissions.unbarred || stalled
	w.stalled = stalled
	job := *w.job.Job
	job.Stalled = stalled
	s.cfg.Policies.SetJob(job.Key, &job)
}

// tellApart takes a job, and those with the same labels, out of its lot: others of it may be told otherwise.
func (s *waitlist) tellApart(w *waiting) {
	if w.exact {
		return
	}
	l, key := w.lot, keyOf(w.job.Job, true, false)
	for _, other := range slices.Clone(l.jobs.Items()) {
		if keyOf(other.job.Job, true, false) == key {
			other.exact = true
			s.lots.join(other)
			s.restall(other)
		}
	}
}

// askAgain has those outside asked again whose time has come.
func (s *waitlist) askAgain() {
	if at := s.cfg.Policies.Again(); !at.IsZero() && !at.After(s.cfg.Clock.Now()) {
		s.cfg.Policies.Asked()
		s.events |= model.OutsideAnswered
	}
}
