// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang

import (
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/caldera-scheduler/caldera/pkg/heap"
)

// candidate is a node that passes the filters of a class.
type candidate struct {
	node int
	name string
	// info is the node as last looked at, generation which state of it that was.
	info       fwk.NodeInfo
	generation int64
	// parts are the weighted scores by plugin, total their sum.
	raw   []fwk.PluginScore
	parts []int64
	total int64
	// rank is the position in scan order; it breaks ties.
	rank int
	// at is the position in the heap.
	at int
}

// Position implements heap.Element.
func (e *candidate) Position() *int { return &e.at }

// see takes the node as it is on the overlay now.
func (e *candidate) see(o *overlay) {
	e.info = o.at(e.node)
	e.generation = e.info.GetGeneration()
}

// newCandidates returns an empty heap with the best node on top.
func newCandidates() *heap.Heap[*candidate] {
	return heap.New(func(a, b *candidate) bool {
		if a.total != b.total {
			return a.total > b.total
		}
		return a.rank < b.rank
	})
}
