// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"fmt"
	"sync"
	"testing"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/policy"
)

// TestOthersHaveTheLockBetweenSteps: whoever waits for it gets it before the reading is done.
func TestOthersHaveTheLockBetweenSteps(t *testing.T) {
	var mu sync.Mutex
	mu.Lock()
	r := &reading{&mu, few}
	had := make(chan struct{})
	go func() {
		mu.Lock()
		defer mu.Unlock()
		close(had)
	}()
	const enough = 10_000_000
	for range enough {
		r.step()
		select {
		case <-had:
			r.done()
			return
		default:
		}
	}
	t.Errorf("nobody else has had the lock in %d steps", enough)
}

// TestAJobThatIsGoneMeanwhileIsNotRead: what is read is there at that moment, and each job that stays is read once.
func TestAJobThatIsGoneMeanwhileIsNotRead(t *testing.T) {
	s := &waitlist{jobs: map[model.JobKey]*waiting{}}
	keyOf := func(i int) model.JobKey { return model.JobKey{Name: fmt.Sprint(i)} }
	const jobs = 4 * few
	for i := range jobs {
		s.jobs[keyOf(i)] = &waiting{inLine: inLine{job: &policy.Ranked{Job: &model.Job{Key: keyOf(i)}}}}
	}
	var mu sync.Mutex
	mu.Lock()
	r := &reading{&mu, few}
	read := map[model.JobKey]int{}
	r.jobs(s, func(w *waiting) {
		if read[w.job.Key]++; len(read) > 1 {
			return
		}
		// All of an even number leave but this one, and one comes again.
		for i := 0; i < jobs; i += 2 {
			if keyOf(i) != w.job.Key {
				delete(s.jobs, keyOf(i))
			}
		}
		for i := 1; i < jobs; i += 2 {
			if keyOf(i) != w.job.Key {
				again := *s.jobs[keyOf(i)]
				s.jobs[keyOf(i)] = &again
				break
			}
		}
	})
	r.done()
	even := 0
	for key, times := range read {
		if times != 1 {
			t.Errorf("job %s is read %d times", key, times)
		}
		if s.jobs[key] == nil {
			even++
		}
	}
	if want := len(s.jobs) - 1; even != 0 || len(read) != want {
		t.Errorf("%d jobs are read, %d of which are gone; want the %d that have been there all the time", len(read), even, want)
	}
}
