// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package hdrf

import "github.com/caldera-scheduler/caldera/pkg/resource"

// Branch is what the tree knows of a branch.
type Branch struct {
	Weight, Share float64
	Saturated     bool
	Allocated     resource.Portion
}

// Branches returns all branches by their names from below the root, joined by slashes; the root's is empty.
func (t *Tree) Branches() map[string]Branch {
	t.refresh()
	all := map[string]Branch{}
	var visit func(path string, n *node)
	visit = func(path string, n *node) {
		all[path] = Branch{Weight: n.weight, Share: n.share, Saturated: n.saturated, Allocated: n.allocated}
		for _, c := range n.children {
			visit(path+"/"+c.name, c)
		}
	}
	visit("", t.root)
	return all
}
