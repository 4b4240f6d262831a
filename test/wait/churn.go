// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
)

// churn ends pods of others and replaces them. A node always keeps one of its fillers, so that nobody else fits it.
type churn struct {
	clients   clients
	contender contender

	mu sync.Mutex // guards all below
	// held are the fillers that have each node.
	held map[string][]string
	// nodes is the order in which nodes lose a filler; next is the place in it.
	nodes []string
	next  int
	// number is that of the next filler.
	number int
	// made maps fillers that wait for a node to when they were made.
	made map[string]time.Time
	// waits are how long fillers took to get their node.
	waits []time.Duration
}

// newChurn returns the churn of a cluster whose fillers all have their nodes.
func newChurn(c clients, who contender, s scenario) *churn {
	held := map[string][]string{}
	for i := range s.fullNodes() * s.Fill {
		node := nodeName(poolFull, i%s.fullNodes())
		held[node] = append(held[node], filler(who, i).Name)
	}
	return &churn{
		clients: c, contender: who, held: held, nodes: slices.Sorted(maps.Keys(held)), number: s.fullNodes() * s.Fill, made: map[string]time.Time{},
	}
}

// run ends pods at a rate, many at a time, until ctx ends. It returns the first error.
func (c *churn) run(ctx context.Context, perSecond int) error {
	if perSecond == 0 {
		return nil
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ticker := time.NewTicker(time.Second / time.Duration(perSecond))
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
				return err
			}
			return nil
		case <-ticker.C:
			name, ok := c.pick()
			if !ok {
				continue
			}
			wg.Go(func() {
				if err := c.replace(context.WithoutCancel(ctx), name); err != nil {
					cancel(fmt.Errorf("replacing %s: %w", name, err))
				}
			})
		}
	}
}

// pick chooses the filler that ends next: of the next node that has more than one.
func (c *churn) pick() (string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for range c.nodes {
		node := c.nodes[c.next]
		c.next = (c.next + 1) % len(c.nodes)
		if held := c.held[node]; len(held) > 1 {
			c.held[node] = held[1:]
			return held[0], true
		}
	}
	return "", false
}

// replace ends a filler, as a pod that is done, and makes another one.
func (c *churn) replace(ctx context.Context, name string) error {
	pods := c.clients.kube.CoreV1().Pods(others)
	if _, err := pods.Patch(ctx, name, types.MergePatchType, []byte(`{"status":{"phase":"Succeeded"}}`), metav1.PatchOptions{}, "status"); err != nil {
		return err
	}
	if err := c.clients.remove(ctx, others, name); err != nil {
		return err
	}
	c.mu.Lock()
	p := filler(c.contender, c.number)
	c.number++
	c.made[p.Name] = time.Now()
	c.mu.Unlock()
	return c.clients.put(ctx, p)
}

// bound takes note of a filler that got its node.
func (c *churn) bound(pod *corev1.Pod, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if made, ok := c.made[pod.Name]; ok {
		delete(c.made, pod.Name)
		c.held[pod.Spec.NodeName] = append(c.held[pod.Spec.NodeName], pod.Name)
		c.waits = append(c.waits, at.Sub(made))
	}
}

// replaced is how many fillers wait for a node, and how long those waited that have one, but for the first so many.
func (c *churn) replaced(but int) (waiting int, waits []time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.made), slices.Clone(c.waits[but:])
}

// repeat does something many times a second until ctx ends. It returns the first error.
func repeat(ctx context.Context, perSecond int, do func(ctx context.Context, n int) error) error {
	n := 0
	err := wait.PollUntilContextCancel(ctx, time.Second/time.Duration(perSecond), false, func(ctx context.Context) (bool, error) {
		err := do(context.WithoutCancel(ctx), n)
		n++
		return false, err
	})
	if ctx.Err() != nil {
		return nil
	}
	return err
}
