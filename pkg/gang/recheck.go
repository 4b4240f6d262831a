// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"context"
	"fmt"
	"iter"
	"slices"

	fwk "k8s.io/kube-scheduler/framework"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// The plugins of kube-scheduler by which a pod fits or not because of pods on other nodes.
const (
	interPodAffinity  = "InterPodAffinity"
	podTopologySpread = "PodTopologySpread"
)

// volumePlugins are kube-scheduler's plugins that refuse pods whose volume claims are missing, or not as they need them, before they look
// at any node.
var volumePlugins = []string{"VolumeRestrictions", "VolumeBinding", "VolumeZone"}

// meeting is a class of pods met at a value of a topology key; without a key, met at all. To terms about pods, one of them there is as
// good as many.
type meeting struct {
	class      model.Class
	key, value string
}

// spreadState is where PodTopologySpread keeps what it found at PreFilter.
const spreadState fwk.StateKey = "PreFilter" + podTopologySpread

// recount has PodTopologySpread count the pods anew, with those planned on the snapshot, if the class spreads. Of the domains with the
// fewest pods it remembers two (its criticalPaths): enough to be told of one pod more, not of a gang.
func (c *class) recount(ctx context.Context) error {
	if !c.spreads() {
		return nil
	}
	a := c.attempt
	if err := a.follow(); err != nil {
		return err
	}
	state := a.planner.NewState()
	MarkPlan(state, c.job)
	switch _, status, _ := a.planner.Framework.RunPreFilterPlugins(ctx, state, c.pod); {
	case status.IsRejected():
		c.dismiss(status)
		return nil
	case !status.IsSuccess():
		return c.preFilterError(status)
	}
	for _, gone := range a.overlay.gone {
		if err := c.removePod(ctx, state, gone, a.overlay.at(gone.node)); err != nil {
			return err
		}
	}
	counts, err := state.Read(spreadState)
	if err != nil {
		return fmt.Errorf("counting the pods planned for the spread constraints of pod %s/%s: %w", c.pod.Namespace, c.pod.Name, err)
	}
	c.state.Write(spreadState, counts)
	return nil
}

// restore tells the class's filters of a pod that is back on its node after all.
func (c *class) restore(ctx context.Context, pod fwk.PodInfo, node fwk.NodeInfo) error {
	c.upset = true
	if err := c.addPod(ctx, pod, node); err != nil {
		return err
	}
	return c.recount(ctx)
}

// reconsider filters the nodes again about which a filter that looks at other nodes may have changed its mind.
func (c *class) reconsider(ctx context.Context, added []planned) error {
	if err := c.recount(ctx); err != nil || c.dismissed() {
		return err
	}
	reached := c.reached(added)
	if len(reached) == 0 {
		return nil
	}
	nodes := make([]int, len(reached))
	for i, e := range reached {
		nodes[i] = e.node
	}
	verdicts, err := c.filter(ctx, c.newFilterRun(), nodes)
	if err != nil {
		return err
	}
	back := false
	for i, v := range verdicts {
		e := reached[i]
		candidate := c.has(e)
		if !candidate {
			delete(c.deferred, e.node)
		}
		e.see(c.attempt.overlay)
		if !v.fits() {
			if candidate {
				c.remove(e)
			}
			if c.mayTurn(v.status) {
				c.deferred[e.node] = e
			}
			continue
		}
		back = back || !candidate
		c.add(e)
	}
	if back {
		return c.scores.all(ctx, c)
	}
	return c.rescore(ctx, reached)
}

// rescore scores those of some nodes again that are candidates.
func (c *class) rescore(ctx context.Context, nodes []*candidate) error {
	for _, e := range nodes {
		if !c.has(e) {
			continue
		}
		if err := c.scores.update(ctx, c, e); err != nil {
			return err
		}
		c.heap.Put(e)
	}
	return nil
}

// reached returns the candidates, and those that are deferred, on which the pods that were planned may have changed the verdict.
func (c *class) reached(added []planned) []*candidate {
	s := c.reach(added)
	var reached []*candidate
	for _, e := range c.entries {
		if e != nil && s.reaches(e) {
			reached = append(reached, e)
		}
	}
	for _, e := range c.deferred {
		if s.reaches(e) {
			reached = append(reached, e)
		}
	}
	return reached
}

// reach says which nodes planned pods are on, and which values of topology keys these nodes have, if not all of the cluster matters.
type reach struct {
	all    bool
	nodes  map[int]bool
	values map[string]map[string]bool
}

// reach finds out how far pods that were planned reach: to nodes that have them, and where one is the first of its class at a value of a
// topology key that a term is about, the class's own or that pod's, to nodes that have that value, too. With the first of a class
// anywhere, the exception ends by which required affinity allows any node to the first pod of a group. How a new pod changes the least
// number of pods by which spread constraints judge is for the filter to say.
func (c *class) reach(added []planned) reach {
	s := reach{
		all:    c.upset || len(added) > 0 && (dependence(c.state)&OnPodsElsewhere != 0 || c.spreads()),
		nodes:  map[int]bool{},
		values: map[string]map[string]bool{},
	}
	c.upset = false
	for _, p := range added {
		s.nodes[p.node] = true
		if c.meets(meeting{class: p.task.Class}) && len(c.podInfo.GetRequiredAffinityTerms()) > 0 {
			s.all = true
		}
		labels := c.attempt.overlay.at(p.node).Node().Labels
		for term := range terms(c.podInfo.GetRequiredAffinityTerms(), c.podInfo.GetRequiredAntiAffinityTerms(), p.pod.GetRequiredAntiAffinityTerms()) {
			key := term.TopologyKey
			value, ok := labels[key]
			if !ok || !c.meets(meeting{p.task.Class, key, value}) {
				continue
			}
			if s.values[key] == nil {
				s.values[key] = map[string]bool{}
			}
			s.values[key][value] = true
		}
	}
	return s
}

// terms are those of several lists.
func terms(lists ...[]fwk.AffinityTerm) iter.Seq[*fwk.AffinityTerm] {
	return func(yield func(*fwk.AffinityTerm) bool) {
		for _, list := range lists {
			for i := range list {
				if !yield(&list[i]) {
					return
				}
			}
		}
	}
}

// reaches reports whether the pods may make a difference to a node.
func (s reach) reaches(e *candidate) bool {
	if s.all || s.nodes[e.node] {
		return true
	}
	labels := e.info.Node().Labels
	for key, values := range s.values {
		if value, ok := labels[key]; ok && values[value] {
			return true
		}
	}
	return false
}

// meets reports whether that is the first time.
func (c *class) meets(m meeting) bool {
	first := !c.met[m]
	c.met[m] = true
	return first
}

// rescores reports whether pods that were planned may have changed the scores of all nodes.
func (c *class) rescores(added []planned) bool {
	if len(added) == 0 {
		return false
	}
	if c.prefers() || scoresLookAround(c.state) || dependence(c.state)&ScoresOnPodsElsewhere != 0 {
		return true
	}
	return slices.ContainsFunc(added, func(p planned) bool { return attracts(p.pod) })
}
