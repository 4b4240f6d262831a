// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package rebalance

import (
	"cmp"
	"slices"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/policy"
	"github.com/caldera-scheduler/caldera/pkg/volcano/arguments"
)

// Spread chooses pods of nodes that are used too much, so that they come to run on nodes that are used little: the fullest node
// first, and of a node the pods that matter least, until all its loads are below their targets. A pod is chosen only if its own
// node is short of something that it asks for, and if one of the nodes that are used little takes it and stays within the
// targets by what it asks for. Nodes whose loads are not known neither lose nor get pods.
//
// Source: Volcano pkg/scheduler/plugins/rescheduling/low_node_utilization.go. There a load that is not known is 0 percent, what
// the nodes with little use have left is one sum, pods that ask for nothing are all evicted, and nobody looks for a place.
func Spread(by *arguments.LowNodeUtilization, nodes []Node, protection *policy.Protection) []Choice {
	var low, high []*place
	for i := range nodes {
		switch p := placeOf(&nodes[i], by); {
		case p == nil:
		case p.little && !p.Spec.Unschedulable:
			low = append(low, p)
		case p.much:
			high = append(high, p)
		}
	}
	slices.SortStableFunc(low, func(a, b *place) int { return cmp.Compare(a.load, b.load) })
	slices.SortStableFunc(high, func(a, b *place) int { return cmp.Compare(b.load, a.load) })
	var chosen []Choice
	for _, from := range high {
		running := slices.SortedFunc(slices.Values(from.Running), lessNeeded)
		for _, v := range running {
			why := from.shortOf(v.Task)
			if why == "" || tied(v.Task) || protection.Protects(v) != "" || protection.NeededBy(v) != "" {
				continue
			}
			i := slices.IndexFunc(low, func(to *place) bool { return to.takes(v.Task, from) })
			if i < 0 {
				continue
			}
			protection.Take(v)
			from.lose(v.Task)
			low[i].gain(v.Task)
			chosen = append(chosen, Choice{Victim: v, Why: why, To: low[i].Name})
		}
	}
	return chosen
}

// lessNeeded is the order in which pods leave a node: those without a priority first, then by priority, then by the class of
// their service (BestEffort, Burstable, Guaranteed), then by UID. Source: Volcano pkg/scheduler/plugins/rescheduling.
func lessNeeded(a, b model.Victim) int {
	p, q := a.Task.Pod, b.Task.Pod
	if (p.Spec.Priority == nil) != (q.Spec.Priority == nil) {
		if p.Spec.Priority == nil {
			return -1
		}
		return 1
	}
	priorities := 0
	if p.Spec.Priority != nil {
		priorities = cmp.Compare(*p.Spec.Priority, *q.Spec.Priority)
	}
	return cmp.Or(priorities, cmp.Compare(service(p), service(q)), cmp.Compare(p.UID, q.UID))
}
