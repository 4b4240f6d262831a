// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/pkg/replay/trace"
	"github.com/caldera-scheduler/caldera/pkg/simulate/memory"
	"github.com/caldera-scheduler/caldera/pkg/simulate/sandbox"
	"github.com/caldera-scheduler/caldera/pkg/simulate/scenario"
)

// scheduled is a world in which the real scheduler decides.
type scheduled struct {
	box    *sandbox.Sandbox
	begin  time.Time
	shapes *shapes
	// topology is how close gangs want their pods.
	topology trace.Topology
	// ends is what is told of when pods end.
	ends  trace.Ends
	floor *floor
	// actors are the jobs that have come and are not done, by the UID of each pod.
	actors map[types.UID]*actor
	// placed and disrupted are how many pods were bound, and evicted, so far.
	placed, disrupted int
}

// groups is the resource of PodGroups.
var groups = volcano.SchemeGroupVersion.WithResource("podgroups")

func newScheduled(ctx context.Context, t *trace.Trace, o Options) (*scheduled, error) {
	objects, err := objectsOf(t, o)
	if err != nil {
		return nil, err
	}
	box, err := sandbox.New(ctx, objects, sandbox.Options{Config: o.Config, Extensions: o.Extensions, Now: o.Now, Retried: true})
	if err != nil {
		return nil, err
	}
	w := &scheduled{box: box, begin: o.Now, shapes: newShapes(t, schedulerOf(o.Config)), topology: t.Topology, ends: o.Ends, actors: map[types.UID]*actor{}}
	w.floor = newFloor(t, w.shapes.cpuOf)
	if err := box.Start(); err != nil {
		box.Stop()
		return nil, err
	}
	box.Run()
	return w, nil
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

func (w *scheduled) come(a *actor) error {
	like, err := w.shapes.of(a.Job)
	if err != nil {
		return err
	}
	if err := w.box.API.Add(a.group(a.Job, w.topology)); err != nil {
		return fmt.Errorf("submitting job %d: %w", a.ID, err)
	}
	for i := range a.Workers {
		pod := a.podOf(like, i)
		tellEnd(pod, w.ends, a.left)
		w.actors[pod.UID] = a
		if err := w.box.API.Add(pod); err != nil {
			return fmt.Errorf("submitting job %d: %w", a.ID, err)
		}
	}
	return nil
}

// leave removes a job's objects, as its controller and the kubelets would. A pod without a node is gone as soon as somebody deletes it.
func (w *scheduled) leave(a *actor) error {
	w.floor.give(a)
	errs := []error{w.box.API.Remove(groups, namespace, a.name())}
	for i := range a.Workers {
		delete(w.actors, types.UID(a.pod(i)))
		if err := w.box.API.Remove(memory.Pods, namespace, a.pod(i)); !apierrors.IsNotFound(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// cycles bounds the scheduling cycles of a tick.
const cycles = 1_000_000

func (w *scheduled) decide(now time.Duration) (whole, evicted []*actor, err error) {
	w.box.Clock.SetTime(w.begin.Add(now))
	w.box.Retry()
	w.box.Allow(cycles)
	if err := w.box.Settle(); err != nil {
		return nil, nil, err
	}
	victims := w.box.API.Disruptions(w.disrupted)
	w.disrupted += len(victims)
	for _, pod := range victims {
		if a := w.actors[pod.UID]; a != nil && !a.out {
			a.out = true
			evicted = append(evicted, a)
		}
	}
	bound := w.box.API.Bound(w.placed)
	w.placed += len(bound)
	for _, uid := range bound {
		a := w.actors[uid]
		if a == nil {
			continue
		}
		if err := w.run(a, string(uid)); err != nil {
			return nil, nil, err
		}
		if a.bound++; a.bound == a.Workers && !a.out {
			whole = append(whole, a)
		}
	}
	w.box.API.Trim()
	// In which order requests reach the API is nobody's decision.
	slices.SortFunc(whole, (*actor).compare)
	slices.SortFunc(evicted, (*actor).compare)
	return whole, evicted, nil
}

// run plays the kubelet of a pod that was bound.
func (w *scheduled) run(a *actor, name string) error {
	o, err := w.box.API.Get(memory.Pods, namespace, name)
	switch {
	case apierrors.IsNotFound(err):
		// Somebody has deleted it since.
		return nil
	case err != nil:
		return fmt.Errorf("starting a pod: %w", err)
	}
	pod := o.(*corev1.Pod)
	w.floor.take(a, pod)
	if pod.DeletionTimestamp != nil {
		return nil
	}
	scenario.Started(pod, metav1.NewTime(w.box.Clock.Now()))
	if err := w.box.API.Update(memory.Pods, pod, namespace); err != nil {
		return fmt.Errorf("starting a pod: %w", err)
	}
	return nil
}

// next is soon, the next tick, while a pod is kept back because its cycle failed.
func (w *scheduled) next() time.Duration {
	if w.box.KeptBack() {
		return 0
	}
	if next := w.box.Next(); !next.IsZero() {
		return max(0, next.Sub(w.begin))
	}
	return -1
}

func (w *scheduled) fragmented() float64 { return w.floor.fragmented() }

func (w *scheduled) switches(a *actor) int { return w.floor.switches(a) }

func (w *scheduled) promises(tell func(job int, by time.Duration, bound bool)) {
	reserved, _ := w.box.Core.Dispatcher.View().Reservations()
	for _, r := range reserved {
		if r.Guessed {
			// It is told that nobody has said so.
			continue
		}
		for _, pods := range r.Pods {
			if a := w.actors[pods[0]]; a != nil {
				tell(a.job, r.Start.Sub(w.begin), r.Bound && !r.IfDue)
			}
			break
		}
	}
}

func (w *scheduled) bound() int { return w.placed }

func (w *scheduled) stop() { w.box.Stop() }
