// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
	volcanoclient "volcano.sh/apis/pkg/client/clientset/versioned"
	volcanoinformers "volcano.sh/apis/pkg/client/informers/externalversions"

	"github.com/caldera-scheduler/caldera/internal/demo/history"
)

// observer writes what the API server tells into the history.
type observer struct {
	clock clock.PassiveClock

	mu      sync.Mutex // guards history
	history *history.History
}

// look calls read with the history as it is.
func (o *observer) look(read func(*history.History)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	read(o.history)
}

// record writes what became of every pod to a file, if one is named.
func (o *observer) record(file string) error {
	if file == "" {
		return nil
	}
	var record history.Record
	o.look(func(h *history.History) { record = h.Record(o.clock.Now()) })
	text, err := json.MarshalIndent(record, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding what was seen: %w", err)
	}
	if err := os.WriteFile(file, append(text, '\n'), 0o600); err != nil {
		return fmt.Errorf("writing what was seen: %w", err)
	}
	return nil
}

// watch feeds the history with every event on pods and PodGroups until stop is called. The API server ends only after
// its watches have.
func (o *observer) watch(ctx context.Context, config *rest.Config) (stop func(), err error) {
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("building a client: %w", err)
	}
	groups, err := volcanoclient.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("building a client: %w", err)
	}
	core := informers.NewSharedInformerFactoryWithOptions(kube, 0, informers.WithNamespace(metav1.NamespaceDefault))
	_, err = core.Core().V1().Pods().Informer().AddEventHandler(handlers(
		func(h *history.History, p *corev1.Pod) { h.Pod(p, o.clock.Now()) },
		func(h *history.History, p *corev1.Pod) { h.PodGone(p, o.clock.Now()) }, o))
	if err != nil {
		return nil, fmt.Errorf("watching pods: %w", err)
	}
	batch := volcanoinformers.NewSharedInformerFactoryWithOptions(groups, 0, volcanoinformers.WithNamespace(metav1.NamespaceDefault))
	_, err = batch.Scheduling().V1beta1().PodGroups().Informer().AddEventHandler(handlers(
		func(h *history.History, g *volcano.PodGroup) { h.Group(g) },
		func(*history.History, *volcano.PodGroup) {}, o))
	if err != nil {
		return nil, fmt.Errorf("watching PodGroups: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	core.Start(ctx.Done())
	batch.Start(ctx.Done())
	core.WaitForCacheSync(ctx.Done())
	batch.WaitForCacheSync(ctx.Done())
	return func() {
		cancel()
		core.Shutdown()
		batch.Shutdown()
	}, nil
}

// handlers tells the history of objects that are there and of objects that are gone.
func handlers[T any](put, remove func(*history.History, T), o *observer) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { o.look(func(h *history.History) { put(h, object.(T)) }) },
		UpdateFunc: func(_, object any) { o.look(func(h *history.History) { put(h, object.(T)) }) },
		DeleteFunc: func(object any) {
			if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = gone.Obj
			}
			if gone, ok := object.(T); ok {
				o.look(func(h *history.History) { remove(h, gone) })
			}
		},
	}
}
