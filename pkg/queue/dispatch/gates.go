// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"fmt"
	"slices"

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
	// ahead are the jobs that are to start next in queues whose jobs start one after the other, while those that may be let through are found.
	ahead map[string]*waiting
}

// peerGroup is jobs for which the limits of a queue have one answer.
type peerGroup struct {
	passages map[model.JobKey]*passage
	// reason is why they were last refused; zero when they were not. Fresh: some have come or changed since.
	reason model.Reason
	fresh  bool
}

type peersKey struct {
	queue, ask string
	// alone is set for a job that holds what does not count for it.
	alone model.JobKey
}

// passage is what a job asks to be let through together; nobody once it has been let through and the model is yet to be told.
type passage struct {
	*waiting
	tasks []*model.Task
	// ask is what they ask for together.
	ask resource.Vector
}

func newGates(cfg *Config, outbox *outbox, lots *lots) gates {
	g := gates{cfg: cfg, outbox: outbox, lots: lots}
	g.reset()
	return g
}

// reset drops all that is known.
func (g *gates) reset() {
	g.peers, g.at, g.fresh, g.loosened = map[peersKey]*peerGroup{}, map[model.JobKey]peersKey{}, true, 0
}

// apply puts a job that was let into its queue among those at the gate. The job may be nil.
func (g *gates) apply(w *waiting, job *model.Job) {
	if job == nil || !job.AtQueueGate() {
		return
	}
	p := &passage{waiting: w, tasks: job.NextThroughGate()}
	for _, t := range p.tasks {
		p.ask.Add(t.Request)
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
	g.fresh, g.loosened, g.ahead = false, book.Loosened(), map[string]*waiting{}
	// Who lets somebody through has less room for others: only those that may be let through now are looked at again.
	var may []peersKey
	for key, c := range g.peers {
		if g.check(key, c) {
			may = append(may, key)
		}
	}
	for len(may) > 0 {
		first, at := (*passage)(nil), 0
		for i, key := range may {
			if p := g.peers[key].first(g.cfg); first == nil || compareJobs(g.cfg.Policies, p.waiting, first.waiting) < 0 {
				first, at = p, i
			}
		}
		key := may[at]
		c := g.peers[key]
		if !g.check(key, c) {
			may = slices.Delete(may, at, at+1)
			continue
		}
		g.let(first)
		if c.any() == nil {
			may = slices.Delete(may, at, at+1)
		}
	}
}

// check reports whether the first of a group may be let through. If not, all of it are told why.
func (g *gates) check(key peersKey, c *peerGroup) bool {
	if c.any() == nil {
		return false
	}
	reason := g.refuses(c)
	if reason == (model.Reason{}) && g.lots.limits.strict(key.queue) {
		reason = g.notFirst(key.queue, c.first(g.cfg))
	}
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

// first is the job of a group of peers that is to be let through before the others; nil when all are through.
func (c *peerGroup) first(cfg *Config) *passage {
	var first *passage
	for _, p := range c.passages {
		if len(p.tasks) > 0 && (first == nil || compareJobs(cfg.Policies, p.waiting, first.waiting) < 0) {
			first = p
		}
	}
	return first
}

// refuses says why a queue does not let the jobs of a group through. What their own tasks claim counts, too: it is kept for those.
func (g *gates) refuses(c *peerGroup) model.Reason {
	p := c.any()
	if p.ask.BestEffort() {
		return model.Reason{}
	}
	job, policies := p.job.Job, g.cfg.Policies
	q, own := g.lots.limits.queueOf(job), job.OwnHalf()
	if reason := policies.Overused(q, own); reason != (model.Reason{}) {
		return reason
	}
	if c.reason.Kind == model.QueueFull && !policies.Allows(q, own, p.ask, false) {
		return c.reason
	}
	return policies.Refuses(q, own, p.ask, false)
}

// notFirst says who comes before a job of a queue whose jobs start one after the other; the zero Reason if nobody does.
func (g *gates) notFirst(queue string, p *passage) model.Reason {
	ahead, known := g.ahead[queue]
	if !known {
		ahead = g.firstOf(queue)
		g.ahead[queue] = ahead
	}
	if ahead == nil || compareJobs(g.cfg.Policies, p.waiting, ahead) <= 0 {
		return model.Reason{}
	}
	return comesFirst(queue, ahead)
}

// firstOf is the job of a queue that is to start next, of those before the gate and of those that may have turns; nil when there is none.
func (g *gates) firstOf(queue string) *waiting {
	first := g.lots.first(queue)
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
	c.reason, c.fresh = reason, false
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
	d.mu.Lock()
	d.waits.setbacks.failed(task.Job, 0)
	d.waits.setbacks.explain(task.Job, fmt.Errorf("taking off the queue's scheduling gate: %w", err))
	d.mu.Unlock()
	d.cfg.State.HoldBack(task.UID)
	d.wake()
}
