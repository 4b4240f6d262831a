// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// turner makes hopeless jobs possible: it gives them an idle node, which has room for one of them.
type turner struct {
	scenario scenario
	kind     kind
	clients  clients
	board    *board
}

func newTurner(s scenario, k kind, c clients) *turner {
	return &turner{scenario: s, kind: k, clients: c, board: newBoard(func(p *corev1.Pod) string { return p.Spec.NodeName })}
}

// run gives the nodes, spread over the time in which probes are made, and returns how long each stayed without its job.
func (t *turner) run(ctx context.Context) ([]time.Duration, error) {
	n := t.scenario.turns(t.kind)
	if n == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var mu sync.Mutex
	var waits []time.Duration
	var wg sync.WaitGroup
	every := time.Duration(t.scenario.Probes) * t.scenario.Every / time.Duration(n)
	for i := range n {
		wg.Go(func() {
			select {
			case <-time.After(every/2 + every*time.Duration(i)):
			case <-ctx.Done():
				return
			}
			wait, ok, err := t.one(ctx, nodeName(poolSpare, i))
			if err != nil {
				cancel(err)
			}
			if ok {
				mu.Lock()
				waits = append(waits, wait)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return waits, context.Cause(ctx)
}

// one gives one node and waits for a job to take it.
func (t *turner) one(ctx context.Context, node string) (time.Duration, bool, error) {
	w := t.board.add(node, t.kind.pods())
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}},"spec":{"taints":[{"key":%q,"effect":"NoSchedule"}]}}`, poolLabel, cmp.Or(t.kind.pool, poolFull), spareTaint)
	if _, err := t.clients.kube.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return 0, false, fmt.Errorf("giving node %s: %w", node, err)
	}
	wait, ok := w.await(ctx, time.Now(), t.scenario.Patience)
	return wait, ok, nil
}
