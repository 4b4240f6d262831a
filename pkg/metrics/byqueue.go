// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"sync"
	"time"

	"k8s.io/component-base/metrics"
)

// byQueue is a histogram of times for each queue. Those of queues that do not exist are forgotten.
type byQueue struct {
	vec *metrics.HistogramVec

	mu sync.Mutex
	// seen are the queues that have a histogram.
	seen map[string]bool
}

func newByQueue(opts *metrics.HistogramOpts) *byQueue {
	return &byQueue{vec: metrics.NewHistogramVec(opts, []string{queueLabel}), seen: map[string]bool{}}
}

// observe counts a time. Clocks of machines that differ make none negative.
func (h *byQueue) observe(queue string, took time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seen[queue] = true
	h.vec.WithLabelValues(queue).Observe(max(0, took.Seconds()))
}

// keep forgets the histograms of all queues but those that exist.
func (h *byQueue) keep(exists map[string]bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for queue := range h.seen {
		if !exists[queue] {
			h.vec.Delete(map[string]string{queueLabel: queue})
			delete(h.seen, queue)
		}
	}
}
