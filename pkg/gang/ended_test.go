// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
)

// ending is a plugin that ends the context at one of its calls.
type ending struct {
	calls atomic.Int32
	last  int32
	end   context.CancelFunc
}

func (pl *ending) Name() string { return "Ending" }

func (pl *ending) call() {
	if pl.calls.Add(1) == pl.last {
		pl.end()
	}
}

func (pl *ending) Filter(context.Context, fwk.CycleState, *corev1.Pod, fwk.NodeInfo) *fwk.Status {
	pl.call()
	return nil
}

func (pl *ending) Score(context.Context, fwk.CycleState, *corev1.Pod, fwk.NodeInfo) (int64, *fwk.Status) {
	pl.call()
	return 0, nil
}

func (pl *ending) ScoreExtensions() fwk.ScoreExtensions { return nil }

// TestAPlanWhoseContextEndsFails ends it at every call of a plugin: nodes that nobody has looked at any more are not taken, and a scheduler
// that is told to stop does not crash.
func TestAPlanWhoseContextEndsFails(t *testing.T) {
	for last := int32(1); ; last++ {
		ctx, cancel := context.WithCancel(t.Context())
		pl := &ending{last: last, end: cancel}
		w := newFixture(t, nodeShapes{{count: 40, cpu: "1", memory: "32Gi"}}, nil, pl)
		plan, err := w.planner.Plan(ctx, asking(w.job(gangOf("a", 3, 3, "1"))))
		ended := ctx.Err() != nil
		cancel()
		if !ended {
			if err != nil || len(plan.Placements) != 3 || last < 40 {
				t.Errorf("with a context that does not end, %d are placed after %d calls: %v", len(plan.Placements), pl.calls.Load(), err)
			}
			return
		}
		// What comes after the last node was looked at needs no context.
		if err == nil && len(plan.Placements) != 3 || err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("when it ends at call %d, %d are placed: %v", last, len(plan.Placements), err)
		}
	}
}
