// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package yardstick

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// never is after all times.
const never = time.Duration(math.MaxInt64)

// timeline is what will be left on nodes, for conservative backfilling (Mu'alem, Feitelson, 2001): every job is promised a time and nodes when it comes,
// as early as all promises before it allow. As durations are the true ones no promise ever changes.
type timeline struct {
	// steps are in order of time; what is left stays so until the next one. The last one is for ever.
	steps []step
	// promised are the jobs that wait, by when they start.
	promised []*promise
	// told are the numbers of jobs that have been promised something, or can never start.
	told map[int]bool
}

// step is what is left on nodes from a time on.
type step struct {
	from time.Duration
	left []int
	// total is the sum of left.
	total int
}

// promise is when and where a job starts.
type promise struct {
	*run
	starts time.Duration
}

func newTimeline(left []int) *timeline {
	total := 0
	for _, l := range left {
		total += l
	}
	return &timeline{steps: []step{{0, slices.Clone(left), total}}, told: map[int]bool{}}
}

// pass forgets what was before now.
func (t *timeline) pass(now time.Duration) {
	for len(t.steps) > 1 && t.steps[1].from <= now {
		t.steps = t.steps[1:]
	}
	t.steps[0].from = max(t.steps[0].from, now)
}

// promise promises a job the earliest time at which it fits, from now on; nothing if it never does.
func (t *timeline) promise(j *Job, now, tick time.Duration) {
	t.told[j.ID] = true
	for i := 0; i < len(t.steps); i++ {
		starts := max(now, t.steps[i].from)
		ends := endOf(j, starts, tick)
		if full := t.full(i, ends, j.Workers*j.Each); full >= 0 {
			i = full
			continue
		}
		nodes := take(t.least(i, ends), j)
		if nodes == nil {
			continue
		}
		p := &promise{run: &run{Job: j, ends: ends, nodes: nodes}, starts: starts}
		t.change(p, -1)
		at, _ := slices.BinarySearchFunc(t.promised, p, func(a, b *promise) int {
			return cmp.Or(cmp.Compare(a.starts, b.starts), cmp.Compare(a.ID, b.ID))
		})
		t.promised = slices.Insert(t.promised, at, p)
		return
	}
}

// endOf is when a job leaves that starts at a time. One without a duration never does.
func endOf(j *Job, starts, tick time.Duration) time.Duration {
	if j.Duration == 0 {
		return never
	}
	return (starts + j.Duration + tick - 1) / tick * tick
}

// full is the last step from one on and before a time in which less is left in sum than so much; negative: none.
func (t *timeline) full(i int, before time.Duration, need int) int {
	full := -1
	for ; i < len(t.steps) && t.steps[i].from < before; i++ {
		if t.steps[i].total < need {
			full = i
		}
	}
	return full
}

// least is the least that is left on each node from a step on and before a time.
func (t *timeline) least(i int, before time.Duration) []int {
	least := slices.Clone(t.steps[i].left)
	for _, s := range t.steps[i+1:] {
		if s.from >= before {
			break
		}
		for n, left := range s.left {
			least[n] = min(least[n], left)
		}
	}
	return least
}

// change takes what is promised from what will be left, by -1, or gives it back, by 1.
func (t *timeline) change(p *promise, sign int) {
	for i := t.at(p.starts); i < len(t.steps) && t.steps[i].from < p.ends; i++ {
		if i+1 == len(t.steps) || t.steps[i+1].from > p.ends {
			t.split(i, p.ends)
		}
		for _, n := range p.nodes {
			t.steps[i].left[n] += sign * p.Each
		}
		t.steps[i].total += sign * len(p.nodes) * p.Each
	}
}

// at is the step that begins at a time; there is one from then on.
func (t *timeline) at(from time.Duration) int {
	i, found := slices.BinarySearchFunc(t.steps, from, func(s step, at time.Duration) int { return cmp.Compare(s.from, at) })
	if !found {
		t.split(i-1, from)
	}
	return i
}

// split has a step end at a time, and another one begin.
func (t *timeline) split(i int, at time.Duration) {
	if at != never && t.steps[i].from < at {
		t.steps = slices.Insert(t.steps, i+1, step{at, slices.Clone(t.steps[i].left), t.steps[i].total})
	}
}

// due takes out the jobs that start by now.
func (t *timeline) due(now time.Duration) []*promise {
	n := 0
	for n < len(t.promised) && t.promised[n].starts <= now {
		n++
	}
	due := slices.Clone(t.promised[:n])
	t.promised = slices.Delete(t.promised, 0, n)
	for _, p := range due {
		delete(t.told, p.ID)
	}
	return due
}

// leave takes a job out that waits.
func (t *timeline) leave(id int) {
	delete(t.told, id)
	if i := slices.IndexFunc(t.promised, func(p *promise) bool { return p.ID == id }); i >= 0 {
		t.change(t.promised[i], 1)
		t.promised = slices.Delete(t.promised, i, i+1)
	}
}
