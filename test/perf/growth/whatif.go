// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/simulate"
	"github.com/caldera-scheduler/caldera/pkg/simulate/change"
	"github.com/caldera-scheduler/caldera/pkg/simulate/remedy"
	"github.com/caldera-scheduler/caldera/pkg/simulate/scenario"
	"github.com/caldera-scheduler/caldera/pkg/volcano/profile"
)

// wholeNodes is how many nodes each gang waits for that is to be explained: all devices of each.
const wholeNodes = 8

// full is a cluster of which all devices are held and gangs wait for some, as its objects: what is read to find out what would have one of them start.
type full struct {
	objects []scenario.Object
	config  *schedulerconfig.KubeSchedulerConfiguration
	now     time.Time
	// trials is a scheduler in memory on these objects, at rest; nil before the first.
	trials *simulate.Trials
}

// newFull builds the objects, and completes them as those that were read from a cluster.
func (w *world) newFull() (*full, error) {
	f := &full{now: created.Add(time.Hour)}
	var err error
	if f.config, err = profile.Only.Config(); err != nil {
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}
	var read []scenario.Sourced
	add := func(o scenario.Object) { read = append(read, scenario.Sourced{Object: o, Source: "growth"}) }
	for i := range w.nodes {
		add(newNode(i))
		add(volcanoGroup(fmt.Sprintf("bound-%06d", i), 2, volcano.PodGroupRunning))
	}
	for i := range w.nodes * podsOnNode {
		add(w.boundPod(i/podsOnNode, i%podsOnNode))
	}
	for i := range w.jobs {
		group := fmt.Sprintf("waits-%d", i)
		add(volcanoGroup(group, wholeNodes, volcano.PodGroupInqueue))
		for k := range wholeNodes {
			add(newPod(group, fmt.Sprintf("%s-%d", group, k), map[corev1.ResourceName]string{corev1.ResourceCPU: "8", device: "8"}).Obj())
		}
	}
	if f.objects, err = scenario.Complete(read, f.now); err != nil {
		return nil, fmt.Errorf("completing the objects: %w", err)
	}
	return f, nil
}

func volcanoGroup(name string, least int32, phase volcano.PodGroupPhase) *volcano.PodGroup {
	return &volcano.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, CreationTimestamp: metav1.NewTime(created)},
		Spec:       volcano.PodGroupSpec{MinMember: least}, Status: volcano.PodGroupStatus{Phase: phase},
	}
}

// whatIf are the parts of finding out what would have a job start, which `kubectl caldera explain` does in its own process.
func whatIf() []operation {
	return []operation{
		{"the objects are completed", 0, completed},
		{"a scheduler in memory comes to rest with them", 0, rested},
		{"one trial: a job that runs ends", 0, tried},
		{"what would have it start, 4 s of new trials", 0, found},
	}
}

// completed builds the objects.
func completed(_ context.Context, w *world) (time.Duration, error) {
	w.stopTrials()
	w.full = nil
	began := time.Now()
	f, err := w.newFull()
	w.full = f
	return time.Since(began), err
}

// stopTrials ends the scheduler in memory.
func (w *world) stopTrials() {
	if w.full != nil && w.full.trials != nil {
		w.full.trials.Stop()
		w.full.trials = nil
	}
}

// rested has a scheduler in memory see all objects, and do what it can. No gang starts.
func rested(ctx context.Context, w *world) (time.Duration, error) {
	if w.full == nil {
		if _, err := completed(ctx, w); err != nil {
			return 0, err
		}
	}
	w.stopTrials()
	began := time.Now()
	w.full.trials = simulate.NewTrials(klog.NewContext(ctx, logr.Discard()), simulate.Options{Config: w.full.config, Now: w.full.now})
	sight, err := w.full.trials.Rest(w.full.objects)
	took := time.Since(began)
	if err != nil {
		return 0, err
	}
	if reason := sight.Reason(keyOf("waits-0")); reason.Kind != model.NotEnoughResources {
		return 0, fmt.Errorf("job waits-0 waits for %q, want %q", reason.Kind, model.NotEnoughResources)
	}
	return took, nil
}

// tried has one job end, and the scheduler plan again. Its devices are on several nodes, so that no gang starts.
func tried(ctx context.Context, w *world) (time.Duration, error) {
	if w.full == nil || w.full.trials == nil {
		if _, err := rested(ctx, w); err != nil {
			return 0, err
		}
	}
	began := time.Now()
	objects, err := change.Apply(w.full.objects, change.Ends{Job: "bound-000000", Of: func(p *corev1.Pod) bool { return p.Labels["job"] == "bound-000000" }})
	if err != nil {
		return 0, err
	}
	sight, err := w.full.trials.Play(objects, nil)
	took := time.Since(began)
	switch {
	case err != nil:
		return 0, err
	case sight.Job(keyOf("bound-000000")).Placed() != 0 || sight.Job(keyOf("waits-0")).Placed() != 0:
		return 0, fmt.Errorf("job bound-000000 has ended, and %d of its pods are on nodes, and %d of job waits-0", sight.Job(keyOf("bound-000000")).Placed(), sight.Job(keyOf("waits-0")).Placed())
	}
	return took, nil
}

// found looks for what would have a gang start, as the command does. That some node would, or that time was up, is what has to come out.
func found(ctx context.Context, w *world) (time.Duration, error) {
	if w.full == nil {
		if _, err := completed(ctx, w); err != nil {
			return 0, err
		}
	}
	w.stopTrials()
	began := time.Now()
	result, err := remedy.Find(klog.NewContext(ctx, logr.Discard()), w.full.objects, func(k model.JobKey) bool { return k == keyOf("waits-0") },
		remedy.Options{Config: w.full.config, Now: w.full.now})
	took := time.Since(began)
	switch {
	case err != nil:
		return 0, err
	case result.Starts || len(result.Remedies) == 0 && !result.Cut:
		return 0, fmt.Errorf("nothing is known that has job waits-0 start after %d trials; that it starts by itself: %t", result.Trials, result.Starts)
	}
	w.said = fmt.Sprintf("; %d trials, %d remedies, time was up: %t", result.Trials, len(result.Remedies), result.Cut)
	return took, nil
}
