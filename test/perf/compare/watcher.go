// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/prometheus/common/expfmt"
	promodel "github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

const (
	// patience is how long a run may stand still, lastPatience how long when its scheduler has ended.
	patience     = 2 * time.Minute
	lastPatience = 5 * time.Second
)

// watcher sees what a scheduler does from outside of it.
type watcher struct {
	kube  kubernetes.Interface
	binds chan bind
	stop  func()
}

// bind is one pod that got its node.
type bind struct {
	group string
	at    time.Time
}

// newWatcher begins to watch. Every bind counts from when the API server tells of it.
func newWatcher(ctx context.Context, config *rest.Config) (*watcher, error) {
	// Protobuf, which the schedulers use too: the API server encodes each change once, and the watcher stays light.
	config = rest.CopyConfig(config)
	config.ContentType = runtime.ContentTypeProtobuf
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	w := &watcher{kube: kube, binds: make(chan bind, 1024), stop: cancel}
	factory := informers.NewSharedInformerFactory(kube, 0)
	informer := factory.Core().V1().Pods().Informer()
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: func(before, after any) {
		p := after.(*corev1.Pod)
		if before.(*corev1.Pod).Spec.NodeName == "" && p.Spec.NodeName != "" {
			select {
			case w.binds <- bind{group: p.Labels[groupLabel], at: time.Now()}:
			case <-ctx.Done():
			}
		}
	}})
	if err != nil {
		cancel()
		return nil, err
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	return w, nil
}

// await collects the binds until all pods have one, and returns when the last of their events was seen.
func (w *watcher) await(ctx context.Context, s scenario, exited <-chan struct{}) (all []bind, told time.Time, err error) {
	limit := patience
	for len(all) < s.pods() {
		select {
		case b := <-w.binds:
			all = append(all, b)
		case <-exited:
			exited, limit = nil, lastPatience
		case <-time.After(limit):
			return nil, told, fmt.Errorf("nothing was bound for %s after %d of %d pods", limit, len(all), s.pods())
		case <-ctx.Done():
			return nil, told, context.Cause(ctx)
		}
	}
	told, err = w.awaitEvents(ctx, s.pods())
	return all, told, err
}

// awaitEvents waits until there is an event for each pod, so that a scheduler's CPU time includes writing them. A scheduler may write
// fewer, or drop some: none for a while ends the wait.
func (w *watcher) awaitEvents(ctx context.Context, want int) (time.Time, error) {
	const pause, quiet = 100 * time.Millisecond, 3 * time.Second
	last, seen := time.Now(), 0
	for {
		// One event and the number of the others: cheap, however many there are.
		list, err := w.kube.EventsV1().Events(namespace).List(ctx, metav1.ListOptions{Limit: 1})
		if err != nil {
			return last, fmt.Errorf("counting events: %w", err)
		}
		if n := len(list.Items) + int(ptr.Deref(list.RemainingItemCount, 0)); n > seen {
			last, seen = time.Now(), n
		}
		if seen >= want || time.Since(last) > quiet {
			return last, nil
		}
		select {
		case <-ctx.Done():
			return last, context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

// writes returns how many writes the API server has answered, by verb and resource. It leaves out the leases of the servers themselves.
func (w *watcher) writes(ctx context.Context) (map[string]int, error) {
	data, err := w.kube.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("asking the API server for its metrics: %w", err)
	}
	parser := expfmt.NewTextParser(promodel.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("reading the API server's metrics: %w", err)
	}
	counts := map[string]int{}
	for _, m := range families["apiserver_request_total"].GetMetric() {
		labels := map[string]string{}
		for _, l := range m.GetLabel() {
			labels[l.GetName()] = l.GetValue()
		}
		switch labels["verb"] {
		case "POST", "PUT", "PATCH", "DELETE", "APPLY":
		default:
			continue
		}
		name := labels["resource"]
		if name == "leases" {
			continue
		}
		if sub := labels["subresource"]; sub != "" {
			name += "/" + sub
		}
		counts[labels["verb"]+" "+name] += int(m.GetCounter().GetValue())
	}
	return counts, nil
}
