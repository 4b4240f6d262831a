// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
)

// staleAfter is the age up to which a sample counts (Volcano pkg/scheduler/plugins/usage/usage.go).
const staleAfter = 5 * time.Minute

// Loads are what a source told. What the last round knew counts, while the next one is on.
type Loads struct {
	source            Source
	clock             clock.WithTicker
	interval, timeout time.Duration
	known             atomic.Pointer[round]
}

// round is what is known after a round of asking; it does not change any more.
type round struct {
	// number counts the rounds.
	number int64
	// byName are the loads by name or address of the node.
	byName map[string]Load
}

// NewLoads returns the loads that a source tells, as far as it is asked: by Follow, or by Ask.
func NewLoads(from Source, c clock.WithTicker, m *config.UsageMetrics) *Loads {
	l := &Loads{source: from, clock: c, interval: m.Interval.Duration, timeout: m.Timeout.Duration}
	l.known.Store(&round{})
	return l
}

// Follow asks the source at every interval until the context ends, and calls after when it has been asked. An error is logged when it is
// another one than before.
func (l *Loads) Follow(ctx context.Context, after func()) {
	logger := klog.FromContext(ctx)
	ticker := l.clock.NewTicker(l.interval)
	defer ticker.Stop()
	told := ""
	for {
		switch err := l.Ask(ctx); {
		case ctx.Err() != nil:
			return
		case err == nil && told != "":
			logger.V(2).Info("All loads of nodes can be read again")
			told = ""
		case err != nil && err.Error() != told:
			told = err.Error()
			logger.V(2).Info("Loads of nodes cannot be read, those read before count for 5 minutes", "err", told)
		}
		after()
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
	}
}

// Ask makes one round. What the source does not tell stays as it was, with its time, until it is stale.
func (l *Loads) Ask(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	told, err := l.source.Loads(ctx)
	before := l.known.Load()
	now := &round{number: before.number + 1, byName: make(map[string]Load, len(told))}
	for name, load := range before.byName {
		if l.Fresh(load.CPU) || l.Fresh(load.Memory) {
			now.byName[name] = load
		}
	}
	for name, load := range told {
		old := now.byName[name]
		now.byName[name] = Load{CPU: newer(old.CPU, load.CPU), Memory: newer(old.Memory, load.Memory)}
	}
	l.known.Store(now)
	return err
}

func newer(old, told Sample) Sample {
	if told.Time.Before(old.Time) {
		return old
	}
	return told
}

// Round is the number of the last round; 0 before the first.
func (l *Loads) Round() int64 { return l.known.Load().number }

// Among returns the names, or addresses, of the nodes whose load is one of those asked for.
func (l *Loads) Among(which func(Load) bool) map[string]bool {
	names := map[string]bool{}
	for name, load := range l.known.Load().byName {
		if which(load) {
			names[name] = true
		}
	}
	return names
}

// Of is the load of a node, which the source may know by its name or by an address; nothing if it does not.
func (l *Loads) Of(node *corev1.Node) Load {
	known := l.known.Load().byName
	if load, ok := known[node.Name]; ok {
		return load
	}
	for i := range node.Status.Addresses {
		if load, ok := known[node.Status.Addresses[i].Address]; ok {
			return load
		}
	}
	return Load{}
}

// Fresh reports whether a sample counts. One from the future does: clocks differ.
func (l *Loads) Fresh(s Sample) bool {
	return !s.Time.IsZero() && l.clock.Since(s.Time) <= staleAfter
}
