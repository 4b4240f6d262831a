// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"maps"
	"runtime"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/queue/account"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// View is what others can see of a dispatcher. It changes nothing that anybody decides by.
type View struct{ d *Dispatcher }

// View returns what others can see.
func (d *Dispatcher) View() View { return View{d} }

// few is how many steps a reader goes with the lock held. Each is to look at a job, or to compare two.
const few = 256

// reading holds the dispatcher's lock for who reads a lot, and lets others have it after every few steps: turns are not to wait until 100,000 jobs have
// been read. What was seen before a step may be gone after it.
type reading struct {
	mu   *sync.Mutex
	left int
}

// read begins a reading. Who begins it ends it by done.
func (d *Dispatcher) read() *reading {
	d.mu.Lock()
	return &reading{&d.mu, few}
}

func (r *reading) done() { r.mu.Unlock() }

// step goes a step.
func (r *reading) step() {
	if r.left--; r.left > 0 {
		return
	}
	r.left = few
	r.mu.Unlock()
	// Who waits for the lock has been woken, and gets it if this goroutine is not there first.
	runtime.Gosched()
	r.mu.Lock()
}

// jobs calls look for each job that waits. One that comes meanwhile may be left out.
func (r *reading) jobs(s *waitlist, look func(*waiting)) {
	for _, w := range slices.AppendSeq(make([]*waiting, 0, len(s.jobs)), maps.Values(s.jobs)) {
		r.step()
		if s.jobs[w.job.Key] == w {
			look(w)
		}
	}
}

// Reasons returns why jobs wait, as last reported.
func (v View) Reasons() map[model.JobKey]model.Reason {
	v.d.mu.Lock()
	defer v.d.mu.Unlock()
	reasons := map[model.JobKey]model.Reason{}
	for key, w := range v.d.waits.jobs {
		if w.reported != (model.Reason{}) {
			reasons[key] = w.reported
		}
	}
	return reasons
}

// QueueFigures is the account of a queue, for those who show it.
type QueueFigures struct {
	Name   string
	Parent string
	// Spec is the queue's object; nil for a queue that does not exist but is named by jobs.
	Spec *model.Queue
	// Usage is that of the queue's own jobs; of the whole subtree where the tree is looked at. Total is always that of
	// the subtree, Groups are the PodGroups of the queue itself.
	Usage, Total account.Usage
	Groups       account.Groups
	// Deserved is what the queue is due, Real what it may hold at most; both are empty where nothing divides the cluster.
	Deserved resource.Portion
	Real     resource.Limit
	// Capability is the queue's own bound.
	Capability resource.Limit
	// Overused: the queue holds more than its due.
	Overused bool
	// Share is the dominant part of its due that the queue holds.
	Share float64
	// Recent is what the queue has held on average. Forgotten: a scheduler that starts now would be wrong about it. Both are zero where it does
	// not count.
	Recent    model.Recent
	Forgotten bool
	// Fault says why the queue is left out of scheduling; zero when it is not.
	Fault model.Reason
	// BelowDue is for how many seconds jobs of the queue itself have waited that it could hold without holding more than it is due.
	BelowDue float64
}

// Shares returns the dominant shares of the cluster that jobs hold.
func (v View) Shares() map[model.JobKey]float64 {
	whole := v.d.cfg.State.Totals().Allocatable.Portion()
	shares := map[model.JobKey]float64{}
	for job := range v.d.cfg.State.Jobs {
		shares[job.Key] = job.Usage.Allocated.Dominant(whole)
	}
	return shares
}

// account has the accounts be as of all that happened. It works before Run, too. It is called with the lock held.
func (v View) account() {
	if !v.d.running {
		v.d.waits.changeAll()
	}
	for key, job := range v.d.waits.bookIn() {
		switch {
		case v.d.running:
			// What was booked in remains to be taken in.
			v.d.waits.changed[key] = true
		case job != nil:
			v.d.waits.booked[key] = true
		}
	}
	if !v.d.running {
		clear(v.d.waits.changed)
		v.d.waits.events = 0
	}
}

// Figures returns the accounts of all queues by name, as of all that happened, or a little later. It works before Run, too.
func (v View) Figures() []QueueFigures {
	reading := v.d.read()
	defer reading.done()
	policies := v.d.cfg.Policies
	v.account()
	book := policies.Book()
	v.d.dues.forget(book)
	queues := make([]QueueFigures, 0, len(book.Queues()))
	for _, q := range slices.Clone(book.Queues()) {
		if reading.step(); book.Queue(q.Name) != q {
			continue
		}
		figures := QueueFigures{
			Name: q.Name, Spec: q.Spec, Usage: book.UsageOf(q).Clone(), Total: q.Total.Clone(), Groups: q.Own.Groups,
			Deserved: slices.Clone(q.Deserved), Real: q.Real.Clone(), Capability: q.Capability.Clone(),
			Overused: policies.Overused(q, nil) != (model.Reason{}), Share: q.Share, Fault: q.Fault, BelowDue: v.d.dues.of(q.Name),
		}
		if object := v.d.cfg.State.Queue(q.Name); object != nil {
			figures.Recent, figures.Forgotten = book.Recent(q, object.Recent)
		}
		if q.Parent != nil {
			figures.Parent = q.Parent.Name
		}
		queues = append(queues, figures)
	}
	return queues
}

// Waiting is a job that waits, for those who show or count them.
type Waiting struct {
	Job   model.JobKey
	Queue string
	// Tasks is the number of tasks that have no node, Refused how many turns found no room for them.
	Tasks, Refused int
	// Reason is why it waits, with the numbers of when that was last found out; zero if nobody has looked yet.
	Reason model.Reason
}

// Waiting returns the jobs that wait.
func (v View) Waiting() []Waiting {
	reading := v.d.read()
	defer reading.done()
	list := make([]Waiting, 0, len(v.d.waits.jobs))
	reading.jobs(v.d.waits, func(w *waiting) { list = append(list, w.view()) })
	return list
}

func (w *waiting) view() Waiting {
	return Waiting{
		Job: w.job.Key, Queue: w.job.Queue, Tasks: w.job.Counts.ByStatus[model.Pending], Refused: w.refused, Reason: w.reason(),
	}
}

// Usable returns the part of the cluster that jobs can use, and what they hold of the rest. It is never to be changed.
func (v View) Usable() resource.Vector {
	usable, _ := v.d.cfg.State.Usable()
	return usable
}

// Slots returns how many more pods of each size would find room for each extended resource: see model.State.
func (v View) Slots(sizes ...int64) map[corev1.ResourceName][]int64 {
	return v.d.cfg.State.Slots(sizes...)
}

// BrokenTotals returns what broken gangs came to so far.
func (v View) BrokenTotals() BrokenTotals {
	v.d.mu.Lock()
	defer v.d.mu.Unlock()
	return v.d.waits.broken.sum()
}

// Broken counts the gangs that are broken.
func (v View) Broken() map[Break]int {
	v.d.mu.Lock()
	defer v.d.mu.Unlock()
	count := map[Break]int{Half: 0, Lost: 0}
	for _, b := range v.d.waits.broken.gangs {
		if !b.since.IsZero() {
			count[b.how]++
		}
	}
	return count
}

// Phase is how far the turn has come that is on.
func (v View) Phase() TurnPhase {
	v.d.mu.Lock()
	defer v.d.mu.Unlock()
	return v.d.turn.phase()
}
