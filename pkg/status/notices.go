// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/utils/clock"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

const (
	// grace is how long pods or a queue may be missing before it is said.
	grace = 3 * time.Second
	// renewAfter is how long objects show the same numbers. By then these are 9 minutes old at most, since they were 5 minutes old at most when they
	// were put there. renewSoon is how long they show numbers that have changed by half since.
	renewAfter, renewSoon = 4 * time.Minute, time.Minute
	// outright is how many times in a row objects say another kind of reason as soon as it is known, outrightAgain after how long they may once more.
	outright, outrightAgain = 5, 15 * time.Second
)

// notices are why jobs wait, and what of that their objects are to say. The methods may be called at any time from anywhere.
type notices struct {
	clock clock.PassiveClock
	mu    sync.Mutex
	byJob map[model.JobKey]*notice
}

// notice is why one job waits.
type notice struct {
	// number is that of the last report.
	number uint64
	// reason is why the job waits now, since is from when on for a reason of this kind.
	reason model.Reason
	since  time.Time
	// shown is what the objects are to say, shownAt is since when. Version counts what they were to say so far.
	shown   model.Reason
	shownAt time.Time
	version int
	// told is the version that all pods have. They have the first when each of them says anything of the kind.
	told int
	// said is what the last event said.
	said model.Reason
	pace *rate.Limiter
}

// showing is what the objects of a job are to say now; zero if it is nothing.
type showing struct {
	// reason is why the job waits, with the numbers of now.
	reason model.Reason
	// shown is what the objects are to say instead: other numbers, or another kind for a few seconds, so that a job that goes to and fro is not
	// written all the time.
	shown   model.Reason
	since   time.Time
	version int
	// strict: pods that say the same in other words are to be written, too.
	strict bool
}

func newNotices(now clock.PassiveClock) *notices {
	return &notices{clock: now, byJob: map[model.JobKey]*notice{}}
}

// report takes in why a job waits; zero if it does not. News: nothing was known of the job, or another kind of reason. Of two reports the one with
// the greater number counts.
func (n *notices) report(key model.JobKey, reason model.Reason, number uint64) (news bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	e, known := n.byJob[key]
	if !known {
		e = &notice{}
		n.byJob[key] = e
	}
	if number <= e.number {
		return false
	}
	e.number = number
	if news = !known || !e.reason.Same(reason); news {
		e.since = n.clock.Now()
	}
	e.reason = reason
	return news
}

// renumber takes in the numbers of now, and returns the jobs of which objects are to be brought up to date.
func (n *notices) renumber(reasons map[model.JobKey]model.Reason) []model.JobKey {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := n.clock.Now()
	var keys []model.JobKey
	for key, e := range n.byJob {
		if reason := reasons[key]; e.reason.Same(reason) {
			e.reason = reason
		}
		if e.stale(now) {
			keys = append(keys, key)
		}
		if e.reason == (model.Reason{}) && now.Sub(e.since) >= renewAfter {
			// It runs, for days maybe. Only the number is still of use.
			*e = notice{number: e.number}
		}
	}
	slices.SortFunc(keys, model.JobKey.Compare)
	return keys
}

// stale reports whether objects show numbers for too long.
func (e *notice) stale(now time.Time) bool {
	if e.shown == (model.Reason{}) || !e.shown.Same(e.reason) {
		return false
	}
	age := now.Sub(e.shownAt)
	return age >= renewAfter || age >= renewSoon && differ(e.shown.Text(), e.reason.Text())
}

// show returns what the objects of a job are to say, and after how long that is to be asked again though nothing happens; zero if it is not.
func (n *notices) show(key model.JobKey) (s showing, again time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	e := n.byJob[key]
	if e == nil || e.reason == (model.Reason{}) {
		return showing{}, 0
	}
	now := n.clock.Now()
	switch e.reason.Kind {
	case model.NotEnoughTasks, model.NotEnoughPodsOfTask, model.QueueNotFound:
		// Whoever creates pods or the queue is given time to.
		if wait := grace - now.Sub(e.since); wait > 0 {
			return showing{}, wait
		}
	}
	if e.pace == nil {
		e.pace = rate.NewLimiter(rate.Every(outrightAgain), outright)
	}
	switch {
	case e.shown.Same(e.reason):
		if e.stale(now) {
			e.put(now)
		}
	case e.pace.AllowN(now, 1):
		e.put(now)
	default:
		again = outrightAgain
	}
	return showing{reason: e.reason, shown: e.shown, since: e.since, version: e.version, strict: e.version != e.told}, again
}

// put has the objects say why the job waits now.
func (e *notice) put(now time.Time) {
	e.shown, e.shownAt = e.reason, now
	if e.version++; e.version == 1 {
		e.told = 1
	}
}

// allTold takes in that all pods of a job say a version.
func (n *notices) allTold(key model.JobKey, version int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if e := n.byJob[key]; e != nil {
		e.told = version
	}
}

// say reports whether an event is to say a reason: the last one said another one. The zero reason is not said.
func (n *notices) say(key model.JobKey, reason model.Reason) (news bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	e := n.byJob[key]
	if e == nil {
		return false
	}
	news = reason != (model.Reason{}) && !e.said.Same(reason)
	e.said = reason
	return news
}

// knows reports whether anything was told of a job.
func (n *notices) knows(key model.JobKey) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.byJob[key] != nil
}

// keys are the jobs of which anything was told.
func (n *notices) keys() []model.JobKey {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Collect(maps.Keys(n.byJob))
}

// forget drops what was told of a job if it is gone. One of the same name that came meanwhile may have been told of already.
func (n *notices) forget(key model.JobKey, gone func() bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if gone() {
		delete(n.byJob, key)
	}
}

// reasons returns why jobs wait.
func (n *notices) reasons() map[model.JobKey]model.Reason {
	n.mu.Lock()
	defer n.mu.Unlock()
	reasons := make(map[model.JobKey]model.Reason, len(n.byJob))
	for key, e := range n.byJob {
		if e.reason != (model.Reason{}) {
			reasons[key] = e.reason
		}
	}
	return reasons
}
