// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package hypernode

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/node"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// Weights are how much each resource counts when domains and their nodes are compared. Resources that are not listed do not.
type Weights map[corev1.ResourceName]int64

// Account is what the nodes of a domain have and what is requested of them.
type Account struct{ Allocatable, Requested resource.Vector }

// score is how full a domain would be with a request on top, 0 to 1; 0 when something does not suffice.
func (w Weights) score(request resource.Vector, a Account) float64 {
	var terms []node.Term
	for _, r := range request {
		if weight, listed := w[r.Name]; listed && r.Value > 0 {
			terms = append(terms, node.Term{Name: r.Name, Request: r.Value, Weight: weight})
		}
	}
	return node.Allocation(terms, func(name corev1.ResourceName) (allocatable, requested int64) {
		return a.Allocatable.Get(name), a.Requested.Get(name)
	})
}

// used is how full a domain is, 0 to 1: the mean over the resources that count.
func (w Weights) used(a Account) float64 {
	var terms []node.Term
	for _, has := range a.Allocatable {
		terms = append(terms, node.Term{Name: has.Name, Weight: w[has.Name]})
	}
	return node.Allocation(terms, func(name corev1.ResourceName) (allocatable, requested int64) {
		return a.Allocatable.Get(name), min(a.Requested.Get(name), a.Allocatable.Get(name))
	})
}

// Choice is where a turn of a job may be planned.
type Choice struct {
	// Domains are tried in this order; none when Refusal says why there are none.
	Domains []*Domain
	// Refusal is why the job cannot start at all, and what to change.
	Refusal string
}

// ceiling is the highest tier that a job may span.
func (t *Tree) ceiling(asks *model.NetworkTopology) (tier int, refusal string) {
	switch {
	case !asks.Hard:
		return t.top.Tier, ""
	case t.Empty():
		return 0, asks.Field + " is hard, and there are no HyperNodes: create them, or set its mode to soft"
	case asks.TierName != "":
		tier, known := t.TierOf(asks.TierName)
		if !known {
			return 0, fmt.Sprintf("%s.highestTierName is %q, and no HyperNode has that tierName: use one that exists", asks.Field, asks.TierName)
		}
		return tier, ""
	}
	return asks.HighestTier, ""
}

// Choose says inside of which domains a turn is to be tried for a job that asks for a topology: the fastest first, of a tier
// those that the tasks fill most. A job of which tasks are on nodes stays around these. Account adds up a domain.
func (t *Tree) Choose(job *model.Job, weights Weights, account func(*Domain) Account) Choice {
	ceiling, refusal := t.ceiling(job.Group.Topology)
	if refusal != "" {
		return Choice{Refusal: refusal}
	}
	if around := t.Around(job.Nodes()); around != nil {
		if around.Tier > ceiling {
			return Choice{Refusal: fmt.Sprintf(
				"%s allows tier %d, and its tasks on nodes have HyperNode %s of tier %d in common: restart the job, or raise the tier",
				job.Group.Topology.Field, ceiling, around.Name, around.Tier)}
		}
		var domains []*Domain
		for d := around; d != nil && d.Tier <= ceiling; d = d.Parent {
			domains = append(domains, d)
		}
		return Choice{Domains: domains}
	}
	domains := t.upTo(ceiling)
	if len(domains) == 0 {
		return Choice{Refusal: fmt.Sprintf(
			"%s allows tier %d, and no HyperNode with nodes is of that tier or a lower one: raise it", job.Group.Topology.Field, ceiling)}
	}
	t.sort(domains, job, weights, account)
	return Choice{Domains: domains}
}

// upTo are the domains with nodes up to a tier.
func (t *Tree) upTo(tier int) []*Domain {
	var domains []*Domain
	for _, d := range append(slices.Clone(t.domains), t.top) {
		if d.Tier <= tier && len(d.Nodes) > 0 {
			domains = append(domains, d)
		}
	}
	return domains
}

// sort orders domains by tier, and within one by how much the waiting tasks of the job would fill them. Those that tie, as all do for a job of
// which not all tasks fit, or that asks for nothing that counts, are ordered by how full they are.
func (t *Tree) sort(domains []*Domain, job *model.Job, weights Weights, account func(*Domain) Account) {
	var asks resource.Vector
	for _, d := range job.Pending {
		asks.AddTimes(d.Request, int64(d.Count))
	}
	type full struct{ filled, used float64 }
	scores := make(map[*Domain]full, len(domains))
	for _, d := range domains {
		a := account(d)
		scores[d] = full{weights.score(asks, a), weights.used(a)}
	}
	slices.SortFunc(domains, func(a, b *Domain) int {
		return cmp.Or(cmp.Compare(a.Tier, b.Tier), -cmp.Compare(scores[a].filled, scores[b].filled),
			-cmp.Compare(scores[a].used, scores[b].used), cmp.Compare(a.Name, b.Name))
	})
}

// Nearness scores nodes for a job that asks for a topology by how near they are to its tasks.
type Nearness struct {
	tree   *Tree
	around *Domain
	// shares are the parts of the job's tasks that leaves hold.
	shares map[*Domain]float64
}

// NearnessOf returns how near nodes are to the tasks of a job; nil for a job that has none on nodes.
func (t *Tree) NearnessOf(job *model.Job) *Nearness {
	nodes := job.Nodes()
	n := &Nearness{tree: t, around: t.Around(nodes), shares: map[*Domain]float64{}}
	if n.around == nil {
		return nil
	}
	for _, name := range nodes {
		n.shares[t.Leaf(name)] += 1 / float64(job.Counts.Total())
	}
	return n
}

// Score is 0 for a node that shares nothing but the cluster with the tasks, and 1 for one in the lowest domain around them, with
// the part of the tasks that its own lowest domain holds on top: 0 to 2.
func (n *Nearness) Score(name string) float64 {
	leaf := n.tree.Leaf(name)
	score := 1.0
	if !leaf.within(n.around) {
		highest, lowest := n.tree.top.Tier, n.tree.lowest()
		score = float64(highest-Common(leaf, n.around).Tier) / float64(highest-lowest)
	}
	if score == 1 {
		score += n.shares[leaf]
	}
	return score
}

// Fullness scores nodes for a task of any other job by how full the domains that they are in would be with it, so that whole
// domains stay free for gangs.
type Fullness struct {
	tree   *Tree
	fading float64
	scores map[*Domain]float64
	total  float64
	tiers  []int
}

// FullnessOf returns how full domains are for a request. The score of a tier counts fading times as much as that of the tier
// below it; 0: the lowest alone counts.
func (t *Tree) FullnessOf(request resource.Vector, weights Weights, fading float64, account func(*Domain) Account) *Fullness {
	f := &Fullness{tree: t, fading: fading, scores: make(map[*Domain]float64, len(t.domains))}
	for _, d := range t.domains {
		f.scores[d] = weights.score(request, account(d))
		if len(f.tiers) == 0 || f.tiers[len(f.tiers)-1] != d.Tier {
			f.tiers = append(f.tiers, d.Tier)
			f.total += f.weight(d.Tier)
		}
	}
	return f
}

func (f *Fullness) weight(tier int) float64 { return math.Pow(f.fading, float64(tier-f.tree.lowest())) }

// Score is 0 to 1: the mean of how full the domains around a node would be. In a tier in which it is in no domain it counts as in
// a full one: what belongs to no domain is used first. It is 0 without HyperNodes.
func (f *Fullness) Score(name string) float64 {
	if f.total == 0 {
		return 0
	}
	of := map[int]float64{}
	for d := f.tree.leaves[name]; d != nil && d != f.tree.top; d = d.Parent {
		of[d.Tier] = f.scores[d]
	}
	sum := 0.0
	for _, tier := range f.tiers {
		score, in := of[tier]
		if !in {
			score = 1
		}
		sum += f.weight(tier) * score
	}
	return sum / f.total
}
