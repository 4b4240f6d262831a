// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// watcher tells of pods that got their nodes, as seen from outside of the scheduler.
type watcher struct {
	// bound are called one after the other, by role. They must be set before the scheduler starts.
	bound map[string]func(pod *corev1.Pod, at time.Time)
	// running is the number of fillers that began to run.
	running atomic.Int64
	// escaped is the number of hopeless pods that got a node nevertheless, other than spare ones.
	escaped atomic.Int64
}

// watch begins to tell. It returns when all pods that there are have been seen.
func (w *watcher) watch(ctx context.Context, c clients) error {
	factory := informers.NewSharedInformerFactoryWithOptions(c.kube, 0, informers.WithTransform(func(o any) (any, error) {
		if p, ok := o.(*corev1.Pod); ok {
			p.ManagedFields = nil
		}
		return o, nil
	}))
	informer := factory.Core().V1().Pods().Informer()
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) { w.see(nil, o.(*corev1.Pod)) },
		UpdateFunc: func(before, after any) {
			w.see(before.(*corev1.Pod), after.(*corev1.Pod))
		},
	})
	if err != nil {
		return fmt.Errorf("watching pods: %w", err)
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		return context.Cause(ctx)
	}
	return nil
}

func (w *watcher) see(before, after *corev1.Pod) {
	role := after.Labels[roleLabel]
	if role == roleFiller && after.Status.Phase == corev1.PodRunning && (before == nil || before.Status.Phase != corev1.PodRunning) {
		w.running.Add(1)
	}
	if after.Spec.NodeName == "" || before != nil && before.Spec.NodeName != "" {
		return
	}
	if role == roleHopeless && !strings.HasPrefix(after.Spec.NodeName, poolSpare) {
		w.escaped.Add(1)
	}
	if tell := w.bound[role]; tell != nil {
		tell(after, time.Now())
	}
}
