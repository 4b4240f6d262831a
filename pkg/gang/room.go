// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"context"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/caldera-scheduler/caldera/pkg/node"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// idle returns what a node has left of a resource, and whether the node says anything about it. A device that a node
// does not list may still come from a resource claim, so its absence decides nothing here.
func idle(info fwk.NodeInfo, name corev1.ResourceName) (left int64, known bool) {
	allocatable, requested := node.Amounts(info, name)
	switch name {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, corev1.ResourcePods:
		return allocatable - requested, true
	}
	return allocatable - requested, allocatable > 0
}

// room is how many pods with this request the idle resources of a node hold: an upper bound of what its filters allow.
func room(info fwk.NodeInfo, request resource.Vector) int { return roomBeside(info, request, nil) }

// roomBeside is the same beside others that are about to take some of it.
func roomBeside(info fwk.NodeInfo, request, others resource.Vector) int {
	places := int64(math.MaxInt32)
	for _, a := range request {
		if left, known := idle(info, a.Name); known && a.Value > 0 {
			places = min(places, max(0, left-others.Get(a.Name))/a.Value)
		}
	}
	return int(places)
}

// insufficient gives the reasons a node without room has, or will have once it is full: the resources that allow the
// fewest pods, in the words of upstream's NodeResourcesFit.
func (c *class) insufficient(info fwk.NodeInfo) []string {
	_, short := fewest(c.task.Request, func(i int) (int64, bool) { return idle(info, c.task.Request[i].Name) })
	return c.shortage(short)
}

// shortage gives the reasons for a set of resources, given by their positions in the request.
func (c *class) shortage(short uint64) []string {
	reasons, ok := c.shortages[short]
	if !ok {
		reasons = shortages(c.task.Request, short)
		c.shortages[short] = reasons
	}
	return reasons
}

// fewest is how many pods with a request there is room for, and the set of those resources that allow no more. Idle says how much is left of each
// resource of the request, and whether that is known.
func fewest(request resource.Vector, idle func(i int) (left int64, known bool)) (places int, short uint64) {
	least := int64(math.MaxInt64)
	for i := range request {
		value := request[i].Value
		if value <= 0 {
			continue
		}
		left, known := idle(i)
		if !known {
			continue
		}
		n := int64(0)
		if left >= value {
			n = left / value
		}
		switch {
		case n < least:
			least, short = n, 1<<i
		case n == least:
			short |= 1 << i
		}
	}
	return int(min(least, math.MaxInt32)), short
}

// shortages are the reasons for a set of resources, given by their positions in the request.
func shortages(request resource.Vector, short uint64) []string {
	var reasons []string
	for i, a := range request {
		switch {
		case short&(1<<i) == 0:
		case a.Name == corev1.ResourcePods:
			reasons = append(reasons, "Too many pods")
		default:
			reasons = append(reasons, insufficientPrefix+string(a.Name))
		}
	}
	return reasons
}

// places is how many pods of the class a node can hold at most, and 0 when it is refused for lack of room.
func (c *class) places(ctx context.Context, info fwk.NodeInfo) int {
	n := room(info, c.task.Request)
	if n == 0 && !c.refusedForRoom(ctx, info) {
		return 1
	}
	return n
}

// refusedForRoom reports whether a node without room for the request is refused without running the filters. It makes sure on the
// first such node that the filters agree: some profiles see no obstacle (NodeResourcesFit disabled or told to ignore the resource).
func (c *class) refusedForRoom(ctx context.Context, info fwk.NodeInfo) bool {
	if !c.checkedRequests {
		c.checkedRequests = true
		// The node may also be refused for another reason; then the arithmetic stays on, and does no harm.
		c.trustRequests = !c.runFilters(ctx, info).IsSuccess()
	}
	return c.trustRequests
}

// hopeless adds up the room of all nodes and reports whether it is below what the class must place.
func (c *class) hopeless(ctx context.Context) bool {
	if c.needed == 0 {
		return false
	}
	o, places, full := c.attempt.overlay, 0, -1
	left := c.attempt.leftovers(c.task.Request)
	var nodes [][2]uint64 // How many have which shortage: there are few of these.
	for i := range c.size() {
		node := c.node(i)
		n, short := left.places(o, node)
		if n == 0 && full < 0 {
			full = node
		}
		if places += n; places >= c.needed {
			return false
		}
		k := slices.IndexFunc(nodes, func(s [2]uint64) bool { return s[0] == short })
		if k < 0 {
			k, nodes = len(nodes), append(nodes, [2]uint64{short})
		}
		nodes[k][1]++
	}
	if full >= 0 && !c.refusedForRoom(ctx, o.at(full)) {
		return false
	}
	if c.only == nil {
		// All of them are told anew, so that it need not be known which of them lacks what.
		c.refusals.byNode = nil
		for _, s := range nodes {
			c.refusals.full = append(c.refusals.full, counted{c.shortage(s[0]), int(s[1])}) //nolint:gosec // not more than there are nodes
		}
	} else {
		for _, node := range c.only {
			c.refusals.node(o, node, c.insufficient(o.at(node)))
		}
	}
	c.attempt.short, c.attempt.bound = c, len(c.attempt.placed)+places
	return true
}
