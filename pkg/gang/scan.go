// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"context"
	"fmt"
	"sync/atomic"

	fwk "k8s.io/kube-scheduler/framework"
)

// leastScan is how many nodes are looked at at a time at least, for the sake of those who look side by side.
const leastScan = 16

// scan looks at further nodes until there is a sample of feasible ones with room for all tasks wanted, or no node is
// left; then it scores what it found.
func (c *class) scan(ctx context.Context) error {
	p := c.attempt.planner
	sample := p.SampleSize(len(c.attempt.overlay.nodes))
	places, found := 0, 0
	if c.next == 0 {
		if len(c.entries) == 0 {
			c.entries = make([]*candidate, 0, min(sample, c.size()))
			c.heap.Grow(min(sample, c.size()))
		}
		// Tasks that went to the nodes kept for them are not needed any more.
		c.demand()
		if short := c.hopeless(ctx); short {
			c.exhausted = true
			return errHopeless
		}
	}
	run := c.newFilterRun()
	for c.next < c.size() && (found < sample || places < c.wanted) {
		// No more than may be needed: each node found is scored, too.
		chunk := p.lists.nodes[:0]
		for i := range min(c.size()-c.next, max(sample-found, c.wanted-places, leastScan)) {
			chunk = append(chunk, c.node(c.next+i))
		}
		p.lists.nodes = chunk
		results, err := c.filter(ctx, run, chunk)
		if err != nil {
			return err
		}
		kept := c.kept(results)
		block := make([]candidate, len(kept))
		for k, i := range kept {
			r, e := results[i], &block[k]
			e.begin(c.attempt.overlay, chunk[i])
			e.rank = c.next + i
			if !r.fits() {
				c.deferred[e.node] = e
				continue
			}
			c.add(e)
			found++
			places += r.places
		}
		c.next += len(chunk)
		c.attempt.scanned = max(c.attempt.scanned, c.next)
	}
	c.exhausted = c.next == c.size()
	if found == 0 {
		return nil
	}
	return c.scores.all(ctx, c)
}

// kept are the positions of the nodes that are candidates, or may turn into one. They hold until it is called again.
func (c *class) kept(results []verdict) []int {
	lists := &c.attempt.planner.lists
	kept := lists.kept[:0]
	for i, r := range results {
		if r.fits() || c.mayTurn(r.status) {
			kept = append(kept, i)
		}
	}
	lists.kept = kept
	return kept
}

// verdict is what one node said to a class: how many of its pods there is room for, and the filters' status.
type verdict struct {
	places int
	status *fwk.Status
}

// fits reports whether the node is feasible.
func (v verdict) fits() bool { return v.places > 0 && v.status.IsSuccess() }

// filterRun has the verdicts of the filters on a class's nodes. They hold as long as nothing is planned. Where filters go by looks, nodes that
// look alike have one verdict.
type filterRun struct {
	askedOnce
	as       func(node int) (number int, compared bool)
	verdicts []verdict
}

// newFilterRun returns one that has asked about no node yet.
func (c *class) newFilterRun() *filterRun { return &filterRun{as: c.filteredAs()} }

// filter runs the filters on nodes in parallel. Nodes without room for one pod are not asked. The verdicts hold until it is called again.
func (c *class) filter(ctx context.Context, run *filterRun, nodes []int) ([]verdict, error) {
	o, framework := c.attempt.overlay, c.attempt.planner.Framework
	all, cancel := context.WithCancel(ctx)
	defer cancel()
	var failure atomic.Pointer[fwk.Status]
	heard := func(status *fwk.Status) *fwk.Status {
		if status.Code() == fwk.Error {
			failure.Store(status)
			cancel()
		}
		return status
	}
	before := run.asked
	reps, of := run.pick(len(nodes), func(i int) (int, bool) { return run.as(nodes[i]) })
	for _, i := range reps {
		run.verdicts = append(run.verdicts, verdict{places: c.places(ctx, o.at(nodes[i]))})
	}
	err := c.attempt.each(all, len(reps), func(k int) {
		if v := &run.verdicts[before+k]; v.places > 0 {
			v.status = heard(framework.RunFilterPlugins(all, c.state, c.pod, o.at(nodes[reps[k]])))
		}
	}, "GangFilter")
	lists := &c.attempt.planner.lists
	results, fitting := lists.verdicts[:0], lists.fitting[:0]
	for i, k := range of {
		results = append(results, run.verdicts[k])
		if results[i].fits() {
			fitting = append(fitting, i)
		}
	}
	lists.verdicts, lists.fitting = results, fitting
	if err == nil {
		err = c.attempt.each(all, len(fitting), func(k int) {
			i := fitting[k]
			results[i].status = heard(c.beside(all, c.state, o.at(nodes[i])))
		}, "GangFilter")
	}
	if status := failure.Load(); status != nil {
		err = status.AsError()
	}
	if err != nil {
		return nil, fmt.Errorf("filtering nodes for pod %s/%s: %w", c.pod.Namespace, c.pod.Name, err)
	}
	if err := c.extend(nodes, results); err != nil {
		return nil, err
	}
	c.note(nodes, results)
	return results, nil
}

// filteredAs returns by what nodes have the same verdict, as long as nothing is planned; none has that of another where filters go by more than looks.
func (c *class) filteredAs() func(node int) (number int, compared bool) {
	planner, o := c.attempt.planner, c.attempt.overlay
	looks := planner.looksTo(c.pod, len(o.nodes))
	if looks == nil || !planner.FiltersByLook(c.state.GetSkipFilterPlugins()) {
		return func(int) (int, bool) { return unlike, false }
	}
	return func(node int) (int, bool) {
		number, _ := looks.of(node, o.at(node))
		return number, number != unlike
	}
}

// note keeps why nodes are refused.
func (c *class) note(nodes []int, results []verdict) {
	for i, r := range results {
		switch {
		case r.places == 0:
			c.refusals.node(c.attempt.overlay, nodes[i], c.insufficient(c.attempt.overlay.at(nodes[i])))
		case !r.status.IsSuccess():
			c.vetoed = append(c.vetoed, nodes[i])
			c.refusals.node(c.attempt.overlay, nodes[i], r.status.Reasons())
		}
	}
}
