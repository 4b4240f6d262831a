// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"fmt"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// TestJobsThatFailedTogetherRestApart: they may have got in each other's way.
func TestJobsThatFailedTogetherRestApart(t *testing.T) {
	t.Parallel()
	for failures := 1; failures < 30; failures++ {
		full := min(10*time.Second, 100*time.Millisecond<<min(failures-1, 10))
		rests := map[time.Duration]bool{}
		for i := range 200 {
			rest := backoff(model.JobKey{Namespace: "ns", Name: fmt.Sprintf("job-%d", i)}, failures)
			if rest < full/2 || rest > full {
				t.Errorf("a rest of %s after %d failures, want from %s to %s", rest, failures, full/2, full)
			}
			rests[rest] = true
		}
		if len(rests) < 100 {
			t.Errorf("%d different rests of 200 jobs after %d failures, want 100", len(rests), failures)
		}
	}
}

// TestHowLongAJobRests: by what failed how often, and what it took.
func TestHowLongAJobRests(t *testing.T) {
	job := model.JobKey{Source: model.FromVolcano, Namespace: "ns", Name: "job"}
	failed := func(times int, cost time.Duration) func(setbacks) {
		return func(s setbacks) {
			for range times {
				s.failed(job, cost)
			}
		}
	}
	released := func(times int) func(setbacks) { return func(s setbacks) { s.released(job, times) } }
	for name, c := range map[string]struct {
		what        func(setbacks)
		least, most time.Duration
	}{
		"one failure that took no time":    {failed(1, 0), 0, 0},
		"one that did":                     {failed(1, time.Second), 19 * time.Second, 19 * time.Second},
		"two":                              {failed(2, 0), 50 * time.Millisecond, 100 * time.Millisecond},
		"four":                             {failed(4, 0), 200 * time.Millisecond, 400 * time.Millisecond},
		"four that took time":              {failed(4, 100*time.Millisecond), 1900 * time.Millisecond, 1900 * time.Millisecond},
		"a hundred":                        {failed(100, 0), 5 * time.Second, 10 * time.Second},
		"released once":                    {released(1), 0, 0},
		"twice":                            {released(2), time.Minute, time.Minute},
		"five times":                       {released(5), 8 * time.Minute, 8 * time.Minute},
		"a hundred times":                  {released(100), 30 * time.Minute, 30 * time.Minute},
		"failed, and a pod is bound since": {func(s setbacks) { failed(9, 0)(s); s.bound(job) }, 0, 0},
	} {
		clock := clocktesting.NewFakeClock(time.Unix(1000, 0))
		told := setback{}
		s := newSetbacks(&Config{Clock: clock}, func(_ model.JobKey, now setback) { told = now })
		c.what(s)
		rest := time.Duration(0)
		if !told.notBefore.IsZero() {
			rest = told.notBefore.Sub(clock.Now())
		}
		if rest < c.least || rest > c.most || s.byJob[job] != told {
			t.Errorf("%s: it rests for %v, want %v to %v; kept is %+v, told %+v", name, rest, c.least, c.most, s.byJob[job], told)
		}
	}
}
