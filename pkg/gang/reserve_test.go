// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
)

// refusing is a plugin that refuses reservations on one node.
type refusing string

func (refusing) Name() string { return "Refusing" }

func (r refusing) Reserve(_ context.Context, _ fwk.CycleState, _ *corev1.Pod, node string) *fwk.Status {
	if node == string(r) {
		return fwk.NewStatus(fwk.Unschedulable, "taken")
	}
	return nil
}

func (refusing) Unreserve(context.Context, fwk.CycleState, *corev1.Pod, string) {}

// TestANodeKeptForAPodMayRefuseItsReservation: the pod goes elsewhere then, and the node is not asked for ever.
func TestANodeKeptForAPodMayRefuseItsReservation(t *testing.T) {
	w := newFixture(t, nodeShapes{{count: 2, cpu: "4", memory: "8Gi"}}, nil, refusing("node-0"))
	w.planner.ReservationCanFail = func(*corev1.Pod) bool { return true }
	job := w.job(gangOf("g", 1, 1, "1", func(_ int, p *corev1.Pod) { p.Status.NominatedNodeName = "node-0" }))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	done := make(chan string, 1)
	go func() {
		plan, err := w.planner.Plan(ctx, asking(job))
		switch {
		case err != nil:
			done <- err.Error()
		case len(plan.Placements) != 1:
			done <- "not placed: " + plan.Reason.Text()
		default:
			done <- plan.Placements[0].Node
		}
	}()
	select {
	case got := <-done:
		if got != "node-1" {
			t.Errorf("the plan ends with %q, want the pod on node-1", got)
		}
	case <-ctx.Done():
		t.Fatal("the plan does not end")
	}
}
