// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package hdrf

import (
	"slices"
)

// Clone returns a tree of its own with the same queues and jobs.
func (t *Tree) Clone() *Tree {
	c := &Tree{
		total: t.total, paths: t.paths, flat: t.flat, held: t.held.Clone(), left: slices.Clone(t.left),
		at: make(map[string]*node, len(t.at)), jobs: make(map[string]*job, len(t.jobs)),
	}
	copies := map[*node]*node{}
	c.root = t.root.clone(nil, copies)
	for queue, n := range t.at {
		c.at[queue] = copies[n]
	}
	all := make([]job, len(t.jobs))
	for key, j := range t.jobs {
		to := &all[len(c.jobs)]
		*to = *j
		to.at = copies[j.at]
		c.jobs[key] = to
	}
	for from, to := range copies {
		to.running = make([]*job, len(from.running))
		for i, j := range from.running {
			to.running[i] = c.jobs[j.key]
		}
	}
	return c
}

// clone copies a branch without its jobs.
func (n *node) clone(parent *node, copies map[*node]*node) *node {
	c := *n
	c.parent, c.allocated = parent, slices.Clone(n.allocated)
	c.children = make([]*node, len(n.children))
	copies[n] = &c
	for i, child := range n.children {
		c.children[i] = child.clone(&c, copies)
	}
	return &c
}
