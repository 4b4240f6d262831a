// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package figures

import (
	"time"

	"github.com/caldera-scheduler/caldera/pkg/replay/history"
)

// Fairness is how evenly queues got what they are due. Jain's index is 1 where all queues have the same part of what they are due, and 1/n where one
// of n has all.
type Fairness struct {
	// Mean and Least are of the hours in which at least two queues asked for something, Unfair how many of the Hours were below 0.9.
	Mean   float64 `json:"mean"`
	Least  float64 `json:"least"`
	Unfair int     `json:"unfair"`
	Hours  int     `json:"hours"`
	// Weeks are Jain's indices of whole weeks.
	Weeks []float64 `json:"weeks"`
	// Starved is the longest time for which a queue had less than half of what it was due, StarvedQueue is that queue.
	Starved      float64 `json:"starved"`
	StarvedQueue string  `json:"starvedQueue"`
	// Index is that of each hour; 0 where fewer than two queues asked for something.
	Index []float64 `json:"index"`
}

// unfair is the index below which an hour counts as not fair.
const unfair = 0.9

// week is how many periods a week has.
const week = int(7 * 24 * time.Hour / history.Bucket)

// fairness compares what queues hold with what they are due.
func fairness(h *history.History, from, to time.Duration) Fairness {
	f := Fairness{Weeks: []float64{}, Index: make([]float64, len(h.Hours))}
	starved := make([]int, len(h.Queues))
	sums := make([]history.QueueHour, len(h.Queues))
	seen, total := 0, 0.0
	periods(h, from, to, func(i int, p history.Hour) {
		if index, several := jain(p.Queues); several {
			f.Index[i] = index
			f.Hours++
			total += index
			if f.Hours == 1 || index < f.Least {
				f.Least = index
			}
			if index < unfair {
				f.Unfair++
			}
		}
		for q, part := range p.Queues {
			sums[q].Held += part.Held
			sums[q].Entitled += part.Entitled
			if part.Entitled < someGPU || part.Held >= part.Entitled/2 {
				starved[q] = 0
				continue
			}
			starved[q]++
			if long := (time.Duration(starved[q]) * history.Bucket).Seconds(); long > f.Starved {
				f.Starved, f.StarvedQueue = long, h.Queues[q]
			}
		}
		if seen++; seen%week == 0 {
			index, _ := jain(sums)
			f.Weeks = append(f.Weeks, index)
			clear(sums)
		}
	})
	if f.Hours > 0 {
		f.Mean = total / float64(f.Hours)
	}
	return f
}

// someGPU is how little a queue may be due, in GPUs on average, to be left out.
const someGPU = 0.05

// jain is Jain's index of what queues hold, each as a part of what it is due; several: at least two are due something.
func jain(queues []history.QueueHour) (index float64, several bool) {
	n, sum, squares := 0.0, 0.0, 0.0
	for _, q := range queues {
		if q.Entitled < someGPU {
			continue
		}
		x := q.Held / q.Entitled
		n++
		sum += x
		squares += x * x
	}
	if squares == 0 {
		// Nobody has anything: all have the same part.
		return 1, n > 1
	}
	return sum * sum / (n * squares), n > 1
}
