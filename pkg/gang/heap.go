// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"container/heap"

	fwk "k8s.io/kube-scheduler/framework"
)

// candidate is a node that passes the filters of a class.
type candidate struct {
	node int
	name string
	// info is the node as last looked at, generation which state of it that was.
	info       fwk.NodeInfo
	generation int64
	// checked is how many planned pods the last filtering knew of.
	checked int
	// parts are the weighted scores by plugin, total their sum.
	raw   []fwk.PluginScore
	parts []int64
	total int64
	// rank is the position in scan order; it breaks ties.
	rank int
	// at is the position in the heap.
	at int
}

// see takes the node as it is on the overlay now.
func (e *candidate) see(o *overlay) {
	e.info = o.at(e.node)
	e.generation = e.info.GetGeneration()
	e.checked = len(o.added)
}

// candidates is a heap with the best node at index 0.
type candidates []*candidate

func (h candidates) Len() int { return len(h) }

func (h candidates) Less(i, j int) bool {
	if h[i].total != h[j].total {
		return h[i].total > h[j].total
	}
	return h[i].rank < h[j].rank
}

func (h candidates) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i, j
}

// Push implements heap.Interface.
func (h *candidates) Push(x any) {
	e := x.(*candidate)
	e.at = len(*h)
	*h = append(*h, e)
}

// Pop implements heap.Interface.
func (h *candidates) Pop() any {
	old := *h
	e := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return e
}

func (h *candidates) push(e *candidate)   { heap.Push(h, e) }
func (h *candidates) fix(e *candidate)    { heap.Fix(h, e.at) }
func (h *candidates) remove(e *candidate) { heap.Remove(h, e.at) }
func (h *candidates) init()               { heap.Init(h) }
