// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package history takes down what happens in a replay: when jobs come, start, are evicted and end, and what queues hold meanwhile, by the hour.
// It does not matter who decides: the scheduler, or a rule that it is compared with.
package history

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/caldera-scheduler/caldera/pkg/replay/trace"
)

// Bucket is the length of a period of History.Hours.
const Bucket = time.Hour

// History is what happened.
type History struct {
	// Jobs are the outcomes of the trace's jobs, in their order.
	Jobs []Outcome
	// Hours are periods of Bucket from the beginning on.
	Hours []Hour
	// Queues are the names of the queues of Hour.Queues, GPUs how many the nodes have.
	Queues []string
	GPUs   int
	// Window is what was so on average while jobs count: from the end of the first tenth of the time until the last job comes, and until then.
	Window Mean
	// Arrivals are what was so after each job that came, where jobs come once.
	Arrivals []Arrival
	// End is when the last event was.
	End time.Duration
}

// Mean is what was so on average in some time. Amounts are GPUs.
type Mean struct {
	// Held is what jobs hold that are whole, Stranded what nobody holds while a job waits that asks for no more than that in sum, Fragmented what the
	// average pod of the trace could not use of what nobody holds (FGD, USENIX ATC 2023).
	Held       float64 `json:"held"`
	Stranded   float64 `json:"stranded"`
	Fragmented float64 `json:"fragmented"`
}

// add adds what is so in a part of the time.
func (m *Mean) add(part float64, now Mean) {
	m.Held += part * now.Held
	m.Stranded += part * now.Stranded
	m.Fragmented += part * now.Fragmented
}

// Arrival is what was so after a job had come and had started, or was gone. Amounts are GPUs.
type Arrival struct {
	// Asked is what all jobs so far have asked for, Held what they got, Fragmented what the average pod could not use of the rest.
	Asked, Held, Fragmented float64
}

// Outcome is what became of a job. Times are from the beginning of the replay; negative: never.
type Outcome struct {
	Submit time.Duration
	// Start is when the job was whole for the first time, End when it was done.
	Start time.Duration
	End   time.Duration
	// Switches is how many switches next to the nodes its pods were below in its last run; 0: not known.
	Switches int
	// Evictions is how often it was evicted; Lost are the GPU seconds of work that it had to do again.
	Evictions int
	Lost      float64
	// Told is what the job was first told of when it starts.
	Told Told
}

// Told is when a job was told something, and by when it starts by that. Bound: by then at the latest, else it is expected to. The zero value: it was told nothing.
type Told struct {
	At, By time.Duration
	Bound  bool
}

// Missed reports whether a job that was told by when it starts starts later, or never does.
func (o Outcome) Missed() bool { return o.Told != Told{} && (!o.Started() || o.Start > o.Told.By) }

// never is the time of what did not happen.
const never = time.Duration(-1)

// Started and Ended report whether a job ever was whole, and done.
func (o Outcome) Started() bool { return o.Start >= 0 }

// Ended reports whether a job is done.
func (o Outcome) Ended() bool { return o.End >= 0 }

// Hour is what happened in a period. Amounts are GPUs on average.
type Hour struct {
	Mean
	// Waiting is what jobs ask for that are not whole.
	Waiting float64 `json:"waiting"`
	// Jobs is the largest number of jobs that waited at a time.
	Jobs int `json:"jobs"`
	// Evictions counts jobs that were evicted.
	Evictions int         `json:"evictions"`
	Queues    []QueueHour `json:"queues"`
}

// QueueHour is what a queue had in a period: GPUs on average.
type QueueHour struct {
	Held float64 `json:"held"`
	// Entitled is the queue's part when the GPUs are divided by what queues are due, among those that ask for some: no queue gets more than it asks
	// for, and what one leaves the others divide.
	Entitled float64 `json:"entitled"`
}

// Recorder writes a history. Times never go back.
type Recorder struct {
	trace   *trace.Trace
	history *History
	queues  []queue
	// index are the queues by name.
	index map[string]int
	// sizes counts the jobs that wait by the GPUs they ask for, in thousandths.
	sizes sizes
	// jobs are what is known of each job.
	jobs []progress

	now time.Duration
	// asked is what all jobs so far have asked for.
	asked         float64
	held, waiting float64
	waits         int
	// entitled are the parts of queues as of now; stale: they are to be divided anew.
	stale bool
	// fragmented measures what the average pod could not use; nil: nobody does.
	fragmented func() float64
}

// queue is the present of a queue.
type queue struct {
	weight, held, waiting, entitled float64
}

// progress is how far a job is.
type progress struct {
	stage stage
	// since is when its present run began.
	since time.Duration
}

type stage uint8

const (
	absent stage = iota
	waits
	runs
	done
)

// DefaultQueue is where jobs are that name no queue.
const DefaultQueue = "default"

// NewRecorder begins a history. Fragmented measures, in GPUs, what the average pod could not use of what nobody holds; nil: it is not measured.
func NewRecorder(t *trace.Trace, fragmented func() float64) *Recorder {
	r := &Recorder{
		trace: t, index: map[string]int{}, jobs: make([]progress, len(t.Jobs)), fragmented: fragmented,
		history: &History{Jobs: make([]Outcome, len(t.Jobs)), GPUs: t.GPUs()},
	}
	for i, j := range t.Jobs {
		r.history.Jobs[i] = Outcome{Submit: j.Submit, Start: never, End: never}
	}
	for _, q := range t.Queues {
		r.add(q.Name, max(1, float64(q.Nodes)))
	}
	return r
}

// add enters a queue.
func (r *Recorder) add(name string, weight float64) int {
	i := len(r.queues)
	r.index[name] = i
	r.queues = append(r.queues, queue{weight: weight})
	r.history.Queues = append(r.history.Queues, name)
	return i
}

// queueOf returns the queue of a job.
func (r *Recorder) queueOf(job int) *queue {
	name := r.trace.Jobs[job].Queue
	if name == "" {
		name = DefaultQueue
	}
	i, ok := r.index[name]
	if !ok {
		i = r.add(name, 1)
	}
	return &r.queues[i]
}

// Come notes that a job is submitted. It waits until it starts.
func (r *Recorder) Come(job int) {
	r.jobs[job].stage = waits
	r.asked += r.trace.Jobs[job].AllGPUs()
	r.wait(job, 1)
}

// Arrived notes that a job that comes once has started or is gone. One that waits is gone.
func (r *Recorder) Arrived(job int) (started bool) {
	if started = r.jobs[job].stage != waits; !started {
		r.wait(job, -1)
		r.jobs[job].stage = done
	}
	a := Arrival{Asked: r.asked, Held: r.held}
	if r.fragmented != nil {
		a.Fragmented = r.fragmented()
	}
	r.history.Arrivals = append(r.history.Arrivals, a)
	return started
}

// Start notes that a job is whole, and how many switches its pods are below; 0: not known.
func (r *Recorder) Start(job, switches int) {
	r.wait(job, -1)
	r.jobs[job] = progress{stage: runs, since: r.now}
	o := &r.history.Jobs[job]
	if o.Switches = switches; !o.Started() {
		o.Start = r.now
	}
	r.hold(job, 1)
}

// Tell notes by when a job that waits was told to start. What it was told before counts.
func (r *Recorder) Tell(job int, by time.Duration, bound bool) {
	if o := &r.history.Jobs[job]; o.Told == (Told{}) && !o.Started() {
		o.Told = Told{At: r.now, By: by, Bound: bound}
	}
}

// Evict notes that a job lost its pods and waits again. Lost are the GPU seconds of work that it has to do again; a job that was not whole yet loses
// none.
func (r *Recorder) Evict(job int, lost float64) {
	o := &r.history.Jobs[job]
	o.Evictions++
	o.Lost += lost
	r.hour(r.now).Evictions++
	if r.jobs[job].stage == runs {
		r.hold(job, -1)
		r.jobs[job].stage = waits
		r.wait(job, 1)
	}
}

// End notes that a job is done.
func (r *Recorder) End(job int) {
	r.hold(job, -1)
	r.jobs[job].stage = done
	r.history.Jobs[job].End = r.now
}

// Runs reports whether a job is whole, and since when.
func (r *Recorder) Runs(job int) (since time.Duration, whole bool) {
	p := r.jobs[job]
	return p.since, p.stage == runs
}

// Waiting is how many jobs wait.
func (r *Recorder) Waiting() int { return r.waits }

// hold has a job hold its GPUs, or not any more.
func (r *Recorder) hold(job int, sign float64) {
	gpus := sign * r.trace.Jobs[job].AllGPUs()
	r.held += gpus
	r.queueOf(job).held += gpus
	r.stale = true
}

// wait has a job wait, or not any more.
func (r *Recorder) wait(job, sign int) {
	gpus := r.trace.Jobs[job].AllGPUs()
	r.waiting += float64(sign) * gpus
	r.queueOf(job).waiting += float64(sign) * gpus
	r.waits += sign
	if gpus > 0 {
		r.sizes.count(int(math.Round(1000*gpus)), sign)
	}
	r.stale = true
}

// Advance lets time pass: all is as it is until then.
func (r *Recorder) Advance(to time.Duration) {
	if r.stale {
		r.entitle()
	}
	if r.now < to {
		present := r.present()
		from, last := r.window()
		if counts := min(to, last) - max(r.now, from); counts > 0 {
			r.history.Window.add(float64(counts)/float64(last-from), present)
		}
		r.spread(to, present)
	}
	r.history.End = r.now
}

// window is the time in which things count.
func (r *Recorder) window() (from, last time.Duration) {
	last = r.trace.Last()
	return last / 10, last
}

// present is what is so now.
func (r *Recorder) present() Mean {
	m := Mean{Held: r.held}
	if free, least := float64(r.history.GPUs)-r.held, r.sizes.least(); least > 0 && float64(least) <= 1000*free+0.5 {
		m.Stranded = free
	}
	if r.fragmented != nil {
		m.Fragmented = r.fragmented()
	}
	return m
}

// spread has what is so now be so until a time.
func (r *Recorder) spread(to time.Duration, present Mean) {
	for r.now < to {
		end := min(to, (r.now/Bucket+1)*Bucket)
		part := float64(end-r.now) / float64(Bucket)
		h := r.hour(r.now)
		h.add(part, present)
		h.Waiting += part * r.waiting
		h.Jobs = max(h.Jobs, r.waits)
		for i, q := range r.queues {
			h.Queues[i].Held += part * q.held
			h.Queues[i].Entitled += part * q.entitled
		}
		r.now = end
	}
}

// hour returns the period of a time.
func (r *Recorder) hour(at time.Duration) *Hour {
	for int(at/Bucket) >= len(r.history.Hours) {
		r.history.Hours = append(r.history.Hours, Hour{})
	}
	h := &r.history.Hours[at/Bucket]
	if missing := len(r.queues) - len(h.Queues); missing > 0 {
		h.Queues = append(h.Queues, make([]QueueHour, missing)...)
	}
	return h
}

// entitle divides the GPUs among the queues.
func (r *Recorder) entitle() {
	r.stale = false
	demands, weights := make([]float64, len(r.queues)), make([]float64, len(r.queues))
	for i, q := range r.queues {
		demands[i], weights[i] = q.held+q.waiting, q.weight
	}
	for i, part := range Divide(float64(r.history.GPUs), demands, weights) {
		r.queues[i].entitled = part
	}
}

// Done returns the history. The recorder is not to be used any more.
func (r *Recorder) Done() *History {
	for i := range r.history.Hours {
		h := &r.history.Hours[i]
		h.Queues = append(h.Queues, make([]QueueHour, len(r.queues)-len(h.Queues))...)
	}
	return r.history
}

// Divide divides an amount by weights, which are above 0: nobody gets more than it demands, and what one leaves the others divide.
func Divide(amount float64, demands, weights []float64) []float64 {
	parts := make([]float64, len(demands))
	var open []int
	sum := 0.0
	for i, d := range demands {
		if d > 0 {
			open = append(open, i)
			sum += weights[i]
		}
	}
	// Who wants least for its weight is satisfied first.
	slices.SortStableFunc(open, func(a, b int) int { return cmp.Compare(demands[a]*weights[b], demands[b]*weights[a]) })
	for _, i := range open {
		parts[i] = min(demands[i], amount*weights[i]/sum)
		sum -= weights[i]
		amount -= parts[i]
	}
	return parts
}
