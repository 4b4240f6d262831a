// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"context"
	"fmt"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/queue/dispatch"
	"github.com/caldera-scheduler/caldera/pkg/simulate/change"
	"github.com/caldera-scheduler/caldera/pkg/simulate/memory"
	"github.com/caldera-scheduler/caldera/pkg/simulate/scenario"
)

// Trials are simulations of much the same objects, one after the other, by one scheduler: each sees what is different from the one before. That takes
// a fraction of the time that a scheduler takes to begin with all objects. Once a simulation has evicted pods, the next begins anew.
type Trials struct {
	life    context.Context
	options Options
	// rests are the objects with which it came to rest, one after the other.
	rests  [][]scenario.Object
	c      *cluster
	series *memory.Series
}

// NewTrials returns trials. Of the options only the configuration, the extensions, the time and the patience count. Stop is to be called in the end.
func NewTrials(ctx context.Context, o Options) *Trials {
	return &Trials{life: ctx, options: Options{Config: o.Config, Extensions: o.Extensions, Now: o.Now, Patience: o.Patience}}
}

// Stop ends the scheduler.
func (t *Trials) Stop() {
	if t.c != nil {
		t.c.box.Stop()
		t.c = nil
	}
}

// mostTrialRounds bounds a trial in which things go on and on.
const mostTrialRounds = 20

// Rest has the cluster come to rest with these objects. All that is played from then on is what the objects are changed to that there are then.
func (t *Trials) Rest(objects []scenario.Object) (*Sight, error) {
	begun := len(t.rests) > 0
	t.rests = append(t.rests, objects)
	var sight *Sight
	var err error
	if !begun || t.c == nil || t.c.disrupted > 0 {
		sight, err = t.again()
	} else {
		sight, err = t.play(objects, nil)
	}
	if err != nil {
		return nil, err
	}
	t.rests[len(t.rests)-1] = sight.Objects()
	return sight, nil
}

// Play has these objects simulated until nothing more happens, or a condition holds at the end of a round. They are those of scenario.Complete and are not
// changed; what is the same as before is not looked at again.
func (t *Trials) Play(objects []scenario.Object, until func(*Sight) bool) (*Sight, error) {
	if t.c == nil || t.c.disrupted > 0 {
		if _, err := t.again(); err != nil {
			return nil, err
		}
	}
	return t.play(objects, until)
}

// PlaySteps has changes of a cluster at rest simulated, one after the other, each once nothing more happens after the one before.
func (t *Trials) PlaySteps(changes change.Change, until func(*Sight) bool) (*Sight, error) {
	sight, err := t.Play(t.rests[len(t.rests)-1], nil)
	if err != nil {
		return nil, err
	}
	left := []change.Change{changes}
	for len(left) > 0 {
		if left, err = t.c.change(left); err != nil {
			return nil, err
		}
		if err := t.rounds(until); err != nil {
			return nil, err
		}
	}
	return sight, nil
}

// again begins anew, and has the cluster come to rest.
func (t *Trials) again() (sight *Sight, err error) {
	t.Stop()
	for _, objects := range t.rests {
		if sight, err = t.play(objects, nil); err != nil {
			return nil, err
		}
	}
	return sight, nil
}

func (t *Trials) play(objects []scenario.Object, until func(*Sight) bool) (*Sight, error) {
	if err := t.begin(objects); err != nil {
		return nil, err
	}
	return &Sight{t.c}, t.rounds(until)
}

// rounds plays until nothing more happens, or a condition holds at the end of a round.
func (t *Trials) rounds(until func(*Sight) bool) error {
	sight := &Sight{t.c}
	for number := 1; ; number++ {
		if err := context.Cause(t.life); err != nil {
			return err
		}
		settled, err := t.c.play(number)
		switch {
		case err != nil:
			t.Stop()
			return fmt.Errorf("round %d: %w", number, err)
		case settled || number == mostTrialRounds || until != nil && until(sight):
			return nil
		}
	}
}

// begin has the scheduler see the objects.
func (t *Trials) begin(objects []scenario.Object) error {
	if t.c == nil {
		c, err := newCluster(t.life, nil, t.options)
		if err != nil {
			return err
		}
		c.silent = true
		t.c, t.series = c, memory.NewSeries(c.box.API)
		if err := t.series.Become(objects, c.box.Deliver); err != nil {
			return err
		}
		return c.start()
	}
	if err := t.series.Become(objects, t.c.box.Deliver); err != nil {
		return err
	}
	return t.c.box.Deliver()
}

// Sight is how things are in the end of a trial. It is good until the next trial.
type Sight struct{ c *cluster }

// Jobs are all jobs. They are not to be changed.
func (s *Sight) Jobs() map[model.JobKey]*model.Job {
	jobs := map[model.JobKey]*model.Job{}
	for j := range s.c.box.Core.State.Snapshot().Jobs {
		jobs[j.Key] = j
	}
	return jobs
}

// Job is one job; nil if it is not there.
func (s *Sight) Job(key model.JobKey) *model.Job { return s.c.box.Core.State.Job(key) }

// Reason is why a job waits; the zero Reason if it does not.
func (s *Sight) Reason(key model.JobKey) model.Reason {
	return s.c.box.Core.Dispatcher.View().Reasons()[key]
}

// Queues are the figures of all queues.
func (s *Sight) Queues() []dispatch.QueueFigures { return s.c.box.Core.Dispatcher.View().Figures() }

// Objects are all objects, complete. They are not to be changed.
func (s *Sight) Objects() []scenario.Object { return s.c.objects() }
