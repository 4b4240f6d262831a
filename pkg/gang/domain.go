// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	fwk "k8s.io/kube-scheduler/framework"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// Domain is a set of nodes inside of which a gang is to be.
type Domain struct {
	Kind
	Name string
	// Tier orders domains: a gang is better inside of one with a smaller tier.
	Tier int
	// Nodes are their names; those that the snapshot does not have do not matter.
	Nodes []string
	// Short: going by what is idle it has too few places, and those behind it have no more.
	Short bool
}

// Kind names domains in messages to people, one of them and several.
type Kind struct{ One, Many string }

// The kinds of domains.
var (
	HyperNode      = Kind{"hyperNode", "HyperNodes"}
	TopologyDomain = Kind{"topology domain", "topology domains"}
)

// Domains says inside of which nodes gangs are to be.
type Domains interface {
	// DomainsOf returns the domains inside of which a turn of a job may be planned, in the order in which they are tried: nil for
	// anywhere. Refusal is why there are none at all, and what to change.
	DomainsOf(job *model.Job, nodes []fwk.NodeInfo) (domains []Domain, refusal string)
	// EvictingDomains is in how many of them evictions are tried; at least 1.
	EvictingDomains() int
}

// domains asks where a job may be planned.
func (p *Planner) domains(job *model.Job, nodes []fwk.NodeInfo) (domains []Domain, refusal string) {
	if job.Group != nil && job.Group.TopologyKey != "" {
		return labelDomains(job, nodes)
	}
	if p.Domains == nil {
		return nil, ""
	}
	return p.Domains.DomainsOf(job, nodes)
}

// evictingDomains is in how many domains evictions are tried for a job.
func (p *Planner) evictingDomains(job *model.Job) int {
	if job.Group != nil && job.Group.TopologyKey != "" {
		return mostLabelDomains
	}
	return p.Domains.EvictingDomains()
}

func (d Domain) String() string { return d.One + " " + d.Name }

// nowhere is the reason of a job that may be planned nowhere.
func nowhere(refusal string) model.Reason {
	return model.Reason{Kind: model.NotEnoughResources, Subject: nowhereSubject, Message: refusal}
}

// nowhereSubject is the subject of that reason.
const nowhereSubject = "domains"

// ground is nodes among which a turn is planned: all of a snapshot, or those of a domain.
type ground struct {
	all, nodes []fwk.NodeInfo
	// byName has those of nodes, and inside those in each domain, once somebody asks.
	byName map[string]fwk.NodeInfo
	inside map[string][]fwk.NodeInfo
}

func newGround(all []fwk.NodeInfo) *ground { return &ground{all: all, nodes: all} }

// in returns those of the nodes that are in a domain.
func (g *ground) in(d Domain) []fwk.NodeInfo {
	if in, known := g.inside[d.Name]; known {
		return in
	}
	if g.byName == nil {
		g.byName, g.inside = make(map[string]fwk.NodeInfo, len(g.nodes)), map[string][]fwk.NodeInfo{}
		for _, n := range g.nodes {
			g.byName[n.Node().Name] = n
		}
	}
	var in []fwk.NodeInfo
	for _, name := range d.Nodes {
		if n := g.byName[name]; n != nil {
			in = append(in, n)
		}
	}
	g.inside[d.Name] = in
	return in
}

// within returns the ground with nodes of it.
func (g *ground) within(nodes []fwk.NodeInfo) *ground { return &ground{all: g.all, nodes: nodes} }

// apart runs fn with nothing remembered of other plans, and forgets what it would remember: nodes have other positions inside of
// a domain.
func (p *Planner) apart(fn func() error) error {
	start, known := p.start, p.cache
	defer func() { p.start, p.cache = start, known }()
	p.start, p.cache = 0, classCache{}
	return fn()
}

// planInside plans inside of the first domain that has room. The reason why none has is that of the one in which most was placed;
// what does not come from the nodes, such as a full queue, is the same in all of them.
func (p *Planner) planInside(ctx context.Context, r Request, g *ground, domains []Domain) (Plan, error) {
	var nearest Plan
	tried := 0
	for _, d := range domains {
		in := g.in(d)
		if len(in) == 0 {
			continue
		}
		var plan Plan
		err := p.apart(func() (err error) {
			plan, err = p.planOn(ctx, r, g.within(in))
			return err
		})
		if err != nil || len(plan.Placements) > 0 || !plan.Reason.FromNodes && plan.Reason.Subject != nowhereSubject {
			return plan, err
		}
		if plan.Reason.Message = fmt.Sprintf("in %s: %s", d, plan.Reason.Message); tried == 0 || plan.fit >= nearest.fit {
			nearest = plan
		}
		if tried++; d.Short && !plan.Doubts.NoRoomNeeded {
			break
		}
	}
	switch {
	case tried == 0:
		nearest.Reason = nowhere(fmt.Sprintf("the %s that it may be in have no nodes", domains[0].Many))
	case tried > 1:
		nearest.Reason.Message += fmt.Sprintf("; %d %s were tried", tried, domains[0].Many)
	}
	return nearest, nil
}

// evictionOrder has the largest domains first. Of a part of a job those that have room by now are tried before, and those last that hold other
// parts.
func evictionOrder(r Request, g *ground, domains []Domain) []Domain {
	domains = slices.Clone(domains)
	if r.before == nil {
		slices.SortStableFunc(domains, func(a, b Domain) int { return b.Tier - a.Tier })
		return domains
	}
	taken, need := r.before.taken(), r.Job.Requirement().Tasks
	rank := make(map[string]int, len(domains))
	for _, d := range domains {
		in := g.in(d)
		if placesFor(r.Job, in, taken) >= need {
			rank[d.Name] = -1
			continue
		}
		for _, n := range in {
			if _, used := taken[n.Node().Name]; used {
				rank[d.Name] = 1
			}
		}
	}
	slices.SortStableFunc(domains, func(a, b Domain) int {
		x, y := rank[a.Name], rank[b.Name]
		return cmp.Or(cmp.Compare(min(x, 0), min(y, 0)), b.Tier-a.Tier, cmp.Compare(x, y))
	})
	return domains
}

// evictInside searches inside of domains, the largest first: there the cheapest victims are. Source: the gradients for eviction
// of Volcano's network-topology-aware, which of a tier take those at the end of the list; here those at its beginning.
func (p *Planner) evictInside(ctx context.Context, s Search, g *ground, domains []Domain) (st Statement, err error) {
	domains = evictionOrder(s.Request, g, domains)
	domains = domains[:min(len(domains), p.evictingDomains(s.Job))]
	for _, d := range domains {
		in := g.in(d)
		if len(in) == 0 {
			continue
		}
		err := p.apart(func() (err error) {
			st, err = p.evictOn(ctx, s, g.within(in))
			return err
		})
		if err != nil || st.Placements != nil {
			return st, err
		}
		st.Why = fmt.Sprintf("in %s: %s", d, st.Why)
	}
	return st, nil
}
