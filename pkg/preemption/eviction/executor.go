// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package eviction

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/caldera-scheduler/caldera/pkg/requests"
	"github.com/caldera-scheduler/caldera/pkg/status"
)

const (
	// retries is how often a request that the API server did not answer is repeated.
	retries = 5
	// firstRetry is the wait before the first repetition; each further one takes twice as long.
	firstRetry = 200 * time.Millisecond
)

// Config is what an Executor is made of.
type Config struct {
	Ledger *Ledger
	// Client is through which the API server is asked.
	Client kubernetes.Interface
	// Writer shows evictions on the objects they concern.
	Writer *status.Writer
	// Clock is the time by which failed requests are repeated and victims get their deadlines.
	Clock clock.WithDelayedExecution
	// Concurrency is how many requests are in flight at a time; at least 1.
	Concurrency int
	// VictimTimeout is how long beyond its grace period a victim is waited for.
	VictimTimeout time.Duration
	// Leads reports whether anybody may be evicted now. While nobody may, requests count as not answered; nil: always.
	Leads func() bool
	// Stays is told of victims that are not evicted after all: each that is refused, and with it those that nobody will be
	// asked about any more because of that. It is told before Refused is; nil: nobody is.
	Stays func(victims []*Victim)
	// Refused is told of a refusal that ends an open decision, when the Ledger knows of it and the rest is spared; nil:
	// nobody is. The decision is as it is then. Refusals of what a decision had on its way besides are not told: the job
	// may have been planned anew by then. The function may execute other decisions.
	Refused func(d *Decision, v *Victim, err error)
}

// Executor performs decisions through the Eviction API. Of each decision the victims that disruption budgets cover are
// asked for first, and the others when the API server has agreed to all of those.
type Executor struct {
	c Config
	// timers are the requests that wait to be repeated.
	timers sync.WaitGroup

	// mu guards everything below; it is never held while calling out.
	mu sync.Mutex
	// changed is signalled when a request is ready, or the context has ended.
	changed *sync.Cond
	ready   []request
	// busy is how many requests are made, or are about to be.
	busy int
	// due are the times at which requests are repeated.
	due []time.Time
}

// run is a decision that is being performed.
type run struct {
	decision *Decision
	// later are the victims that are asked for when the first ones are done.
	later []*Victim
	// left is how many requests have no final answer yet.
	left int
	// evicted counts the evicted pods of each queue.
	evicted map[string]int
}

// request is one victim's eviction.
type request struct {
	*run
	victim *Victim
	// repeated is how often it was tried before.
	repeated int
}

// NewExecutor returns an executor, which does nothing before Run.
func NewExecutor(c Config) *Executor {
	x := &Executor{c: c}
	x.changed = sync.NewCond(&x.mu)
	return x
}

// Execute performs a decision that the Ledger has entered. It returns at once. The pods of its victims must be known.
func (x *Executor) Execute(d *Decision) {
	r := &run{decision: d, evicted: map[string]int{}}
	var first []*Victim
	for _, v := range d.Victims {
		if v.Budgeted {
			first = append(first, v)
		} else {
			r.later = append(r.later, v)
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(first) == 0 {
		first, r.later = r.later, nil
	}
	x.ask(r, first)
}

// ask makes the requests for victims ready. It is called with the lock held.
func (x *Executor) ask(r *run, victims []*Victim) {
	r.left = len(victims)
	for _, v := range victims {
		x.ready = append(x.ready, request{run: r, victim: v})
	}
	x.changed.Broadcast()
}

// Quiet reports whether nothing happens before a time; the zero time when nothing is left to do at all.
func (x *Executor) Quiet() (quiet bool, next time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.due) > 0 {
		next = slices.MinFunc(x.due, time.Time.Compare)
	}
	return len(x.ready) == 0 && x.busy == 0, next
}

// Idle reports whether nothing is left to do.
func (x *Executor) Idle() bool {
	quiet, next := x.Quiet()
	return quiet && next.IsZero()
}

// Run performs decisions until the context ends. What it leaves is not taken up again.
func (x *Executor) Run(ctx context.Context) {
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithName("eviction"))
	wake := context.AfterFunc(ctx, func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.changed.Broadcast()
	})
	defer wake()
	limiter := requests.NewLimiter(x.c.Concurrency, x.c.Clock, requests.Told{})
	for {
		r, ok := x.next(ctx)
		if !ok {
			break
		}
		limiter.Go(r.victim.Pod.Namespace, func() {
			x.perform(ctx, r)
			x.mu.Lock()
			defer x.mu.Unlock()
			x.busy--
		})
	}
	limiter.Wait()
	x.timers.Wait()
}

// next waits for the next request; false when the context has ended.
func (x *Executor) next(ctx context.Context) (r request, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for len(x.ready) == 0 && ctx.Err() == nil {
		x.changed.Wait()
	}
	if ctx.Err() != nil {
		return request{}, false
	}
	r = x.ready[0]
	x.ready = slices.Delete(x.ready, 0, 1)
	x.busy++
	return r, true
}

// repeat performs a request again after a while, which is no shorter than the given delay.
func (x *Executor) repeat(ctx context.Context, r request, delay time.Duration) {
	wait := max(firstRetry<<r.repeated, delay)
	r.repeated++
	due := x.c.Clock.Now().Add(wait)
	timer := x.c.Clock.NewTimer(wait)
	x.mu.Lock()
	x.due = append(x.due, due)
	x.mu.Unlock()
	x.timers.Go(func() {
		defer timer.Stop()
		select {
		case <-ctx.Done():
			return
		case <-timer.C():
		}
		x.mu.Lock()
		defer x.mu.Unlock()
		i := slices.Index(x.due, due)
		x.due = slices.Delete(x.due, i, i+1)
		x.ready = append(x.ready, r)
		x.changed.Broadcast()
	})
}

// finish takes note of a final answer. When it was the last one, the other victims are asked for, or, if there are none,
// what the decision did is told.
func (x *Executor) finish(r *run, queue string, evicted bool) {
	x.mu.Lock()
	if evicted {
		r.evicted[queue]++
	}
	r.left--
	done := r.left == 0 && len(r.later) == 0
	if r.left == 0 && !done {
		var later []*Victim
		later, r.later = r.later, nil
		x.ask(r, later)
	}
	x.mu.Unlock()
	if done {
		x.c.Writer.Evicting(status.Taking{Action: r.decision.Action, For: r.decision.Beneficiary, Queue: r.decision.Queue}, r.evicted)
	}
}
