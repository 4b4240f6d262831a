// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// mostColumns is how many resources leftovers remember; a request for another one begins anew.
const mostColumns = 16

// leftovers are what nodes have left of the resources that jobs ask for, one after the other in memory, from one plan to the next. Whether there is
// room for a gang at all is a sum over all nodes; to ask each node for it would read half a dozen places all over the memory for each, which takes tens of
// milliseconds on 50,000 nodes. What is known of a node holds for one generation of it, as in classCache.
type leftovers struct {
	generations []int64
	columns     []column
}

// column is one resource.
type column struct {
	name corev1.ResourceName
	// left is what each node has left. Known is false where a node does not list the resource.
	left  []int64
	known []bool
}

// remainders are the leftovers of some nodes as a request needs them.
type remainders struct {
	table   *leftovers
	request resource.Vector
	// columns are those of the request's resources, in its order; nil where the nodes are asked themselves.
	columns []int
}

// leftovers returns what the nodes have left for a request. Pods that are assumed on the snapshot do not change the generations of its nodes, so that
// nothing may be learned there meanwhile.
func (a *attempt) leftovers(request resource.Vector) *remainders {
	if a.assumed > 0 {
		return &remainders{request: request}
	}
	return a.planner.leftovers.of(a.overlay.nodes, request)
}

// of returns the leftovers of nodes for a request. The table follows the longest list of nodes; shorter ones, such as those of a rack, are asked
// themselves.
func (t *leftovers) of(nodes []fwk.NodeInfo, request resource.Vector) *remainders {
	r := &remainders{table: t, request: request}
	if len(nodes) < len(t.generations)/2 || len(request) > mostColumns {
		return r
	}
	if len(nodes) != len(t.generations) || len(t.columns)+len(request) > 2*mostColumns {
		*t = leftovers{generations: make([]int64, len(nodes))}
		for i := range t.generations {
			t.generations[i] = -1
		}
	}
	for _, a := range request {
		r.columns = append(r.columns, t.column(nodes, a.Name))
	}
	return r
}

// column returns the position of the column of a resource, which is added where it is not there yet.
func (t *leftovers) column(nodes []fwk.NodeInfo, name corev1.ResourceName) int {
	if k := slices.IndexFunc(t.columns, func(c column) bool { return c.name == name }); k >= 0 {
		return k
	}
	c := column{name: name, left: make([]int64, len(nodes)), known: make([]bool, len(nodes))}
	for i, n := range nodes {
		if n.GetGeneration() == t.generations[i] {
			c.left[i], c.known[i] = idle(n, name)
		}
	}
	t.columns = append(t.columns, c)
	return len(t.columns) - 1
}

// renew takes in a node that is not what it was.
func (t *leftovers) renew(i int, n fwk.NodeInfo, generation int64) {
	for k := range t.columns {
		c := &t.columns[k]
		c.left[i], c.known[i] = idle(n, c.name)
	}
	t.generations[i] = generation
}

// places is how many pods with the request the idle resources of a node of the overlay hold, and which allow no more: see fewest.
func (r *remainders) places(o *overlay, node int) (places int, short uint64) {
	base := o.nodes[node]
	if info := o.at(node); r.columns == nil || info != base {
		return fewest(r.request, func(i int) (int64, bool) { return idle(info, r.request[i].Name) })
	}
	t := r.table
	if generation := base.GetGeneration(); generation != t.generations[node] {
		t.renew(node, base, generation)
	}
	return fewest(r.request, func(i int) (int64, bool) {
		c := &t.columns[r.columns[i]]
		return c.left[node], c.known[node]
	})
}
