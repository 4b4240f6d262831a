// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/caldera-scheduler/caldera/test/perf/harness/workload"
)

// watcher follows the pods.
type watcher struct {
	// mu guards what follows.
	mu         sync.Mutex
	namespaces map[string]*workload.Binds
	first      map[string]time.Time // when the first pod of a namespace was seen
}

func newWatcher() *watcher {
	return &watcher{namespaces: map[string]*workload.Binds{}, first: map[string]time.Time{}}
}

// follow watches through the scheduler's own informer, so that it costs the API server nothing.
func (w *watcher) follow(pods cache.SharedIndexInformer) error {
	_, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { w.see(nil, obj, time.Now()) },
		UpdateFunc: func(old, obj any) { w.see(old, obj, time.Now()) },
	})
	return err
}

// see takes note of a pod that is new, or was changed from what it was.
func (w *watcher) see(old, obj any, now time.Time) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return
	}
	before, _ := old.(*corev1.Pod)
	w.mu.Lock()
	defer w.mu.Unlock()
	binds := w.namespaces[pod.Namespace]
	if binds == nil {
		binds = &workload.Binds{}
		w.namespaces[pod.Namespace], w.first[pod.Namespace] = binds, now
	}
	if before == nil {
		binds.Created++
	}
	if pod.Spec.NodeName == "" || before != nil && before.Spec.NodeName != "" {
		return
	}
	binds.Bound++
	binds.LastBind = now.Sub(w.first[pod.Namespace]).Seconds()
	if binds.Bound == 1 {
		binds.FirstBind = binds.LastBind
	}
}

// write writes what was seen, by namespace.
func (w *watcher) write(file string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	data, err := json.MarshalIndent(w.namespaces, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the binds: %w", err)
	}
	return os.WriteFile(file, data, 0o644)
}
