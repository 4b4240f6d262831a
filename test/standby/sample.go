// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// sample is what the standby holds at a time.
type sample struct {
	// Jobs is how many had come and gone by then.
	Jobs int64 `json:"jobs"`
	// Heap is what is live, after a collection, and Memory the resident set, in bytes.
	Heap       int64 `json:"heap"`
	Memory     int64 `json:"memory"`
	Goroutines int64 `json:"goroutines"`
}

// result is what was seen.
type result struct {
	options
	Samples []sample `json:"samples"`
	// Took is how long the jobs came and went.
	Took time.Duration `json:"took"`
	// Growth is how many bytes of live heap a job leaves behind, by a line through the samples of the second half.
	Growth float64 `json:"growthBytesPerJob"`
	// FirstGoroutines and LastGoroutines are how many there were at most in each half.
	FirstGoroutines int64 `json:"goroutinesFirstHalf"`
	LastGoroutines  int64 `json:"goroutinesSecondHalf"`
	// TakeOver is how long it took until the standby, which had got the lease, had placed a gang.
	TakeOver time.Duration `json:"takeOver"`
}

// poll is how often the number of jobs is looked at.
const poll = 50 * time.Millisecond

// play lets the jobs come and go, looks at the standby meanwhile, and has it take over.
func (s *stage) play(ctx context.Context, progress io.Writer) (*result, error) {
	r := &result{options: s.options}
	begun := time.Now()
	var gone atomic.Int64
	group, all := errgroup.WithContext(ctx)
	group.Go(func() error { return s.churn(all, &gone) })
	group.Go(func() error { return s.look(all, &gone, r, progress) })
	if err := group.Wait(); err != nil {
		return nil, err
	}
	r.Took = time.Since(begun)
	r.fit()
	var err error
	r.TakeOver, err = s.takeOver(ctx)
	return r, err
}

// look takes the samples, evenly spread over the jobs.
func (s *stage) look(ctx context.Context, gone *atomic.Int64, r *result, progress io.Writer) error {
	for i := range s.Samples {
		due := int64(s.Jobs) * int64(i+1) / int64(s.Samples)
		for gone.Load() < due {
			if err := s.ended(); err != nil {
				return err
			}
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(poll):
			}
		}
		one, err := s.sample(ctx)
		if err != nil {
			return err
		}
		one.Jobs = gone.Load()
		r.Samples = append(r.Samples, one)
		if (i+1)%max(1, s.Samples/10) == 0 {
			fmt.Fprintf(progress, "%d of %d jobs: %.1f MB live, %.1f MB resident, %d goroutines\n",
				one.Jobs, s.Jobs, megabytes(one.Heap), megabytes(one.Memory), one.Goroutines)
		}
	}
	return nil
}

func megabytes(bytes int64) float64 { return float64(bytes) / 1e6 }

// sample looks at the standby.
func (s *stage) sample(ctx context.Context) (one sample, err error) {
	heap, err := s.get(ctx, "/debug/pprof/heap?gc=1&debug=1")
	if err != nil {
		return one, err
	}
	if one.Heap, err = number(heap, "# HeapAlloc = "); err != nil {
		return one, err
	}
	goroutines, err := s.get(ctx, "/debug/pprof/goroutine?debug=1")
	if err != nil {
		return one, err
	}
	if one.Goroutines, err = number(goroutines, "goroutine profile: total "); err != nil {
		return one, err
	}
	used, err := s.scheduler.Sample()
	one.Memory = used.Memory
	return one, err
}

// number reads the number that follows a text to the end of its line.
func number(data []byte, after string) (int64, error) {
	_, rest, found := bytes.Cut(data, []byte(after))
	if !found {
		return 0, fmt.Errorf("a profile of the scheduler has no %q", after)
	}
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	n, err := strconv.ParseInt(string(bytes.TrimSpace(line)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("reading a profile of the scheduler after %q: %w", after, err)
	}
	return n, nil
}
