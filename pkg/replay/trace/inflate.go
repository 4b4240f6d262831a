// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"math/rand/v2"
	"slices"
	"time"
)

// Every is how long after one job the next one comes in an inflated trace.
const Every = time.Second

// inflate makes arrivals of a population: each job once in random order, and then more of the same, drawn with replacement, until the next one would ask
// for more than the ratio of the GPUs. Of that one, as it was published, only one GPU counts. A list that asks for more loses random jobs.
func (t *Trace) inflate(o Inflate) {
	random := rand.New(rand.NewPCG(o.Seed, 0)) //nolint:gosec // it is to be the same each time
	population := t.Jobs
	jobs := slices.Clone(population)
	random.Shuffle(len(jobs), func(i, j int) { jobs[i], jobs[j] = jobs[j], jobs[i] })
	want, total := int(o.Ratio*float64(wholeGPU*t.GPUs())), 0
	for _, j := range jobs {
		total += j.milli()
	}
	if total > want {
		for total > want {
			i := random.IntN(len(jobs))
			total -= jobs[i].milli()
			jobs = slices.Delete(jobs, i, i+1)
		}
	} else if total > 0 {
		for {
			next := population[random.IntN(len(population))]
			if total+min(1, next.GPUs)*next.MilliGPU > want {
				break
			}
			jobs = append(jobs, next)
			total += next.milli()
		}
	}
	for i := range jobs {
		jobs[i].ID, jobs[i].Submit, jobs[i].Duration = i, time.Duration(i)*Every, 0
	}
	t.Jobs, t.Usual, t.Once = jobs, population, true
}
