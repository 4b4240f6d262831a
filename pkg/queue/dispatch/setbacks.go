// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"fmt"
	"hash/fnv"
	"time"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// The times for which jobs rest.
const (
	// firstBackoff and lastBackoff bound how long a job rests after an attempt that ended in an error; it doubles.
	firstBackoff = 100 * time.Millisecond
	lastBackoff  = 10 * time.Second
	// chargedPart is how many times as long as a failed attempt took its job rests at least: such attempts take a twentieth of the time.
	chargedPart = 19
	// firstRest and lastRest bound how long a gang rests that was released more than once; it doubles.
	firstRest = time.Minute
	lastRest  = 30 * time.Minute
)

// setback says how a job failed. It is kept until one of the job's pods is bound, also while none of them waits.
type setback struct {
	// failures counts attempts in a row that ended in an error; notBefore is when the next may begin.
	failures  int
	notBefore time.Time
	// why is the error of the last bind that failed; zero if none did.
	why model.Reason
}

// setbacks are those of all jobs that failed. All methods are called with the dispatcher's lock held.
type setbacks struct {
	cfg   *Config
	byJob map[model.JobKey]setback
	// changed is told of each change of a job's.
	changed func(model.JobKey, setback)
}

func newSetbacks(cfg *Config, changed func(model.JobKey, setback)) setbacks {
	return setbacks{cfg: cfg, byJob: map[model.JobKey]setback{}, changed: changed}
}

func (s setbacks) put(key model.JobKey, now setback) {
	s.byJob[key] = now
	s.changed(key, now)
}

// failed lets a job rest for a while after an attempt that failed for no reason of capacity, and longer the more time the attempt took.
// The first failure that took none is followed by another attempt at once. From then on the job has its turns within the allowance,
// until a pod of it is bound.
func (s setbacks) failed(key model.JobKey, cost time.Duration) {
	of := s.byJob[key]
	rest := chargedPart * cost
	if of.failures > 0 {
		rest = max(rest, backoff(key, of.failures))
	}
	if rest > 0 {
		of.notBefore = s.cfg.Clock.Now().Add(rest)
	}
	of.failures++
	s.put(key, of)
}

// explain keeps the error of a bind, so that the PodGroup of a job that failed tells it. Pods without a PodGroup are told by the
// scheduler itself.
func (s setbacks) explain(key model.JobKey, err error) {
	if job := s.cfg.State.Summary(key); job != nil && job.Group != nil {
		s.blame(key, err)
	}
}

// blame keeps an error that nobody else tells.
func (s setbacks) blame(key model.JobKey, err error) {
	of, failed := s.byJob[key]
	if !failed {
		return
	}
	of.why = model.Reason{Kind: model.SchedulerError, Message: err.Error()}
	s.put(key, of)
}

// released lets a job rest that was released more than once.
func (s setbacks) released(key model.JobKey, times int) {
	if times < 2 {
		return
	}
	of := s.byJob[key]
	of.notBefore = s.cfg.Clock.Now().Add(min(lastRest, firstRest<<min(times-2, 10)))
	s.put(key, of)
}

// bound forgets what failed before, and with that that the job rests.
func (s setbacks) bound(key model.JobKey) (forgot bool) {
	if _, ok := s.byJob[key]; !ok {
		return false
	}
	delete(s.byJob, key)
	s.changed(key, setback{})
	return true
}

// drop forgets a job that is gone.
func (s setbacks) drop(key model.JobKey) { delete(s.byJob, key) }

// backoff is how long a job rests after so many failures before: it doubles up to a bound. Of that it takes from half to all, by the job's
// name: jobs that failed together, because they write the same object for instance, are not tried together again.
func backoff(key model.JobKey, failures int) time.Duration {
	full := min(lastBackoff, firstBackoff<<min(failures-1, 10))
	h := fnv.New32a()
	_, _ = fmt.Fprint(h, key, failures)
	return full/2 + time.Duration(h.Sum32()%1000)*(full/2)/1000
}
