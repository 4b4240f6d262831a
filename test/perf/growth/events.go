// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/caldera-scheduler/caldera/pkg/model/informer"
	api "github.com/caldera-scheduler/caldera/pkg/simulate/memory"
	"github.com/caldera-scheduler/caldera/pkg/simulate/memory/fakes"
	"github.com/caldera-scheduler/caldera/pkg/simulate/tap"
)

// batch is how many events are measured at a time.
const batch = 1000

// handlers are the model's own handlers of the events of pods and nodes. They are called as informers call them.
type handlers struct {
	pods, nodes toolscache.ResourceEventHandler
}

// newHandlers registers handlers with informers that have nothing to tell, and keeps them. They are ready when it returns, and what runs for them ends with the context.
func (w *world) newHandlers(ctx context.Context) error {
	held, err := api.New(clock.RealClock{})
	if err != nil {
		return fmt.Errorf("setting up informers: %w", err)
	}
	kube := fakes.Kube(held)
	plain := informers.NewSharedInformerFactory(kube, 0)
	factory := tap.Core(plain, func(like runtime.Object, handler toolscache.ResourceEventHandler) (toolscache.ResourceEventHandler, error) {
		switch like.(type) {
		case *corev1.Pod:
			w.handlers.pods = handler
		case *corev1.Node:
			w.handlers.nodes = handler
		}
		return handler, nil
	})
	owners, err := informer.NewOwners(w.state, factory, kube, clock.RealClock{}, 0)
	if err != nil {
		return err
	}
	if _, err := informer.Core(w.state, factory); err != nil {
		return err
	}
	if w.handlers.pods == nil || w.handlers.nodes == nil {
		return errors.New("nobody handles the events of pods, or of nodes")
	}
	plain.Start(ctx.Done())
	return owners.Run(ctx)
}

// podNews tells of pods that run what changes nothing for the scheduler, as kubelets write it. The figure is that of one event.
func podNews(_ context.Context, w *world) (time.Duration, error) {
	pods := w.bound[:min(batch, len(w.bound))]
	after := make([]*corev1.Pod, len(pods))
	for i, p := range pods {
		news := *p
		news.Status.PodIP = "10.0.0.1"
		after[i] = &news
	}
	began := time.Now()
	for i, p := range pods {
		w.handlers.pods.OnUpdate(p, after[i])
	}
	took := time.Since(began)
	for i, p := range pods {
		w.handlers.pods.OnUpdate(after[i], p)
	}
	return took / time.Duration(len(pods)), w.holdsAll(pods)
}

// podsLeave has pods end and come back, and the dispatcher take that in. The figure is that of one event.
func podsLeave(_ context.Context, w *world) (time.Duration, error) {
	pods := w.bound[:min(batch, len(w.bound))]
	began := time.Now()
	for _, p := range pods {
		w.handlers.pods.OnDelete(p)
	}
	w.dispatch.Step()
	took := time.Since(began)
	w.decline()
	began = time.Now()
	for _, p := range pods {
		w.handlers.pods.OnAdd(p, false)
	}
	w.dispatch.Step()
	took += time.Since(began)
	w.decline()
	return took / time.Duration(2*len(pods)), w.holdsAll(pods)
}

// holdsAll is an error if one of some pods is not on its node in the model.
func (w *world) holdsAll(pods []*corev1.Pod) error {
	for _, p := range pods {
		if t := w.state.Task(p.UID); t == nil || t.Node != p.Spec.NodeName {
			return fmt.Errorf("pod %s is %+v in the model, want that it is on node %s", p.Name, t, p.Spec.NodeName)
		}
	}
	return nil
}

// heartbeats tells of nodes what changes nothing for the scheduler. The figure is that of one event.
func heartbeats(_ context.Context, w *world) (time.Duration, error) {
	n := min(batch, w.nodes)
	before, after := make([]*corev1.Node, n), make([]*corev1.Node, n)
	for i := range n {
		before[i], after[i] = newNode(i), newNode(i)
		after[i].Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Now()}}
	}
	totals := w.state.Totals()
	began := time.Now()
	for i, o := range before {
		w.handlers.nodes.OnUpdate(o, after[i])
	}
	took := time.Since(began)
	if now := w.state.Totals(); now.Allocatable.String() != totals.Allocatable.String() {
		return 0, fmt.Errorf("nodes have %s, want %s as before", now.Allocatable, totals.Allocatable)
	}
	return took / time.Duration(n), nil
}

// afterHeartbeat has the next job chosen when a node has told what changes nothing.
func afterHeartbeat(ctx context.Context, w *world) (time.Duration, error) {
	o := newNode(0)
	w.handlers.nodes.OnUpdate(o, newNode(0))
	return turn(ctx, w)
}

// nodeGrows has a node have one core more, and less again, and the dispatcher take that in. The figure is that of one event.
func nodeGrows(_ context.Context, w *world) (time.Duration, error) {
	small, large := newNode(roomy), newNode(roomy)
	cores := large.Status.Allocatable[corev1.ResourceCPU]
	cores.Add(resource.MustParse("1"))
	large.Status.Allocatable = large.Status.Allocatable.DeepCopy()
	large.Status.Allocatable[corev1.ResourceCPU] = cores
	before := w.state.Totals().Allocatable
	var took time.Duration
	for _, o := range [][2]*corev1.Node{{small, large}, {large, small}} {
		began := time.Now()
		w.handlers.nodes.OnUpdate(o[0], o[1])
		w.dispatch.Step()
		took += time.Since(began)
		w.decline()
		if grown := w.state.Totals().Allocatable.String() != before.String(); grown != (o[1] == large) {
			return 0, fmt.Errorf("nodes have other amounts than before: %t", grown)
		}
	}
	return took / 2, nil
}
