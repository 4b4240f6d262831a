// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/caldera-scheduler/caldera/pkg/heap"
	"github.com/caldera-scheduler/caldera/pkg/replay/history"
	"github.com/caldera-scheduler/caldera/pkg/replay/trace"
)

// player plays one trace.
type player struct {
	trace    *trace.Trace
	options  Options
	world    world
	recorder *history.Recorder
	ticks    int

	now time.Duration
	// came is how many jobs of the trace have come.
	came int
	// ends are the jobs that run, the next one to be done first.
	ends *heap.Heap[*actor]
	// fresh are the jobs of this tick, where jobs come once.
	fresh []*actor
	// again are jobs that were evicted. They leave at the next tick, and come back.
	again []*actor
}

// actor is a job that has come.
type actor struct {
	attempt
	trace.Job
	// left is how long it still has to run.
	left time.Duration
	// bound is how many of its pods have nodes.
	bound int
	// out: it was evicted and leaves at the next tick.
	out bool
	// ends is when it is done, while it runs.
	ends     time.Duration
	position int
}

// compare is the order of jobs in the trace.
func (a *actor) compare(b *actor) int { return cmp.Compare(a.job, b.job) }

// Position implements heap.Element.
func (a *actor) Position() *int { return &a.position }

func newPlayer(ctx context.Context, t *trace.Trace, o Options) (*player, error) {
	p := &player{trace: t, options: o, ends: heap.New(func(a, b *actor) bool {
		return cmp.Or(cmp.Compare(a.ends, b.ends), cmp.Compare(a.job, b.job)) < 0
	})}
	if o.Rule != nil {
		p.world = newRuled(t, o.Rule, o.Tick)
	} else {
		w, err := newScheduled(ctx, t, o)
		if err != nil {
			return nil, err
		}
		p.world = w
	}
	p.recorder = history.NewRecorder(t, p.world.fragmented)
	return p, nil
}

// patience is how often the scheduler looks at jobs again and starts none when nothing else happens any more, before that is the end.
const patience = 200

// play plays the trace to its end.
func (p *player) play() error {
	for idle := 0; ; idle++ {
		if err := p.tick(); err != nil {
			return err
		}
		next, busy := p.next()
		if busy {
			idle = 0
		} else if p.recorder.Waiting() == 0 || next < 0 || idle > patience {
			return nil
		}
		p.tell()
		p.recorder.Advance(next)
		p.now = next
	}
}

// next is the next tick at which something happens; negative: nothing does any more. Busy: somebody comes, is done, or leaves; else only who decides may do something.
func (p *player) next() (next time.Duration, busy bool) {
	next = -1
	at := func(t time.Duration) {
		if t = (t + p.options.Tick - 1) / p.options.Tick * p.options.Tick; t <= p.now {
			t = p.now + p.options.Tick
		}
		if next < 0 || t < next {
			next = t
		}
	}
	if p.came < len(p.trace.Jobs) {
		at(p.trace.Jobs[p.came].Submit)
	}
	if p.ends.Len() > 0 {
		at(p.ends.Top().ends)
	}
	if len(p.again) > 0 {
		at(p.now)
	}
	busy = next >= 0
	if looks := p.world.next(); looks >= 0 {
		at(looks)
	}
	return next, busy
}

// tick plays one moment.
func (p *player) tick() error {
	p.ticks++
	for _, step := range []func() error{p.finish, p.resubmit, p.submit} {
		if err := step(); err != nil {
			return err
		}
	}
	whole, evicted, err := p.world.decide(p.now)
	for _, a := range evicted {
		if p.trace.Once {
			return fmt.Errorf("job %d was evicted: where jobs come once none leaves, play it by a configuration without preempt and reclaim", a.ID)
		}
		p.evict(a)
	}
	for _, a := range whole {
		p.recorder.Start(a.job, p.world.switches(a))
		if a.ends = p.now + a.left; a.Duration > 0 {
			p.ends.Put(a)
		}
	}
	p.world.promises(p.recorder.Tell)
	return errors.Join(err, p.forget())
}

// finish has the jobs leave that are done.
func (p *player) finish() error {
	for p.ends.Len() > 0 && p.ends.Top().ends <= p.now {
		a := p.ends.Pop()
		p.recorder.End(a.job)
		if err := p.world.leave(a); err != nil {
			return err
		}
	}
	return nil
}

// resubmit has evicted jobs leave, and come back as the youngest.
func (p *player) resubmit() error {
	for _, a := range p.again {
		if err := p.world.leave(a); err != nil {
			return err
		}
		again := &actor{attempt: attempt{a.job, a.number + 1}, Job: a.Job, left: a.left, position: -1}
		if err := p.world.come(again); err != nil {
			return err
		}
	}
	p.again = nil
	return nil
}

// submit has the jobs come whose time it is.
func (p *player) submit() error {
	for ; p.came < len(p.trace.Jobs) && p.trace.Jobs[p.came].Submit <= p.now; p.came++ {
		p.recorder.Come(p.came)
		job := p.trace.Jobs[p.came]
		a := &actor{attempt: attempt{job: p.came}, Job: job, left: job.Duration, position: -1}
		if err := p.world.come(a); err != nil {
			return err
		}
		if p.trace.Once {
			p.fresh = append(p.fresh, a)
		}
	}
	return nil
}

// forget has the jobs of this tick go that have not started, where jobs come once.
func (p *player) forget() error {
	for _, a := range p.fresh {
		if !p.recorder.Arrived(a.job) {
			if err := p.world.leave(a); err != nil {
				return err
			}
		}
	}
	p.fresh = p.fresh[:0]
	return nil
}

// evict notes that a job was evicted. It leaves, and comes back, at the next tick.
func (p *player) evict(a *actor) {
	lost := 0.0
	if since, runs := p.recorder.Runs(a.job); runs {
		ran := p.now - since
		kept := time.Duration(0)
		if p.options.Checkpoint > 0 {
			kept = ran / p.options.Checkpoint * p.options.Checkpoint
		}
		a.left -= kept
		lost = (ran - kept).Seconds() * a.AllGPUs()
	}
	p.recorder.Evict(a.job, lost)
	p.ends.Remove(a)
	p.again = append(p.again, a)
}

// tell tells how far the replay is.
func (p *player) tell() {
	if p.options.Progress == nil {
		return
	}
	waiting := p.recorder.Waiting()
	p.options.Progress(Progress{
		Now: p.now, Last: p.trace.Last(), Jobs: len(p.trace.Jobs), Came: p.came, Waiting: waiting, Done: p.came - waiting - p.ends.Len(),
	})
}
