// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/pkg/heap"
	"github.com/caldera-scheduler/caldera/pkg/replay/history"
	"github.com/caldera-scheduler/caldera/pkg/replay/trace"
	"github.com/caldera-scheduler/caldera/pkg/simulate/memory"
	"github.com/caldera-scheduler/caldera/pkg/simulate/sandbox"
	"github.com/caldera-scheduler/caldera/pkg/simulate/scenario"
)

// player plays one trace.
type player struct {
	trace    *trace.Trace
	options  Options
	box      *sandbox.Sandbox
	shapes   *shapes
	recorder *history.Recorder
	cost     Cost

	now time.Duration
	// came is how many jobs of the trace have come.
	came int
	// actors are the jobs that have come and are not done, by the UID of each pod.
	actors map[types.UID]*actor
	// ends are the jobs that run, the next one to be done first.
	ends *heap.Heap[*actor]
	// again are jobs that were evicted. They leave at the next tick, and come back.
	again []*actor
	// bound and disrupted are how many pods were bound, and evicted, so far.
	bound, disrupted int
	told             time.Time
}

// actor is a job that has come.
type actor struct {
	attempt
	trace.Job
	// left is how long it still has to run.
	left time.Duration
	// bound is how many of its pods have nodes.
	bound int
	// out: it was evicted and leaves at the next tick.
	out bool
	// ends is when it is done, while it runs.
	ends     time.Duration
	position int
}

// Position implements heap.Element.
func (a *actor) Position() *int { return &a.position }

func newPlayer(ctx context.Context, t *trace.Trace, o Options) (*player, error) {
	objects, err := objectsOf(t, o)
	if err != nil {
		return nil, err
	}
	box, err := sandbox.New(ctx, objects, sandbox.Options{Config: o.Config, Extensions: o.Extensions, Now: o.Now})
	if err != nil {
		return nil, err
	}
	p := &player{
		trace: t, options: o, box: box, shapes: newShapes(t.Nodes, schedulerOf(o.Config)), recorder: history.NewRecorder(t, nil),
		actors: map[types.UID]*actor{},
		ends: heap.New(func(a, b *actor) bool {
			return cmp.Or(cmp.Compare(a.ends, b.ends), cmp.Compare(a.job, b.job)) < 0
		}),
	}
	if err := box.Start(); err != nil {
		box.Stop()
		return nil, err
	}
	box.Run()
	return p, nil
}

// batchScheduler is what the profile of batch jobs is called in the configurations that Caldera ships, as Volcano is.
const batchScheduler = "volcano"

// schedulerOf is the profile that the pods of a trace name.
func schedulerOf(c *schedulerconfig.KubeSchedulerConfiguration) string {
	for _, p := range c.Profiles {
		if p.SchedulerName == batchScheduler {
			return p.SchedulerName
		}
	}
	return c.Profiles[0].SchedulerName
}

// patience is how long the scheduler is given to start somebody when nothing else happens any more.
const patience = 10 * time.Minute

// play plays the trace to its end.
func (p *player) play() error {
	for idle := time.Duration(0); ; {
		if err := p.tick(); err != nil {
			return err
		}
		next, busy := p.next()
		switch {
		case busy:
			idle = 0
		case p.recorder.Waiting() == 0 || idle > patience:
			return nil
		default:
			idle += next - p.now
		}
		p.tell()
		p.recorder.Advance(next)
		p.now = next
	}
}

// next is the next tick at which something happens. Busy: somebody comes, is done, or leaves; else only the scheduler may do something.
func (p *player) next() (next time.Duration, busy bool) {
	at := func(t time.Duration) {
		if t = (t + p.options.Tick - 1) / p.options.Tick * p.options.Tick; t <= p.now {
			t = p.now + p.options.Tick
		}
		if next == 0 || t < next {
			next = t
		}
	}
	if p.came < len(p.trace.Jobs) {
		at(p.trace.Jobs[p.came].Submit)
	}
	if p.ends.Len() > 0 {
		at(p.ends.Top().ends)
	}
	if len(p.again) > 0 {
		at(p.now)
	}
	busy = next != 0
	if looks := p.box.Next(); !looks.IsZero() {
		at(looks.Sub(p.options.Now))
	}
	if next == 0 {
		at(p.now)
	}
	return next, busy
}

// tick plays one moment.
func (p *player) tick() error {
	p.cost.Ticks++
	p.box.Clock.SetTime(p.options.Now.Add(p.now))
	for _, step := range []func() error{p.finish, p.resubmit, p.submit, p.settle, p.run} {
		if err := step(); err != nil {
			return err
		}
	}
	p.box.API.Trim()
	return nil
}

// finish has the jobs leave that are done.
func (p *player) finish() error {
	for p.ends.Len() > 0 && p.ends.Top().ends <= p.now {
		a := p.ends.Pop()
		p.recorder.End(a.job)
		if err := p.leave(a); err != nil {
			return err
		}
	}
	return nil
}

// leave takes away a job's objects.
func (p *player) leave(a *actor) error {
	errs := []error{p.box.API.Remove(groups, namespace, a.name())}
	for i := range a.Workers {
		delete(p.actors, types.UID(a.pod(i)))
		errs = append(errs, p.box.API.Remove(memory.Pods, namespace, a.pod(i)))
	}
	return errors.Join(errs...)
}

// groups is the resource of PodGroups.
var groups = volcano.SchemeGroupVersion.WithResource("podgroups")

// resubmit has evicted jobs leave, and come back as the youngest.
func (p *player) resubmit() error {
	for _, a := range p.again {
		if err := p.leave(a); err != nil {
			return err
		}
		again := &actor{attempt: attempt{a.job, a.number + 1}, Job: a.Job, left: a.left, position: -1}
		if err := p.create(again); err != nil {
			return err
		}
	}
	p.again = nil
	return nil
}

// submit has the jobs come whose time it is.
func (p *player) submit() error {
	for ; p.came < len(p.trace.Jobs) && p.trace.Jobs[p.came].Submit <= p.now; p.came++ {
		p.recorder.Come(p.came)
		job := p.trace.Jobs[p.came]
		if err := p.create(&actor{attempt: attempt{job: p.came}, Job: job, left: job.Duration, position: -1}); err != nil {
			return err
		}
	}
	return nil
}

// create makes a job's objects.
func (p *player) create(a *actor) error {
	like, err := p.shapes.of(a.Job)
	if err != nil {
		return err
	}
	if err := p.box.API.Add(a.group(a.Job)); err != nil {
		return fmt.Errorf("submitting job %d: %w", a.ID, err)
	}
	for i := range a.Workers {
		pod := a.podOf(like, i)
		p.actors[pod.UID] = a
		if err := p.box.API.Add(pod); err != nil {
			return fmt.Errorf("submitting job %d: %w", a.ID, err)
		}
	}
	return nil
}

// settle lets the scheduler do all it can, and takes down what it did.
func (p *player) settle() error {
	p.box.Allow(cycles)
	if err := p.box.Settle(); err != nil {
		return err
	}
	evicted := p.box.API.Disruptions(p.disrupted)
	p.disrupted += len(evicted)
	for _, pod := range evicted {
		p.evict(pod)
	}
	return nil
}

// cycles bounds the scheduling cycles of a tick.
const cycles = 1_000_000

// evict notes that a pod was evicted.
func (p *player) evict(pod *corev1.Pod) {
	a := p.actors[pod.UID]
	if a == nil || a.out {
		return
	}
	a.out = true
	lost := 0.0
	if since, runs := p.recorder.Runs(a.job); runs {
		ran := p.now - since
		kept := time.Duration(0)
		if p.options.Checkpoint > 0 {
			kept = ran / p.options.Checkpoint * p.options.Checkpoint
		}
		a.left -= kept
		lost = (ran - kept).Seconds() * a.AllGPUs()
	}
	p.recorder.Evict(a.job, lost)
	p.ends.Remove(a)
	p.again = append(p.again, a)
}

// run has the pods run that were bound, and the jobs start that are whole.
func (p *player) run() error {
	bound := p.box.API.Bound(p.bound)
	p.bound += len(bound)
	p.cost.Bound = p.bound
	for _, uid := range bound {
		a := p.actors[uid]
		if a == nil || a.out {
			continue
		}
		if err := p.start(string(uid)); err != nil {
			return err
		}
		if a.bound++; a.bound == a.Workers {
			p.recorder.Start(a.job)
			a.ends = p.now + a.left
			p.ends.Put(a)
		}
	}
	return nil
}

// start plays the kubelet of a pod that was bound.
func (p *player) start(name string) error {
	o, err := p.box.API.Get(memory.Pods, namespace, name)
	if err != nil {
		return fmt.Errorf("starting a pod: %w", err)
	}
	scenario.Started(o.(*corev1.Pod), metav1.NewTime(p.box.Clock.Now()))
	if err := p.box.API.Update(memory.Pods, o, namespace); err != nil {
		return fmt.Errorf("starting a pod: %w", err)
	}
	return nil
}

// tellEvery is how often it is told how far the replay is.
const tellEvery = 200 * time.Millisecond

// tell tells how far the replay is.
func (p *player) tell() {
	if p.options.Progress == nil || time.Since(p.told) < tellEvery {
		return
	}
	p.told = time.Now()
	p.options.Progress(Progress{
		Now: p.now, Last: p.trace.Last(), Jobs: len(p.trace.Jobs), Came: p.came, Waiting: p.recorder.Waiting(),
		Done: p.came - p.recorder.Waiting() - p.ends.Len(),
	})
}
