// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"syscall"
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
	first      map[string]moment // when the first pod of a namespace was seen
	failure    error             // the last time that a moment could not be told
}

// moment is a time, and how much of a processor this process has used by then.
type moment struct {
	time time.Time
	cpu  time.Duration
}

func now() (moment, error) {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return moment{}, fmt.Errorf("asking for the CPU time of the process: %w", err)
	}
	return moment{time.Now(), time.Duration(used.Utime.Nano() + used.Stime.Nano())}, nil
}

func newWatcher() *watcher {
	return &watcher{namespaces: map[string]*workload.Binds{}, first: map[string]moment{}}
}

// follow watches through the scheduler's own informer, so that it costs the API server nothing.
func (w *watcher) follow(pods cache.SharedIndexInformer) error {
	_, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { w.see(nil, obj) },
		UpdateFunc: func(old, obj any) { w.see(old, obj) },
	})
	return err
}

// see takes note of a pod that is new, or was changed from what it was.
func (w *watcher) see(old, obj any) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return
	}
	before, _ := old.(*corev1.Pod)
	bound := pod.Spec.NodeName != "" && (before == nil || before.Spec.NodeName == "")
	if before != nil && !bound {
		return
	}
	at, err := now()
	w.mu.Lock()
	defer w.mu.Unlock()
	binds := w.namespaces[pod.Namespace]
	if binds == nil {
		binds = &workload.Binds{}
		w.namespaces[pod.Namespace], w.first[pod.Namespace] = binds, at
	}
	if err != nil {
		w.failure = err
	}
	if before == nil {
		binds.Created++
	}
	if !bound {
		return
	}
	first := w.first[pod.Namespace]
	binds.Bound++
	binds.LastBind, binds.CPU = at.time.Sub(first.time).Seconds(), (at.cpu - first.cpu).Seconds()
	if binds.Bound == 1 {
		binds.FirstBind = binds.LastBind
	}
}

// write writes what was seen, by namespace.
func (w *watcher) write(file string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failure != nil {
		return w.failure
	}
	data, err := json.MarshalIndent(w.namespaces, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the binds: %w", err)
	}
	return os.WriteFile(file, data, 0o644)
}
