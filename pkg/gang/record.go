// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"context"
	"fmt"
	"slices"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// recordLast records the task that was placed last, which nobody asks about when it was the last of all.
func (a *attempt) recordLast(ctx context.Context) error {
	record := a.last
	if record == nil {
		return nil
	}
	a.last = nil
	return record(ctx)
}

// record puts the pod on the overlay and tells every class whose filters look at other pods. Any pod with the same labels does, unless
// somebody follows each.
func (a *attempt) record(ctx context.Context, c *class, t *model.Task, e *candidate) error {
	pod := c.podInfo
	if t.Class != c.task.Class || t != c.task && dependence(c.state)&(OnPodsElsewhere|ScoresOnPodsElsewhere) != 0 {
		var err error
		if pod, err = a.planner.NewPodInfo(t.Pod); err != nil {
			return fmt.Errorf("reading pod %s/%s: %w", t.Pod.Namespace, t.Pod.Name, err)
		}
	}
	info := a.overlay.add(e.node, pod, t)
	for _, other := range a.classes {
		if other.state == nil || !other.looksAround {
			continue
		}
		if err := other.addPod(ctx, pod, info); err != nil {
			return err
		}
	}
	return nil
}

// follow puts the pods planned so far on the snapshot, where scores count them.
func (a *attempt) follow() error {
	for ; a.assumed < len(a.overlay.added); a.assumed++ {
		p := a.overlay.added[a.assumed]
		forget, err := a.planner.Assume(p.task.Pod, a.overlay.at(p.node).Node().Name)
		if err != nil {
			return fmt.Errorf("putting pod %s/%s on the snapshot for the plan: %w", p.task.Pod.Namespace, p.task.Pod.Name, err)
		}
		a.forget = append(a.forget, forget)
	}
	return nil
}

// unfollow takes the pods planned off the snapshot.
func (a *attempt) unfollow(ctx context.Context) {
	for _, forget := range slices.Backward(a.forget) {
		forget(ctx)
	}
	a.assumed, a.forget = 0, nil
}
