// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package networktopology

import (
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/caldera-scheduler/caldera/pkg/node"
	"github.com/caldera-scheduler/caldera/pkg/resource"
	"github.com/caldera-scheduler/caldera/pkg/topology/hypernode"
)

// accounts adds up what the nodes of every domain have, from one snapshot to the next: only nodes that changed are looked at. It
// is not safe for concurrent use.
type accounts struct {
	weights hypernode.Weights
	tree    *hypernode.Tree
	domains map[*hypernode.Domain]*hypernode.Account
	nodes   map[string]contribution
}

// contribution is what a node adds to the accounts of its domains, as of a generation of it.
type contribution struct {
	generation int64
	leaf       *hypernode.Domain
	hypernode.Account
}

// of returns the accounts of a tree's domains with the nodes of a snapshot.
func (a *accounts) of(tree *hypernode.Tree, nodes []fwk.NodeInfo) func(*hypernode.Domain) hypernode.Account {
	if a.tree != tree {
		a.tree, a.domains, a.nodes = tree, map[*hypernode.Domain]*hypernode.Account{}, make(map[string]contribution, len(nodes))
	}
	for _, info := range nodes {
		name := info.Node().Name
		before, known := a.nodes[name]
		if known && before.generation == info.GetGeneration() {
			continue
		}
		if known {
			a.add(before, -1)
		}
		now := contribution{generation: info.GetGeneration(), leaf: tree.Leaf(name), Account: a.read(info)}
		a.add(now, 1)
		a.nodes[name] = now
	}
	if len(a.nodes) > len(nodes) {
		a.forget(nodes)
	}
	return func(d *hypernode.Domain) hypernode.Account {
		if sum := a.domains[d]; sum != nil {
			return *sum
		}
		return hypernode.Account{}
	}
}

// forget takes out the nodes that the snapshot does not have.
func (a *accounts) forget(nodes []fwk.NodeInfo) {
	present := make(map[string]bool, len(nodes))
	for _, info := range nodes {
		present[info.Node().Name] = true
	}
	for name, c := range a.nodes {
		if !present[name] {
			a.add(c, -1)
			delete(a.nodes, name)
		}
	}
}

func (a *accounts) add(c contribution, n int64) {
	for d := c.leaf; d != nil; d = d.Parent {
		sum := a.domains[d]
		if sum == nil {
			sum = &hypernode.Account{}
			a.domains[d] = sum
		}
		sum.Allocatable.AddTimes(c.Allocatable, n)
		sum.Requested.AddTimes(c.Requested, n)
	}
}

// read takes the resources that count off a node.
func (a *accounts) read(info fwk.NodeInfo) hypernode.Account {
	var allocatable, requested resource.Vector
	for name := range a.weights {
		has, taken := node.Amounts(info, name)
		allocatable.Add(resource.Vector{{Name: name, Value: has}})
		requested.Add(resource.Vector{{Name: name, Value: taken}})
	}
	return hypernode.Account{Allocatable: allocatable, Requested: requested}
}
