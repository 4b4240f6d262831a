// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"fmt"
	"slices"
	"time"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// Pods may carry the scheduling gate of Volcano's SchedulingGatesQueueAdmission, so that autoscalers do not see them before their queue has
// room. It is taken off when the queue's limits allow what the pod asks for, of a gang for all that it needs to start, and what the pod asks
// for is kept from then on, whether nodes have room or not. Volcano takes the gates of a gang off one by one.

// gates are the jobs whose pods stand at the gate of their queue. All methods are called with the dispatcher's lock held.
type gates struct {
	cfg    *Config
	outbox *outbox
	lots   *lots
	// peers are those that ask for the same of the same queue; at says in which one each job is.
	peers map[peersKey]*peerGroup
	at    map[model.JobKey]peersKey
	// fresh: somebody came or changed since all were last looked at. Loosened is the accounts' count of room as of then.
	fresh    bool
	loosened uint64
}

// peerGroup is jobs for which the limits of a queue have one answer.
type peerGroup struct {
	passages map[model.JobKey]*passage
	// reason is why they were last refused; zero when they were not. RefusedAt is when its numbers were found. Fresh: some have come or changed
	// since, or the numbers are old.
	reason    model.Reason
	refusedAt time.Time
	fresh     bool
}

type peersKey struct {
	queue, ask string
	// alone is set for a job that holds what does not count for it.
	alone model.JobKey
}

// passage is the tasks of a job that are to be let through together. It has none once they were, until the job is looked at again.
type passage struct {
	*waiting
	tasks []*model.Task
	// ask is the sum of their requests.
	ask resource.Vector
}

func newGates(cfg *Config, outbox *outbox, lots *lots) *gates {
	g := &gates{cfg: cfg, outbox: outbox, lots: lots}
	g.reset()
	return g
}

// reset drops all that is known.
func (g *gates) reset() {
	g.peers, g.at, g.fresh, g.loosened = map[peersKey]*peerGroup{}, map[model.JobKey]peersKey{}, true, 0
}

// apply puts a job that was let into its queue among those at the gate, as long as pods of it may be let through or are being so. The job may
// be nil.
func (g *gates) apply(w *waiting, job *model.Job) {
	if job == nil {
		return
	}
	p := &passage{waiting: w, tasks: job.NextThroughGate()}
	if len(p.tasks) == 0 && job.Counts.LetThrough == 0 {
		return
	}
	for _, t := range p.tasks {
		p.ask.Add(t.Charge)
	}
	key := peersKey{queue: job.Queue, ask: p.ask.String()}
	if job.OwnHalf() != nil {
		key.alone = job.Key
	}
	c := g.peers[key]
	if c == nil {
		c = &peerGroup{passages: map[model.JobKey]*passage{}}
		g.peers[key] = c
	}
	c.passages[job.Key], g.at[job.Key] = p, key
	c.fresh, g.fresh = true, true
	g.lots.strict.stir(job.Queue)
}

// stir notes that a job came to a queue, left it, or changed: where jobs start one after the other, another may be first.
func (g *gates) stir(queue string) {
	g.fresh = g.fresh || len(g.at) > 0 && g.lots.limits.strict(queue)
}

// has reports whether a job is at the gate.
func (g *gates) has(job model.JobKey) bool {
	_, ok := g.at[job]
	return ok
}

// withdraw takes a job from those at the gate.
func (g *gates) withdraw(job model.JobKey) {
	key, ok := g.at[job]
	if !ok {
		return
	}
	delete(g.at, job)
	g.lots.strict.stir(key.queue)
	delete(g.peers[key].passages, job)
	if len(g.peers[key].passages) == 0 {
		delete(g.peers, key)
	}
	g.fresh = true
}

// open lets those through for which their queues have room, in the order of turns.
func (g *gates) open() {
	book := g.cfg.Policies.Book()
	if len(g.at) == 0 || !g.fresh && g.loosened == book.Loosened() {
		return
	}
	g.fresh, g.loosened = false, book.Loosened()
	// Who is let through leaves less room for others: only those that may be let through now are put in order and looked at again.
	var may []*passage
	for _, c := range g.peers {
		if p := c.any(); p == nil || !g.allows(c, p) {
			continue
		}
		for _, p := range c.passages {
			if len(p.tasks) > 0 {
				may = append(may, p)
			}
		}
	}
	slices.SortFunc(may, g.compare)
	refused, rivals := map[*peerGroup]bool{}, map[string]*waiting{}
	for _, p := range may {
		switch c := g.peers[g.at[p.job.Key]]; {
		case refused[c]:
		case !g.allows(c, p):
			refused[c] = true
		case !g.first(p):
		case g.yields(p, rivals):
			g.fresh = true
		default:
			g.let(p)
		}
	}
}

// compare is the order of turns: of queues and, in one queue, of jobs.
func (g *gates) compare(a, b *passage) int {
	policies, x, y := g.cfg.Policies, a.waiting, b.waiting
	if x.job.Queue != y.job.Queue && !x.partial && !y.partial {
		if c := policies.CompareQueues(g.lots.limits.queueOf(x.job.Job), g.lots.limits.queueOf(y.job.Job)); c != 0 {
			return c
		}
	}
	return compareJobs(policies, x, y)
}

// yields reports whether a job of the queue that needs no gate to be opened comes first, and may have its turn for what the queue has left.
// Rivals are the first of those by queue, as far as they are known.
func (g *gates) yields(p *passage, rivals map[string]*waiting) bool {
	queue := p.job.Queue
	rival, known := rivals[queue]
	if !known {
		rival = g.lots.rival(queue)
		rivals[queue] = rival
	}
	return rival != nil && compareJobs(g.cfg.Policies, rival, p.waiting) < 0
}

// rival is the first job of a queue that is about to have a turn as far as its queue is concerned; nil when there is none.
func (s *lots) rival(queue string) *waiting {
	var first *waiting
	// Those that are held are looked at again if there has been more room since.
	freed := s.loosened != s.cfg.Policies.Book().Loosened()
	for key, l := range s.backlog.lots {
		if key.queue != queue || key.guest || l.stage != ready && (l.stage != held || !freed) {
			continue
		}
		w := l.best()
		if (first == nil || compareJobs(s.cfg.Policies, w, first) < 0) && s.limits.refuses(w.job.Job, false) == (model.Reason{}) {
			first = w
		}
	}
	return first
}

// allows reports whether a job of a group may be let through as far as its queue is concerned. If not, all of the group are told why.
func (g *gates) allows(c *peerGroup, p *passage) bool {
	reason := g.refuses(c, p)
	if reason != (model.Reason{}) {
		g.refuse(c, reason)
	}
	return reason == (model.Reason{})
}

// any is one of the group that is not through; nil if all are.
func (c *peerGroup) any() *passage {
	for _, p := range c.passages {
		if len(p.tasks) > 0 {
			return p
		}
	}
	return nil
}

// refuses says why a queue does not let a job of a group through. What its own tasks claim counts, too: it is kept for those.
func (g *gates) refuses(c *peerGroup, p *passage) model.Reason {
	if p.ask.BestEffort() {
		return model.Reason{}
	}
	job, policies := p.job.Job, g.cfg.Policies
	q, own := g.lots.limits.queueOf(job), job.OwnHalf()
	if reason := policies.Overused(q, own); reason != (model.Reason{}) {
		return reason
	}
	if !c.fresh && c.reason.Kind == model.QueueFull && !policies.Allows(q, own, p.ask, false) {
		return c.reason
	}
	return policies.Refuses(q, own, p.ask, false)
}

// first reports whether a job is the one to start next where jobs of its queue start one after the other. If not, it is told who is.
func (g *gates) first(p *passage) bool {
	if !g.lots.limits.strict(p.job.Queue) {
		return true
	}
	ahead := g.lots.first(p.job.Queue)
	if ahead == nil || compareJobs(g.cfg.Policies, p.waiting, ahead) <= 0 {
		return true
	}
	if p.lot == nil {
		g.lots.tell(p.waiting, comesFirst(p.job.Queue, ahead))
	}
	return false
}

// firstOf is the job of a queue before the gate, or that is being let through, that is to start before the others; nil when there is none.
func (g *gates) firstOf(queue string) *waiting {
	var first *waiting
	for key, c := range g.peers {
		if key.queue != queue {
			continue
		}
		for _, p := range c.passages {
			if !p.job.Started() && (first == nil || compareJobs(g.cfg.Policies, p.waiting, first) < 0) {
				first = p.waiting
			}
		}
	}
	return first
}

// refuse tells the jobs of a group of peers why they are not let through. Those that have turns besides are told by these.
func (g *gates) refuse(c *peerGroup, reason model.Reason) {
	if c.reason.Same(reason) && !c.fresh {
		return
	}
	c.reason, c.refusedAt, c.fresh = reason, g.cfg.Clock.Now(), false
	for _, p := range c.passages {
		if len(p.tasks) > 0 && p.lot == nil {
			g.lots.tell(p.waiting, reason)
		}
	}
}

// let lets a job's next tasks through. The accounts know at once, the model after the lock is released.
func (g *gates) let(p *passage) {
	job := p.job.WithThrough(p.tasks...)
	g.lots.backlog.rerank(p.waiting, func() { p.job = g.cfg.Policies.Rank(job) })
	g.cfg.Policies.SetJob(job.Key, job)
	g.outbox.letThrough(p.tasks)
	if p.tasks = nil; p.lot == nil {
		g.lots.tell(p.waiting, model.Reason{})
	}
}

// GateKept takes in that the gate of a pod cannot be taken off: its job rests, and its queue keeps nothing for the pod until it is let through
// again.
func (d *Dispatcher) GateKept(task *model.Task, err error) {
	if d.cfg.State.Task(task.UID) == nil {
		return
	}
	d.mu.Lock()
	d.waits.setbacks.failed(task.Job, 0)
	d.waits.setbacks.blame(task.Job, fmt.Errorf("taking off the queue's scheduling gate: %w", err))
	d.mu.Unlock()
	d.cfg.State.HoldBack(task.UID)
	d.wake()
}
