// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/caldera-scheduler/caldera/pkg/heap"
)

// candidate is a node that passes the filters of a class.
type candidate struct {
	node int
	// info is the node as last looked at, generation which state of it that was.
	info       fwk.NodeInfo
	generation int64
	// marks are the scores by plugin, total their weighted sum, and fine what rounding took from that or added to it.
	*marks
	total int64
	fine  float64
	// rank is the position in scan order; it breaks ties.
	rank int
	// at is the position in the heap.
	at int
}

// marks are the scores of a node by plugin, raw and weighted. Nodes that score alike share them.
type marks struct {
	raw   []fwk.PluginScore
	parts []int64
	// number is which of all marks they are, while those of all candidates are gone through.
	number int
}

// Position implements heap.Element.
func (e *candidate) Position() *int { return &e.at }

// begin makes it a node as it is on the overlay, outside a heap.
func (e *candidate) begin(o *overlay, node int) {
	e.node, e.at = node, -1
	e.see(o)
}

// see takes the node as it is on the overlay now.
func (e *candidate) see(o *overlay) {
	e.info = o.at(e.node)
	e.generation = e.info.GetGeneration()
}

// candidates are the nodes of a class: those that pass its filters, and how far the others have been looked at.
type candidates struct {
	// nodes is how many nodes there are; only are those that PreFilter left, if it did not leave all.
	nodes int
	only  []int
	// start is where the scan of the nodes began; next is how many have been looked at.
	start, next int
	// exhausted: every node has been looked at and none is left.
	exhausted bool
	heap      *heap.Heap[*candidate]
	// entries are the candidates by rank, nil for nodes that are none; deferred are those that a filter refused that looks at other nodes' pods, by node.
	entries  []*candidate
	deferred map[int]*candidate
	scores   scorer
	// unreservable are nodes where Reserve refused what Filter had promised.
	unreservable map[int]bool
	// trustRequests: a node whose idle resources are below the request is refused without running the filters; valid once
	// checkedRequests.
	trustRequests, checkedRequests bool

	// uses is how many plans have used them.
	uses int
	// newest is the highest generation of the nodes when all of them had been looked at, and filled are those that were refused with
	// what was planned on them.
	newest int64
	filled sets.Set[int]
}

// newCandidates are none of so many nodes yet. The scan begins at any number; there may have been more nodes when it was found.
func newCandidates(nodes, start int) candidates {
	return candidates{
		nodes: nodes, start: start % max(1, nodes), heap: bestFirst(), deferred: map[int]*candidate{}, unreservable: map[int]bool{},
	}
}

// bestFirst returns an empty heap with the best node on top.
func bestFirst() *heap.Heap[*candidate] {
	return heap.New(func(a, b *candidate) bool {
		if exactly := cmp.Compare(float64(a.total)+a.fine, float64(b.total)+b.fine); exactly != 0 {
			return exactly > 0
		}
		return a.rank < b.rank
	})
}

// has reports whether a node is one, and not deferred or out.
func (c *candidates) has(e *candidate) bool { return e.rank < len(c.entries) && c.entries[e.rank] == e }

// clear leaves no node.
func (c *candidates) clear() {
	c.exhausted, c.heap, c.entries, c.deferred = true, bestFirst(), nil, nil
}

// size is the number of nodes the class may use.
func (c *candidates) size() int {
	if c.only != nil {
		return len(c.only)
	}
	return c.nodes
}

// node returns node number i in scan order, which begins where the last plan's scan ended.
func (c *candidates) node(i int) int {
	if c.only != nil {
		return c.only[i]
	}
	return (c.start + i) % c.nodes
}

// rank is the position of a node in scan order, -1 for one that PreFilter did not leave.
func (c *candidates) rank(node int) int {
	if c.only != nil {
		return slices.Index(c.only, node)
	}
	return (node - c.start + c.nodes) % c.nodes
}

// entry returns the candidate that a node is; nil if it is none.
func (c *candidates) entry(node int) *candidate {
	if rank := c.rank(node); rank >= 0 && rank < len(c.entries) {
		return c.entries[rank]
	}
	return nil
}

// allowed reports whether PreFilter left a node, and no reservation was refused there.
func (c *candidates) allowed(node int) bool {
	return !c.unreservable[node] && (c.only == nil || slices.Contains(c.only, node))
}

// add makes a node one.
func (c *candidates) add(e *candidate) {
	if more := e.rank + 1 - len(c.entries); more > 0 {
		c.entries = append(c.entries, make([]*candidate, more)...)
	}
	c.entries[e.rank] = e
	c.heap.Put(e)
}

// remove takes a candidate out; nodes on which room is kept or made are none.
func (c *candidates) remove(e *candidate) {
	if !c.has(e) {
		return
	}
	c.heap.Remove(e)
	c.entries[e.rank] = nil
	c.scores.lose(e)
}

// refusedOf returns those of the nodes that are none: what is planned on them may never come.
func (c *candidates) refusedOf(nodes map[int]fwk.NodeInfo) sets.Set[int] {
	refused := sets.New[int]()
	for i := range nodes {
		if c.entry(i) == nil {
			refused.Insert(i)
		}
	}
	return refused
}
