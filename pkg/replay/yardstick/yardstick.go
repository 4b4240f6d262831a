// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package yardstick is rules of thumb that a scheduler is compared with: first come first served, EASY backfill, shortest first. They see GPUs alone,
// put pods where least is left, and evict nobody. Those that look at durations know the true ones, as no scheduler does.
package yardstick

import (
	"cmp"
	"slices"
	"time"
)

// Rule is who starts first, and who may pass.
type Rule struct {
	name string
	// shortest: the shortest job is first, not the oldest one.
	shortest bool
	// backfill: jobs may pass the first one if that starts no later for it (EASY; Lifka, 1995).
	backfill bool
	// reserves: every job has its time and nodes from when it comes (conservative backfilling).
	reserves bool
	// static: each queue has nodes of its own.
	static bool
}

var rules = []Rule{
	{name: "fifo"},
	{name: "fifo-static", static: true},
	{name: "easy", backfill: true},
	{name: "conservative", reserves: true},
	{name: "shortest", shortest: true},
}

// Names are the names of the rules.
func Names() []string {
	names := make([]string, len(rules))
	for i, r := range rules {
		names[i] = r.name
	}
	return names
}

// Named returns the rule of a name, which is one of Names; else nil.
func Named(name string) *Rule {
	for i := range rules {
		if rules[i].name == name {
			return &rules[i]
		}
	}
	return nil
}

// Job is what a rule knows of a job.
type Job struct {
	// ID tells jobs apart. Of two jobs the one with the lower number came first.
	ID int
	// Pool is which nodes it may use, where each queue has its own.
	Pool string
	// Workers is how many pods it has, Each how much of GPUs each of them needs on one node, in thousandths.
	Workers, Each int
	// Duration is how long it runs; 0: for ever.
	Duration time.Duration
}

// pool is nodes that jobs share.
type pool struct {
	// first is the number of the first node; they are in a row.
	first int
	// left is what is left on each, in thousandths of a GPU.
	left []int
	// total is the sum of left.
	total   int
	tick    time.Duration
	waiting []*Job
	running []*run
	// timeline is what will be left, where jobs have their times; else nil.
	timeline *timeline
}

// run is a job on nodes.
type run struct {
	*Job
	ends  time.Duration
	nodes []int
}

// Queue decides who starts by a rule.
type Queue struct {
	rule *Rule
	// tick is how finely time is divided: a job leaves at the tick after its end.
	tick  time.Duration
	pools map[string]*pool
	runs  map[int]*run
}

// everybody is the pool where nodes are not divided.
const everybody = ""

// New returns a queue for nodes with so many GPUs each, in thousandths. Jobs leave at multiples of the tick. Own says how many nodes each pool gets, in
// its order, where the rule gives each queue nodes of its own. What is left is nobody's.
func (r *Rule) New(tick time.Duration, gpus []int, own []Share) *Queue {
	q := &Queue{rule: r, tick: tick, pools: map[string]*pool{}, runs: map[int]*run{}}
	if !r.static {
		q.add(everybody, 0, gpus)
		return q
	}
	first := 0
	for _, share := range own {
		n := min(share.Nodes, len(gpus)-first)
		q.add(share.Pool, first, gpus[first:first+n])
		first += n
	}
	return q
}

// Share is how many nodes a pool gets.
type Share struct {
	Pool  string
	Nodes int
}

func (q *Queue) add(name string, first int, gpus []int) *pool {
	p := &pool{first: first, tick: q.tick, left: slices.Clone(gpus)}
	for _, g := range gpus {
		p.total += g
	}
	if q.rule.reserves {
		p.timeline = newTimeline(gpus)
	}
	q.pools[name] = p
	return p
}

// poolOf returns the nodes of a job. A queue without any has none.
func (q *Queue) poolOf(j *Job) *pool {
	name := everybody
	if q.rule.static {
		name = j.Pool
	}
	if p := q.pools[name]; p != nil {
		return p
	}
	return q.add(name, 0, nil)
}

// Left calls see with each node that jobs may use, and with what is left there, in thousandths of a GPU.
func (q *Queue) Left(see func(node, left int)) {
	for _, p := range q.pools {
		for i, left := range p.left {
			see(p.first+i, left)
		}
	}
}

// Come has a job wait.
func (q *Queue) Come(j *Job) {
	p := q.poolOf(j)
	at, _ := slices.BinarySearchFunc(p.waiting, j, q.rule.compare)
	p.waiting = slices.Insert(p.waiting, at, j)
}

// compare is the order in which jobs start.
func (r *Rule) compare(a, b *Job) int {
	if r.shortest && a.Duration != b.Duration {
		return cmp.Compare(a.Duration, b.Duration)
	}
	return cmp.Compare(a.ID, b.ID)
}

// Leave has a job leave, which runs or waits.
func (q *Queue) Leave(id int) {
	r := q.runs[id]
	if r == nil {
		for _, p := range q.pools {
			p.waiting = slices.DeleteFunc(p.waiting, func(j *Job) bool { return j.ID == id })
			if p.timeline != nil {
				p.timeline.leave(id)
			}
		}
		return
	}
	delete(q.runs, id)
	p := q.poolOf(r.Job)
	p.running = slices.DeleteFunc(p.running, func(other *run) bool { return other == r })
	p.total += give(p.left, r)
}

// Start starts all jobs that may start, and returns their numbers in order.
func (q *Queue) Start(now time.Duration) []int {
	var started []int
	for _, p := range q.pools {
		for _, r := range p.start(now, q.rule) {
			q.runs[r.ID] = r
			started = append(started, r.ID)
		}
	}
	slices.Sort(started)
	return started
}

// start starts the jobs of a pool that may start.
func (p *pool) start(now time.Duration, rule *Rule) []*run {
	if p.timeline != nil {
		return p.startPromised(now)
	}
	var started []*run
	for len(p.waiting) > 0 {
		r := p.begin(p.waiting[0], now)
		if r == nil {
			break
		}
		started = append(started, r)
		p.waiting = p.waiting[1:]
	}
	if rule.backfill && len(p.waiting) > 1 && p.total > 0 {
		started = append(started, p.backfill(now)...)
	}
	return started
}

// startPromised promises times to the jobs that have come, and starts those whose time it is.
func (p *pool) startPromised(now time.Duration) []*run {
	p.timeline.pass(now)
	for _, j := range p.waiting {
		if !p.timeline.told[j.ID] {
			p.timeline.promise(j, now, p.tick)
		}
	}
	var started []*run
	for _, due := range p.timeline.due(now) {
		hold(p.left, due.run)
		p.total -= due.Workers * due.Each
		p.enter(due.run)
		started = append(started, due.run)
		p.waiting = slices.DeleteFunc(p.waiting, func(j *Job) bool { return j.ID == due.ID })
	}
	return started
}

// enter has a job run.
func (p *pool) enter(r *run) {
	at, _ := slices.BinarySearchFunc(p.running, r, func(a, b *run) int { return cmp.Or(cmp.Compare(a.ends, b.ends), cmp.Compare(a.ID, b.ID)) })
	p.running = slices.Insert(p.running, at, r)
}

// begin puts a job on nodes; nil if it does not fit.
func (p *pool) begin(j *Job, now time.Duration) *run {
	if j.Workers*j.Each > p.total {
		return nil
	}
	nodes := take(p.left, j)
	if nodes == nil {
		return nil
	}
	p.total -= j.Workers * j.Each
	r := &run{Job: j, ends: endOf(j, now, p.tick), nodes: nodes}
	p.enter(r)
	return r
}

// backfill starts jobs behind the first one that do not make that one start later.
func (p *pool) backfill(now time.Duration) []*run {
	first, starts, then := p.head()
	var started []*run
	p.waiting = slices.DeleteFunc(p.waiting, func(j *Job) bool {
		if j == first || j.Workers*j.Each > p.total {
			return false
		}
		r := p.try(j, now, func(r *run) bool {
			if first == nil || r.ends <= starts {
				return true
			}
			for _, n := range r.nodes {
				if then[n] < j.Each {
					return false
				}
			}
			hold(then, r)
			if fits(then, first) {
				return true
			}
			give(then, r)
			return false
		})
		if r != nil {
			started = append(started, r)
		}
		return r != nil
	})
	return started
}

// head is the first job that waits and can ever start, when it will if nobody passes it, and what is left then. A job that never fits keeps nobody
// back.
func (p *pool) head() (first *Job, starts time.Duration, then []int) {
	for _, j := range p.waiting {
		then = slices.Clone(p.left)
		found := false
		for _, r := range p.running {
			if found && r.ends > starts {
				return j, starts, then
			}
			// All that end at the same time have ended then.
			give(then, r)
			if !found && fits(then, j) {
				found, starts = true, r.ends
			}
		}
		if found {
			return j, starts, then
		}
	}
	return nil, 0, nil
}

// try begins a job if it may run where it would.
func (p *pool) try(j *Job, now time.Duration, may func(*run) bool) *run {
	r := p.begin(j, now)
	if r == nil || may(r) {
		return r
	}
	p.running = slices.DeleteFunc(p.running, func(other *run) bool { return other == r })
	p.total += give(p.left, r)
	return nil
}

// take takes what a job needs from nodes, each pod where least is left then; nil, and nothing is taken, if it does not fit.
func take(left []int, j *Job) []int {
	nodes := make([]int, 0, j.Workers)
	for range j.Workers {
		best := -1
		for n, l := range left {
			if l >= j.Each && (best < 0 || l < left[best]) {
				best = n
			}
		}
		if best < 0 {
			for _, n := range nodes {
				left[n] += j.Each
			}
			return nil
		}
		left[best] -= j.Each
		nodes = append(nodes, best)
	}
	return nodes
}

// fits reports whether a job fits.
func fits(left []int, j *Job) bool {
	if j.Each == 0 {
		return true
	}
	pods := 0
	for _, l := range left {
		if l > 0 {
			pods += l / j.Each
		}
	}
	return pods >= j.Workers
}

// hold takes what a run holds, and give gives it back. Give returns how much that is.
func hold(left []int, r *run) {
	for _, n := range r.nodes {
		left[n] -= r.Each
	}
}

func give(left []int, r *run) int {
	for _, n := range r.nodes {
		left[n] += r.Each
	}
	return len(r.nodes) * r.Each
}
