// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"context"
	"math"

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
	fewest, short := int64(math.MaxInt64), uint64(0)
	for i, a := range c.task.Request {
		left, known := idle(info, a.Name)
		if !known || a.Value <= 0 {
			continue
		}
		switch places := max(0, left) / a.Value; {
		case places < fewest:
			fewest, short = places, 1<<i
		case places == fewest:
			short |= 1 << i
		}
	}
	reasons, ok := c.shortages[short]
	if !ok {
		reasons = shortages(c.task.Request, short)
		c.shortages[short] = reasons
	}
	return reasons
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
	places := 0
	var full fwk.NodeInfo
	for i := range c.size() {
		info := c.attempt.overlay.at(c.node(i))
		n := room(info, c.task.Request)
		if n == 0 && full == nil {
			full = info
		}
		if places += n; places >= c.needed {
			return false
		}
	}
	if full != nil && !c.refusedForRoom(ctx, full) {
		return false
	}
	for i := range c.size() {
		node := c.node(i)
		c.refusals.node(c.attempt.overlay, node, c.insufficient(c.attempt.overlay.at(node)))
	}
	c.attempt.short, c.attempt.bound = c, len(c.attempt.placed)+places
	return true
}
