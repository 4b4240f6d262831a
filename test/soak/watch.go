// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
	volcanoinformers "volcano.sh/apis/pkg/client/informers/externalversions"
)

// watch feeds the monitor, and tells the world of its pods, until stop is called.
func (w *world) watch(ctx context.Context) (stop func(), err error) {
	m := w.monitor
	core := informers.NewSharedInformerFactory(w.kube, 0)
	said := informers.NewSharedInformerFactoryWithOptions(w.kube, 0, informers.WithNamespace(namespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.FieldSelector = "reason=Evict,involvedObject.kind=Pod" }))
	batch := volcanoinformers.NewSharedInformerFactory(w.groups, 0)
	for _, handler := range []struct {
		of     cache.SharedIndexInformer
		handle cache.ResourceEventHandler
	}{
		{core.Core().V1().Pods().Informer(), handlers(
			func(p *corev1.Pod) { m.Pod(p, time.Now()); w.saw(p, false) },
			func(p *corev1.Pod) { m.PodGone(p, time.Now()); w.saw(p, true) })},
		{core.Core().V1().Nodes().Informer(), handlers(
			func(n *corev1.Node) { m.Node(n); w.sawNode(n) },
			func(n *corev1.Node) { m.NodeGone(n) })},
		{said.Core().V1().Events().Informer(), handlers(m.Event, func(*corev1.Event) {})},
		{batch.Scheduling().V1beta1().PodGroups().Informer(), handlers(
			func(g *volcano.PodGroup) { m.Group(g, time.Now()) },
			func(g *volcano.PodGroup) { m.GroupGone(g, time.Now()) })},
		{batch.Scheduling().V1beta1().Queues().Informer(), handlers(
			func(q *volcano.Queue) { m.Queue(q, time.Now()) },
			func(*volcano.Queue) {})},
	} {
		if _, err := handler.of.AddEventHandler(handler.handle); err != nil {
			return nil, fmt.Errorf("watching: %w", err)
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	core.Start(ctx.Done())
	said.Start(ctx.Done())
	batch.Start(ctx.Done())
	core.WaitForCacheSync(ctx.Done())
	said.WaitForCacheSync(ctx.Done())
	batch.WaitForCacheSync(ctx.Done())
	return func() {
		cancel()
		core.Shutdown()
		said.Shutdown()
		batch.Shutdown()
	}, nil
}

// handlers are told of objects as they are, and of objects that are gone.
func handlers[T any](put, remove func(T)) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { put(object.(T)) },
		UpdateFunc: func(_, object any) { put(object.(T)) },
		DeleteFunc: func(object any) {
			if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = gone.Obj
			}
			if gone, ok := object.(T); ok {
				remove(gone)
			}
		},
	}
}
