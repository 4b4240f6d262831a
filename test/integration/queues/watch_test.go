// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package queues

import (
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// watch counts the pods of queues at every change that the API server tells of.
type watch struct {
	due   map[string]int
	cores int

	mu      sync.Mutex // guards the rest
	begun   bool
	held    map[string]int
	samples int
	// fullSamples are those in which no core was idle.
	fullSamples int
	found       []string
}

func newWatch(due map[string]int, cores int) *watch {
	return &watch{due: due, cores: cores, held: map[string]int{}}
}

// begin starts sampling.
func (w *watch) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begun = true
}

func holds(p *corev1.Pod) bool { return p != nil && p.Spec.NodeName != "" }

// see takes in one change.
func (w *watch) see(before, after *corev1.Pod) {
	had, has := holds(before), holds(after)
	if after == nil && before != nil {
		had = holds(before)
	}
	if had == has {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if has {
		w.held[after.Labels[queueLabel]]++
	} else {
		w.held[before.Labels[queueLabel]]--
	}
	if w.begun {
		w.sample()
	}
}

// taken is how many samples there are, and how many of them of a full cluster. Pods still go while a test ends.
func (w *watch) taken() (samples, full int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.samples, w.fullSamples
}

func (w *watch) sample() {
	w.samples++
	total := 0
	for _, n := range w.held {
		total += n
	}
	if total == w.cores {
		w.fullSamples++
	}
	for queue, due := range w.due {
		n := w.held[queue]
		if n > due+1 || total == w.cores && n < due-1 {
			w.found = append(w.found, fmt.Sprintf("queue %s held %d pods of %d in use, its due is %d", queue, n, total, due))
		}
	}
}

// full is a condition for Eventually: no core is idle.
func (w *watch) full() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	total := 0
	for _, n := range w.held {
		total += n
	}
	if total != w.cores {
		return fmt.Sprintf("%d of %d cores are in use", total, w.cores)
	}
	return ""
}

func (w *watch) problems() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.found
}
