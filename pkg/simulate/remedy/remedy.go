// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package remedy finds out what would have a job start that waits. It changes one thing of the cluster at a time and has the scheduler plan again, with
// its own plugins and everything else that waits, in memory. What it says was seen: with the change the job starts, and with a little less it does not.
package remedy

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/plugins"
	"github.com/caldera-scheduler/caldera/pkg/simulate"
	"github.com/caldera-scheduler/caldera/pkg/simulate/change"
	"github.com/caldera-scheduler/caldera/pkg/simulate/scenario"
)

// Kind is what would be changed.
type Kind string

// The kinds of remedies, in the order in which they are looked for and told.
const (
	// OfNodes: nodes are added, or opened for the job.
	OfNodes Kind = "nodes"
	// OfQueue: the queue, or one above it, is opened or may hold more.
	OfQueue Kind = "queue"
	// OfJobs: another job ends.
	OfJobs Kind = "jobs"
	// OfItself: the job asks for something else.
	OfItself Kind = "itself"
)

// Remedy is a change after which the job starts.
type Remedy struct {
	Kind Kind
	// Text says what is changed, as part of a sentence.
	Text string
	// Changes are that, after those of First. With Less instead, which is one step less of the same, the job still waits; Less is empty where that is
	// nothing at all.
	First, Changes, Less []change.Change
}

// Result is what was found out about a job.
type Result struct {
	// Starts: the job starts without any change.
	Starts bool
	// Reason is why it waits without any.
	Reason model.Reason
	// Remedies are what would have it start, at most Options.Most.
	Remedies []Remedy
	// Impossible says why no number of nodes like those that there are would help; empty where some would, or where that is not known.
	Impossible string
	// Trials is how often the scheduler planned. Cut: time was up before everything was tried.
	Trials int
	Cut    bool
}

// Options say how remedies are looked for.
type Options struct {
	// Config is the scheduler's configuration with defaults.
	Config *schedulerconfig.KubeSchedulerConfiguration
	// Extensions are the plugins and policies that the scheduler has besides its own.
	Extensions plugins.Extensions
	// Now is the time in the cluster.
	Now time.Time
	// Budget is for how long new trials are begun, from when the scheduler has planned without any change; 0: DefaultBudget. What that takes grows with
	// the cluster, and nothing can be found out before.
	Budget time.Duration
	// Most is how many remedies are looked for; 0: DefaultMost.
	Most int
}

// The defaults of Options.
const (
	DefaultBudget = 4 * time.Second
	DefaultMost   = 5
)

// Find looks for remedies of the job for which is returns true. The objects are those of scenario.Complete, and are not changed.
func Find(ctx context.Context, objects []scenario.Object, is func(model.JobKey) bool, o Options) (*Result, error) {
	if o.Budget == 0 {
		o.Budget = DefaultBudget
	}
	if o.Most == 0 {
		o.Most = DefaultMost
	}
	s := &search{waiter: waiter{objects: objects, now: o.Now}, options: o, life: ctx, result: &Result{}}
	s.trials = simulate.NewTrials(ctx, simulate.Options{Config: o.Config, Extensions: o.Extensions, Now: o.Now})
	defer s.trials.Stop()
	if err := s.look(is); err != nil || s.result.Starts {
		return s.result, err
	}
	var stop context.CancelFunc
	s.time, stop = context.WithTimeout(ctx, o.Budget)
	defer stop()
	return s.result, s.find()
}

// find looks for single changes that help. Where there is none, it looks for one more after those without which nothing can help: first what the job
// lacks whatever else is changed, then pods that fit on some node.
func (s *search) find() error {
	if err := s.after(step{}); err != nil {
		return err
	}
	impossible := s.result.Impossible
	for _, needed := range []func() step{s.needed, s.fitting} {
		if len(s.result.Remedies) > 0 || s.result.Cut {
			break
		}
		if first := needed(); len(first.changes) > 0 {
			if err := s.after(first); err != nil {
				return err
			}
		}
		impossible = cmp.Or(impossible, s.result.Impossible)
	}
	s.result.Impossible = impossible
	return nil
}

// after looks for changes that help after others, which come first.
func (s *search) after(first step) error {
	if len(first.changes) > 0 {
		objects, err := change.Apply(s.objects, first.changes...)
		if err != nil {
			return err
		}
		s.first = s.first.then(first.parts())
		sight, err := s.trials.Rest(objects)
		if err != nil {
			return err
		}
		s.result.Trials++
		if s.started(sight.Job(s.job.Key)) {
			s.result.Remedies = append(s.result.Remedies, Remedy{Kind: first.kind, Text: s.first.text, Changes: s.first.changes})
			return nil
		}
		s.see(sight, s.job.Key)
	}
	if err := s.each(); err != nil || len(s.result.Remedies) > 0 || !s.limited() {
		return err
	}
	s.limits = true
	err := s.each()
	s.limits = false
	return err
}

// each looks for remedies of each kind.
func (s *search) each() error {
	for _, find := range []func() error{s.nodes, s.inQueues, s.others, s.itself} {
		if err := find(); err != nil {
			return err
		}
	}
	return nil
}

// search is a search for remedies.
type search struct {
	waiter

	options Options
	// life is that of the whole search, time is over when no new trial is to begin.
	life, time context.Context
	// rest is the cluster at rest without any change.
	rest   []scenario.Object
	trials *simulate.Trials
	result *Result
	// first is what was changed before, so that the objects are those after it.
	first step
	// limits: those of the queues are changed, too, by as little as will do.
	limits bool
}

// step is some changes, and what they are in words.
type step struct {
	kind    Kind
	text    string
	changes []change.Change
}

func (b step) parts() (string, []change.Change) { return b.text, b.changes }

// then is a step and what follows it.
func (b step) then(text string, changes []change.Change) step {
	if len(changes) == 0 {
		return b
	}
	if len(b.changes) > 0 {
		text = b.text + ", and " + text
	}
	return step{b.kind, text, slices.Concat(b.changes, changes)}
}

// look has the scheduler plan without any change.
func (s *search) look(is func(model.JobKey) bool) error {
	sight, err := s.trials.Rest(s.objects)
	if err != nil {
		return err
	}
	s.result.Trials++
	for key := range sight.Jobs() {
		if is(key) {
			s.see(sight, key)
			s.rest = s.objects
		}
	}
	if s.job == nil {
		return errors.New("there is no such job")
	}
	s.result.Reason = sight.Reason(s.job.Key)
	s.result.Starts = s.result.Reason == (model.Reason{}) && s.job.Whole()
	return nil
}

// see notes how things are at rest.
func (s *search) see(sight *simulate.Sight, job model.JobKey) {
	// Who explains what would be goes by how things are when nothing more happens.
	s.objects, s.all = sight.Objects(), sight.Jobs()
	s.job, s.chain = s.all[job], chain(sight.Queues(), s.all[job].Queue)
}

// helps reports whether the job starts after some changes that are made at once.
func (s *search) helps(changes []change.Change) (bool, error) {
	objects, err := change.Apply(s.objects, changes...)
	if err != nil {
		return false, err
	}
	s.result.Trials++
	started := func(sight *simulate.Sight) bool { return s.started(sight.Job(s.job.Key)) }
	sight, err := s.trials.Play(objects, started)
	return err == nil && started(sight), err
}

// helpsAsItHappens reports whether the job starts after some changes, both at once and as they happen: others may use first what there is before all of
// it has happened.
func (s *search) helpsAsItHappens(changes []change.Change) (bool, error) {
	ok, err := s.helps(changes)
	if err != nil || !ok || !s.apart(changes) {
		return ok, err
	}
	return s.stepwise(changes)
}

// apart reports whether changes do not happen at once.
func (s *search) apart(changes []change.Change) bool {
	return len(change.Steps(s.objects, change.Together(changes))) > 1
}

// proved reports whether a scheduler of its own, which lives through all changes one after the other, comes to the same: the job starts after the last
// of them, and not after one step less. Trials begin with jobs that nobody has refused yet; after several changes that may make a difference.
func (s *search) proved(done, less step) (bool, error) {
	if !s.limits && len(s.first.changes) == 0 {
		return true, nil
	}
	for _, p := range []struct {
		changes []change.Change
		starts  bool
	}{{done.changes, true}, {less.changes, false}} {
		o := simulate.Options{Config: s.options.Config, Extensions: s.options.Extensions, Now: s.now}
		for _, changes := range [][]change.Change{s.first.changes, p.changes} {
			if len(changes) > 0 {
				o.Changes = append(o.Changes, change.Together(changes))
			}
		}
		s.result.Trials++
		result, err := simulate.Run(s.life, s.rest, o)
		if err != nil {
			return false, err
		}
		if i := slices.IndexFunc(result.Jobs, s.isIt); i < 0 || s.hasStarted(&result.Jobs[i]) != p.starts {
			return false, nil
		}
	}
	return true, nil
}

func (s *search) isIt(j simulate.Job) bool {
	return j.Namespace == s.job.Key.Namespace && j.Name == s.job.Key.Name
}

func (s *search) hasStarted(j *simulate.Job) bool {
	if s.job.Whole() {
		return j.Placed > s.job.Placed()
	}
	return j.Started
}

// stepwise reports whether the job starts after changes that do not happen at once.
func (s *search) stepwise(changes []change.Change) (bool, error) {
	s.result.Trials++
	sight, err := s.trials.PlaySteps(change.Together(changes), nil)
	if err != nil {
		return false, err
	}
	return s.started(sight.Job(s.job.Key)), nil
}

// started reports whether a job has started that has not without changes; one that had its minimum has got more pods.
func (s *search) started(job *model.Job) bool {
	if job == nil {
		return false
	}
	if s.job.Whole() {
		return job.Placed() > s.job.Placed()
	}
	return job.Whole()
}

// enough reports whether there is no time for another trial, or there are remedies enough.
func (s *search) enough() bool {
	if s.time.Err() != nil {
		s.result.Cut = true
	}
	return s.result.Cut || len(s.result.Remedies) >= s.options.Most
}

// measure is a change of any size.
type measure struct {
	kind Kind
	// most is the largest size, 1 or more; guess is what is tried first, 0 for the smallest.
	most, guess int
	// of is the change of a size from 1, and what it is in words.
	of func(size int) (text string, changes []change.Change)
}

// try looks for the smallest size with which a measure helps, and notes it. It reports whether there is one.
func (s *search) try(m measure) (found bool, err error) {
	done, less, err := s.asItHappens(m)
	if err != nil || len(done.changes) == 0 {
		return false, err
	}
	if s.apart(less.changes) {
		// One after the other, things may come out differently. What depends on that is not told.
		if ok, err := s.stepwise(less.changes); err != nil || ok {
			return false, err
		}
	}
	if ok, err := s.proved(done, less); err != nil || !ok {
		return false, err
	}
	text, _ := s.first.then(done.parts()).parts()
	s.result.Remedies = append(s.result.Remedies, Remedy{Kind: m.kind, Text: text, First: s.first.changes, Changes: done.changes, Less: less.changes})
	return true, nil
}

// asItHappens is the boundary of a measure whose parts may happen one after the other. To have them happen so takes several times as long as to have
// them happen at once, and most often comes to the same: it is done at the boundary first.
func (s *search) asItHappens(m measure) (done, less step, err error) {
	done, less, err = s.boundary(m, s.helps)
	if err != nil || len(done.changes) == 0 || !s.apart(done.changes) {
		return done, less, err
	}
	if ok, err := s.stepwise(done.changes); err != nil || ok {
		return done, less, err
	}
	if m.most == 1 && !s.limits {
		return step{}, step{}, nil
	}
	return s.boundary(m, s.helpsAsItHappens)
}

// boundary is the least of a measure that helps, and one step less; both are empty if nothing of it does.
func (s *search) boundary(m measure, starts judge) (done, less step, err error) {
	if !s.limits {
		size, err := s.smallest(step{}, m, starts)
		if err != nil || size == 0 {
			return step{}, step{}, err
		}
		if size > 1 {
			less = less.then(m.of(size - 1))
		}
		return step{}.then(m.of(size)), less, nil
	}
	size, err := s.smallest(step{}.then(s.larger(s.widest())), m, starts)
	if err != nil || size == 0 {
		return step{}, step{}, err
	}
	with := step{}.then(m.of(size))
	wide, err := s.smallest(with, measure{most: s.widest(), guess: s.least(), of: s.larger}, starts)
	if err != nil || wide == 0 {
		return step{}, step{}, err
	}
	less = with
	if wide > 1 {
		less = with.then(s.larger(wide - 1))
	}
	return with.then(s.larger(wide)), less, nil
}

// judge reports whether the job starts after some changes.
type judge func(changes []change.Change) (bool, error)

// smallest is the smallest size with which a measure helps after a step; 0 if none does, or there is no time to find out.
func (s *search) smallest(base step, m measure, starts judge) (int, error) {
	// fails is the largest size of which it is known that it does not help, helps the smallest that does.
	fails, helps := 0, 0
	size := max(1, min(m.guess, m.most))
	for {
		if s.enough() {
			return 0, nil
		}
		ok, err := starts(base.then(m.of(size)).changes)
		if err != nil {
			return 0, err
		}
		if ok {
			helps = size
		} else {
			fails = size
		}
		switch {
		case helps == fails+1:
			return helps, nil
		case helps > 0 && helps == m.guess:
			// Most often the guess is right.
			size = helps - 1
		case helps > 0:
			size = (fails + helps) / 2
		case fails == m.most:
			return 0, nil
		default:
			size = min(fails*2, m.most)
		}
	}
}

// once is a measure that has one size only.
func once(s step) measure {
	return measure{kind: s.kind, most: 1, of: func(int) (string, []change.Change) { return s.text, s.changes }}
}
