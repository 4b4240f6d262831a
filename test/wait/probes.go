// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// wanted is something that is bound when a number of pods are.
type wanted struct {
	mu      sync.Mutex // guards missing and last
	missing int
	last    time.Time
	done    chan struct{}
}

func newWanted(pods int) *wanted { return &wanted{missing: pods, done: make(chan struct{})} }

// count takes note of one pod.
func (w *wanted) count(at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.missing--
	if w.missing == 0 {
		w.last = at
		close(w.done)
	}
}

// await returns how long after a time the last pod was bound, or false if that takes longer than patience.
func (w *wanted) await(ctx context.Context, since time.Time, patience time.Duration) (time.Duration, bool) {
	timer := time.NewTimer(time.Until(since.Add(patience)))
	defer timer.Stop()
	select {
	case <-w.done:
		// The watch may tell of the last bind before the request that began it has returned.
		return max(w.last.Sub(since), 0), true
	case <-timer.C:
	case <-ctx.Done():
	}
	return 0, false
}

// board knows what is waited for, by name.
type board struct {
	of func(pod *corev1.Pod) string

	mu     sync.Mutex // guards wanted; never held while calling out
	wanted map[string]*wanted
}

func newBoard(of func(pod *corev1.Pod) string) *board {
	return &board{of: of, wanted: map[string]*wanted{}}
}

func (b *board) add(name string, pods int) *wanted {
	w := newWanted(pods)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wanted[name] = w
	return w
}

// bound takes note of a pod that got its node.
func (b *board) bound(pod *corev1.Pod, at time.Time) {
	b.mu.Lock()
	w := b.wanted[b.of(pod)]
	b.mu.Unlock()
	if w != nil {
		w.count(at)
	}
}

// prober makes probes and times them.
type prober struct {
	scenario  scenario
	clients   clients
	contender contender
	board     *board
}

func newProber(s scenario, c clients, who contender) *prober {
	return &prober{scenario: s, clients: c, contender: who, board: newBoard(func(p *corev1.Pod) string { return p.Labels[groupLabel] })}
}

// run makes all probes and returns the latencies of those that were bound.
func (p *prober) run(ctx context.Context) ([]time.Duration, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var mu sync.Mutex
	var latencies []time.Duration
	var wg sync.WaitGroup
	ticker := time.NewTicker(p.scenario.Every)
	defer ticker.Stop()
	for i := range p.scenario.Probes {
		wg.Go(func() {
			latency, ok, err := p.one(ctx, fmt.Sprintf("probe-%04d", i), p.scenario.ProbeSize, p.scenario.Patience)
			if err != nil {
				cancel(err)
			}
			if ok {
				mu.Lock()
				latencies = append(latencies, latency)
				mu.Unlock()
			}
		})
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
	}
	wg.Wait()
	return latencies, context.Cause(ctx)
}

// one makes a probe, waits until it is bound or patience is over, and removes it.
func (p *prober) one(ctx context.Context, name string, size int, patience time.Duration) (time.Duration, bool, error) {
	w := p.board.add(name, size)
	group, pods := probe(p.contender, name, size)
	if group != nil {
		if err := p.clients.put(ctx, group); err != nil {
			return 0, false, err
		}
	}
	if err := p.clients.putAll(ctx, size, func(i int) []runtime.Object { return []runtime.Object{pods[i]} }); err != nil {
		return 0, false, err
	}
	latency, ok := w.await(ctx, time.Now(), patience)
	for _, pod := range pods {
		if err := p.clients.remove(ctx, others, pod.Name); err != nil {
			return 0, false, fmt.Errorf("removing %s: %w", pod.Name, err)
		}
	}
	if group != nil {
		if err := p.clients.groups.SchedulingV1beta1().PodGroups(others).Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			return 0, false, fmt.Errorf("removing PodGroup %s: %w", name, err)
		}
	}
	return latency, ok, nil
}
