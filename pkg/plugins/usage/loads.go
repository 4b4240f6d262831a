// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"context"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/caldera-scheduler/caldera/pkg/plugins/usage/source"
)

// staleAfter is the age up to which a sample counts (Volcano pkg/scheduler/plugins/usage/usage.go).
const staleAfter = 5 * time.Minute

// loads are what a source told. Nodes are filtered and scored by what the last round knew, while the next one is on.
type loads struct {
	source            source.Source
	clock             clock.WithTicker
	interval, timeout time.Duration
	known             atomic.Pointer[round]
}

// round is what is known after a round of asking; it does not change any more.
type round struct {
	// number counts the rounds.
	number int64
	// byName are the loads by name or address of the node.
	byName map[string]source.Load
}

func newLoads(from source.Source, c clock.WithTicker, interval, timeout time.Duration) *loads {
	l := &loads{source: from, clock: c, interval: interval, timeout: timeout}
	l.known.Store(&round{})
	return l
}

// follow asks the source at every interval until the context ends. An error is logged when it is another one than before.
func (l *loads) follow(ctx context.Context) {
	logger := klog.FromContext(ctx)
	ticker := l.clock.NewTicker(l.interval)
	defer ticker.Stop()
	told := ""
	for {
		switch err := l.ask(ctx); {
		case ctx.Err() != nil:
			return
		case err == nil && told != "":
			logger.V(2).Info("All loads of nodes can be read again")
			told = ""
		case err != nil && err.Error() != told:
			told = err.Error()
			logger.V(2).Info("Loads of nodes cannot be read, those read before count for 5 minutes", "err", told)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
	}
}

// ask makes one round. What the source does not tell stays as it was, with its time, until it is stale.
func (l *loads) ask(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	told, err := l.source.Loads(ctx)
	before := l.known.Load()
	now := &round{number: before.number + 1, byName: make(map[string]source.Load, len(told))}
	for name, load := range before.byName {
		if l.fresh(load.CPU) || l.fresh(load.Memory) {
			now.byName[name] = load
		}
	}
	for name, load := range told {
		old := now.byName[name]
		now.byName[name] = source.Load{CPU: newer(old.CPU, load.CPU), Memory: newer(old.Memory, load.Memory)}
	}
	l.known.Store(now)
	return err
}

func newer(old, told source.Sample) source.Sample {
	if told.Time.Before(old.Time) {
		return old
	}
	return told
}

// of is the load of a node, which the source may know by its name or by an address; nothing if it does not.
func (l *loads) of(node *corev1.Node) source.Load {
	known := l.known.Load().byName
	if load, ok := known[node.Name]; ok {
		return load
	}
	for i := range node.Status.Addresses {
		if load, ok := known[node.Status.Addresses[i].Address]; ok {
			return load
		}
	}
	return source.Load{}
}

// fresh reports whether a sample counts. One from the future does: clocks differ.
func (l *loads) fresh(s source.Sample) bool {
	return !s.Time.IsZero() && l.clock.Since(s.Time) <= staleAfter
}
