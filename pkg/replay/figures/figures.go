// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package figures makes numbers of a history: how long jobs waited, how full the cluster was, how fair. docs/replay.md defines each of them. Times
// are in seconds.
package figures

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/caldera-scheduler/caldera/pkg/replay/history"
	"github.com/caldera-scheduler/caldera/pkg/replay/trace"
)

// Figures are the numbers of a replay. Jobs that come in the first tenth of the time until the last one comes are played and not counted.
type Figures struct {
	// Jobs are those that count, Unstarted those of them that were never whole.
	Jobs      int `json:"jobs"`
	Unstarted int `json:"unstarted"`
	// Makespan is from the first submission to the last end.
	Makespan float64 `json:"makespan"`
	// Load is the GPU time that is asked for, as a part of what there is until the last job comes. Utilisation, Stranded and Fragmented are parts of the
	// GPUs: those that are held; those that nobody holds while a job waits that asks for no more in sum; and what the average pod could not use. They
	// are means from when jobs count until the last job comes.
	Load        float64 `json:"load"`
	Utilisation float64 `json:"utilisation"`
	Stranded    float64 `json:"stranded"`
	Fragmented  float64 `json:"fragmented"`
	// Wait is from submission to start, Delay all of a job's time but the one it runs.
	Wait  Distribution `json:"wait"`
	Delay Distribution `json:"delay"`
	// Slowdown is a job's time by the one that it runs, or 10 s if that is less; 1 or more.
	Slowdown Distribution `json:"slowdown"`
	Classes  []Class      `json:"classes"`
	Fairness Fairness     `json:"fairness"`
	Evicted  Evicted      `json:"evicted"`
	Overtook Overtaking   `json:"overtaking"`
	Promises Promises     `json:"promises"`
	// Switches is how many switches next to the nodes a gang's pods are below; 0 where that is not known.
	Switches Distribution `json:"switches"`
	// Arrived is what was allocated by how much was asked for, where jobs come once.
	Arrived []Arrived `json:"arrived,omitempty"`
}

// Arrived is what was so while jobs had asked for a part of the GPUs, in whole percent: the mean over those that came then. Parts are of all GPUs.
type Arrived struct {
	Percent int `json:"percent"`
	// Allocated is what jobs hold, Fragmented what the average pod could not use of the rest.
	Allocated  float64 `json:"allocated"`
	Fragmented float64 `json:"fragmented"`
}

// Class is jobs of a kind.
type Class struct {
	Name     string       `json:"name"`
	Jobs     int          `json:"jobs"`
	Wait     Distribution `json:"wait"`
	Slowdown Distribution `json:"slowdown"`
}

// Evicted is what evictions did, to all jobs.
type Evicted struct {
	// Evictions counts them, Jobs those that they hit, Twice those that they hit more than once.
	Evictions int `json:"evictions"`
	Jobs      int `json:"jobs"`
	Twice     int `json:"twice"`
	// PerHour is how many there were in an hour, until the last job came.
	PerHour float64 `json:"perHour"`
	// LostGPUHours is work that was done again.
	LostGPUHours float64 `json:"lostGPUHours"`
}

// Promises is what jobs were first told of by when they start: a bound, or an estimate.
type Promises struct {
	Bounds    Promised `json:"bounds"`
	Estimates Promised `json:"estimates"`
}

// Promised are jobs that were told by when they start.
type Promised struct {
	// Jobs counts them, Missed those that started later, or never.
	Jobs   int `json:"jobs"`
	Missed int `json:"missed"`
	// Ahead is how long before they were told; Late by how much those that started started later, 0 for those that did not.
	Ahead Distribution `json:"ahead"`
	Late  Distribution `json:"late"`
}

// Overtaking is jobs that started later than one that came after them, of the same queue and size.
type Overtaking struct {
	Jobs int `json:"jobs"`
	// Mean and Most are by how much they started later.
	Mean float64 `json:"mean"`
	Most float64 `json:"most"`
}

// shortest is what a run counts at least in a slowdown.
const shortest = 10 * time.Second

// Of computes the figures of a history.
func Of(t *trace.Trace, h *history.History) Figures {
	last := t.Last()
	from := last / 10
	f := Figures{Load: t.Load(), Overtook: overtaking(t, h, from), Fairness: fairness(h, from, last), Evicted: evicted(h, last), Promises: promises(t, h, from)}
	all := newTally("all")
	tallies := classes()
	var delays, switches []float64
	for i, j := range t.Jobs {
		o := h.Jobs[i]
		if o.Ended() {
			f.Makespan = max(f.Makespan, (o.End - t.Jobs[0].Submit).Seconds())
		}
		if j.Submit < from {
			continue
		}
		f.Jobs++
		if !o.Started() {
			f.Unstarted++
			continue
		}
		all.add(j, o)
		if j.Workers > 1 && o.Switches > 0 {
			switches = append(switches, float64(o.Switches))
		}
		if o.Ended() {
			delays = append(delays, max(0, (o.End-j.Submit-j.Duration).Seconds()))
		}
		for _, c := range tallies {
			if c.has(j) {
				c.add(j, o)
			}
		}
	}
	f.Wait, f.Slowdown, f.Delay = distribution(all.waits), distribution(all.slowdowns), distribution(delays)
	for _, c := range tallies {
		if len(c.waits) > 0 {
			f.Classes = append(f.Classes, Class{Name: c.name, Jobs: len(c.waits), Wait: distribution(c.waits), Slowdown: distribution(c.slowdowns)})
		}
	}
	f.Switches = distribution(switches)
	if gpus := float64(h.GPUs); gpus > 0 {
		f.Utilisation, f.Stranded, f.Fragmented = h.Window.Held/gpus, h.Window.Stranded/gpus, h.Window.Fragmented/gpus
	}
	f.Arrived = arrived(h)
	return f
}

// Mean is the mean of what was allocated in several replays, at each percent that all of them have.
func Mean(replays [][]Arrived) []Arrived {
	var all []Arrived
	for _, first := range replays[0] {
		sum := Arrived{Percent: first.Percent}
		found := 0
		for _, r := range replays {
			if i := slices.IndexFunc(r, func(a Arrived) bool { return a.Percent == first.Percent }); i >= 0 {
				sum.Allocated += r[i].Allocated
				sum.Fragmented += r[i].Fragmented
				found++
			}
		}
		if found == len(replays) {
			sum.Allocated /= float64(found)
			sum.Fragmented /= float64(found)
			all = append(all, sum)
		}
	}
	return all
}

// arrived are the means of arrivals, by percent.
func arrived(h *history.History) []Arrived {
	var all []Arrived
	jobs := 0.0
	for _, a := range h.Arrivals {
		gpus := float64(h.GPUs)
		percent := int(math.RoundToEven(100 * a.Asked / gpus))
		if len(all) == 0 || all[len(all)-1].Percent != percent {
			all = append(all, Arrived{Percent: percent})
			jobs = 0
		}
		// The mean moves by a part of the difference.
		at := &all[len(all)-1]
		jobs++
		at.Allocated += (a.Held/gpus - at.Allocated) / jobs
		at.Fragmented += (a.Fragmented/gpus - at.Fragmented) / jobs
	}
	return all
}

// tally collects the jobs of a class.
type tally struct {
	name             string
	has              func(trace.Job) bool
	waits, slowdowns []float64
}

func newTally(name string) *tally { return &tally{name: name} }

func (c *tally) add(j trace.Job, o history.Outcome) {
	c.waits = append(c.waits, (o.Start - j.Submit).Seconds())
	if o.Ended() {
		c.slowdowns = append(c.slowdowns, max(1, (o.End-j.Submit).Seconds()/max(j.Duration, shortest).Seconds()))
	}
}

// classes are those by GPUs, and gangs against single pods.
func classes() []*tally {
	between := func(name string, least, most float64) *tally {
		return &tally{name: name, has: func(j trace.Job) bool { return j.AllGPUs() >= least && j.AllGPUs() <= most }}
	}
	const unbounded = 1e9
	return []*tally{
		between("no GPU", 0, 0), between("part of a GPU", 0.001, 0.999), between("1 GPU", 1, 1), between("2 to 4 GPUs", 1.001, 4), between("5 to 8 GPUs", 4.001, 8),
		between("9 to 32 GPUs", 8.001, 32), between("33 to 128 GPUs", 32.001, 128), between("more GPUs", 128.001, unbounded),
		{name: "single pods", has: func(j trace.Job) bool { return j.Workers == 1 }},
		{name: "gangs", has: func(j trace.Job) bool { return j.Workers > 1 }},
	}
}

// periods calls see with the periods that are not over at one time and begin before another, and with the first one.
func periods(h *history.History, from, to time.Duration, see func(int, history.Hour)) {
	for i, p := range h.Hours {
		at := time.Duration(i) * history.Bucket
		if at+history.Bucket > from && at < max(to, 1) {
			see(i, p)
		}
	}
}

// evicted counts evictions.
func evicted(h *history.History, last time.Duration) Evicted {
	var e Evicted
	until := 0
	for _, o := range h.Jobs {
		e.Evictions += o.Evictions
		e.LostGPUHours += o.Lost / time.Hour.Seconds()
		if o.Evictions > 0 {
			e.Jobs++
		}
		if o.Evictions > 1 {
			e.Twice++
		}
	}
	periods(h, 0, last, func(_ int, p history.Hour) { until += p.Evictions })
	if hours := last.Hours(); hours > 0 {
		e.PerHour = float64(until) / hours
	}
	return e
}

// promises compares what jobs were told with what came of it.
func promises(t *trace.Trace, h *history.History, from time.Duration) Promises {
	of := func(bound bool) (p Promised) {
		var ahead, late []float64
		for i, o := range h.Jobs {
			if o.Told == (history.Told{}) || o.Told.Bound != bound || t.Jobs[i].Submit < from {
				continue
			}
			p.Jobs++
			if o.Missed() {
				p.Missed++
			}
			ahead = append(ahead, (o.Told.By - o.Told.At).Seconds())
			if o.Started() {
				late = append(late, max(0, (o.Start-o.Told.By).Seconds()))
			}
		}
		p.Ahead, p.Late = distribution(ahead), distribution(late)
		return p
	}
	return Promises{Bounds: of(true), Estimates: of(false)}
}

// overtaking finds jobs that started later than one of the same queue and size that came after them.
func overtaking(t *trace.Trace, h *history.History, from time.Duration) Overtaking {
	type kind struct {
		queue, models        string
		workers, gpus, milli int
		milliCPU, memory     int64
	}
	var o Overtaking
	// first is the earliest start of those that came later, walking back.
	first := map[kind]time.Duration{}
	sum := time.Duration(0)
	for i, j := range slices.Backward(t.Jobs) {
		outcome := h.Jobs[i]
		if !outcome.Started() {
			continue
		}
		k := kind{j.Queue, strings.Join(j.Models, "|"), j.Workers, j.GPUs, j.MilliGPU, j.MilliCPU, j.MemoryMiB}
		earliest, later := first[k]
		if later && earliest < outcome.Start && j.Submit >= from {
			by := outcome.Start - earliest
			o.Jobs++
			sum += by
			o.Most = max(o.Most, by.Seconds())
		}
		if !later || outcome.Start < earliest {
			first[k] = outcome.Start
		}
	}
	if o.Jobs > 0 {
		o.Mean = sum.Seconds() / float64(o.Jobs)
	}
	return o
}
