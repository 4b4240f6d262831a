// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hypernode arranges the nodes of a cluster by network distance, as Volcano's HyperNodes describe it, and says inside
// of which of them a gang is to be tried. Source: reference for node plugins, section 1.11.
package hypernode

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
)

// Spec is a HyperNode as its users wrote it. A smaller tier is a faster network.
type Spec struct {
	Name, TierName string
	Tier           int
	Members        []Member
}

// Member selects nodes, or other HyperNodes, by one of its fields.
type Member struct {
	// HyperNode: it selects HyperNodes, else nodes.
	HyperNode bool
	Name      string
	Pattern   *regexp.Regexp
	// Labels selects nodes only.
	Labels labels.Selector
}

// Node is a node of the cluster.
type Node struct {
	Name   string
	Labels map[string]string
}

// TopName is the name of the HyperNode that holds all nodes, which nobody wrote; in Volcano it has the same name.
const TopName = "<cluster-top-hypernode>"

// Domain is a HyperNode in the tree.
type Domain struct {
	Name, TierName string
	Tier           int
	// Parent is nil for the top.
	Parent *Domain
	// Nodes are all nodes below it, by name.
	Nodes []string

	children []*Domain
	own      []string
}

// Tree is the HyperNodes of a cluster. It does not change.
type Tree struct {
	top *Domain
	// domains are those that users wrote, by tier and name.
	domains []*Domain
	// leaves maps a node to the lowest domain it is in.
	leaves map[string]*Domain
}

// Problem is what is wrong with a HyperNode and what to change.
type Problem struct{ HyperNode, Message string }

// Build makes a tree. What does not fit into one is left out and told: a HyperNode that several others hold, or one of the same
// or a higher tier, a node in several HyperNodes of which none holds the other. The one that comes first by tier and name keeps
// it. Members that match nothing may yet come, and are no problem.
func Build(specs []Spec, nodes []Node) (*Tree, []Problem) {
	b := &builder{byName: map[string]*Domain{}, tree: &Tree{top: &Domain{Name: TopName}, leaves: map[string]*Domain{}}}
	specs = slices.Clone(specs)
	slices.SortFunc(specs, func(x, y Spec) int { return cmp.Or(cmp.Compare(x.Tier, y.Tier), cmp.Compare(x.Name, y.Name)) })
	for _, s := range specs {
		d := &Domain{Name: s.Name, TierName: s.TierName, Tier: s.Tier}
		b.tree.domains = append(b.tree.domains, d)
		b.byName[s.Name] = d
		b.tree.top.Tier = max(b.tree.top.Tier, s.Tier)
	}
	b.tree.top.Tier++
	for i, s := range specs {
		b.adopt(b.tree.domains[i], s)
	}
	for _, d := range b.tree.domains {
		if d.Parent == nil {
			d.Parent = b.tree.top
		}
		d.Parent.children = append(d.Parent.children, d)
	}
	byName := make(map[string]*Node, len(nodes))
	for i := range nodes {
		byName[nodes[i].Name] = &nodes[i]
	}
	for i, s := range specs {
		b.house(b.tree.domains[i], s, nodes, byName)
	}
	b.tree.gather(nodes)
	return b.tree, b.problems
}

type builder struct {
	tree     *Tree
	byName   map[string]*Domain
	problems []Problem
}

func (b *builder) complain(d *Domain, format string, a ...any) {
	b.problems = append(b.problems, Problem{d.Name, fmt.Sprintf(format, a...)})
}

// adopt makes a domain the parent of the HyperNodes that are its members.
func (b *builder) adopt(d *Domain, s Spec) {
	for _, m := range s.Members {
		if !m.HyperNode {
			continue
		}
		if m.Pattern == nil {
			if child := b.byName[m.Name]; child != nil {
				b.adoptOne(d, child)
			}
			continue
		}
		for _, child := range b.tree.domains {
			if child != d && m.Pattern.MatchString(child.Name) {
				b.adoptOne(d, child)
			}
		}
	}
}

func (b *builder) adoptOne(d, child *Domain) {
	switch {
	case child.Tier >= d.Tier:
		b.complain(d, "its member %s is of tier %d, and it is of tier %d itself: give it a higher tier than its members; the member does not count until then",
			child.Name, child.Tier, d.Tier)
	case child.Parent != nil && child.Parent != d:
		b.complain(d, "its member %s is a member of HyperNode %s, too: remove it from one of them; it counts there until then", child.Name, child.Parent.Name)
	default:
		child.Parent = d
	}
}

// house puts the nodes that are members of a domain into it. Those that are in it by one of its members are no problem.
func (b *builder) house(d *Domain, s Spec, nodes []Node, byName map[string]*Node) {
	for _, m := range s.Members {
		if m.HyperNode {
			continue
		}
		if m.Pattern == nil && m.Labels == nil {
			if n := byName[m.Name]; n != nil {
				b.houseOne(d, n.Name)
			}
			continue
		}
		for i := range nodes {
			if m.matches(&nodes[i]) {
				b.houseOne(d, nodes[i].Name)
			}
		}
	}
}

func (m *Member) matches(n *Node) bool {
	if m.Pattern != nil {
		return m.Pattern.MatchString(n.Name)
	}
	return m.Labels.Matches(labels.Set(n.Labels))
}

func (b *builder) houseOne(d *Domain, node string) {
	leaf := b.tree.leaves[node]
	switch {
	case leaf == nil:
		b.tree.leaves[node] = d
		d.own = append(d.own, node)
	case !leaf.within(d):
		b.complain(d, "its node %s is in HyperNode %s, too, and neither holds the other: remove it from one of them; it counts there until then", node, leaf.Name)
	}
}

// within reports whether a domain is another, or below it.
func (d *Domain) within(other *Domain) bool {
	for ; d != nil; d = d.Parent {
		if d == other {
			return true
		}
	}
	return false
}

// gather collects the nodes of every domain from below.
func (t *Tree) gather(nodes []Node) {
	for _, d := range t.domains {
		for up := d; up != t.top; up = up.Parent {
			up.Nodes = append(up.Nodes, d.own...)
		}
	}
	for _, n := range nodes {
		t.top.Nodes = append(t.top.Nodes, n.Name)
	}
	for _, d := range append(t.domains, t.top) {
		slices.Sort(d.Nodes)
	}
}

// Empty reports whether there are no HyperNodes, so that all nodes are alike.
func (t *Tree) Empty() bool { return len(t.domains) == 0 }

// Top is the domain of all nodes, which is one tier above the highest.
func (t *Tree) Top() *Domain { return t.top }

// Leaf is the lowest domain that a node is in; the top for one that is in no HyperNode.
func (t *Tree) Leaf(node string) *Domain {
	if d := t.leaves[node]; d != nil {
		return d
	}
	return t.top
}

// TierOf is the tier that HyperNodes with a tier name have; several names may share a tier, but not the reverse.
func (t *Tree) TierOf(tierName string) (tier int, known bool) {
	for _, d := range t.domains {
		if d.TierName == tierName {
			return d.Tier, true
		}
	}
	return 0, false
}

// Common is the lowest domain that holds two.
func Common(a, b *Domain) *Domain {
	for ; a != nil; a = a.Parent {
		if b.within(a) {
			return a
		}
	}
	return nil
}

// Around is the lowest domain that holds all of some nodes; nil for none.
func (t *Tree) Around(nodes []string) *Domain {
	var around *Domain
	for _, n := range nodes {
		if leaf := t.Leaf(n); around == nil {
			around = leaf
		} else {
			around = Common(around, leaf)
		}
	}
	return around
}

// lowest is the lowest tier of the tree; that of the top when there is no other.
func (t *Tree) lowest() int {
	if len(t.domains) > 0 {
		return t.domains[0].Tier
	}
	return t.top.Tier
}
