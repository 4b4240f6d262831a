// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"slices"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// add joins the doubts about several parts of a job.
func (d *Doubts) add(o Doubts) {
	d.Labels, d.NoRoomNeeded, d.Unmet = d.Labels || o.Labels, d.NoRoomNeeded || o.NoRoomNeeded, d.Unmet || o.Unmet
	for shape, nodes := range o.Vetoed {
		if d.Vetoed == nil {
			d.Vetoed = map[model.Class][]string{}
		}
		d.Vetoed[shape] = append(d.Vetoed[shape], nodes...)
	}
}

// doubts tell what the refusal of an attempt went by.
func (a *attempt) doubts() Doubts {
	d := Doubts{Unmet: a.short != nil && slices.Contains(volumePlugins, a.short.rejectedBy)}
	for _, c := range a.classes {
		labels := c.goesByLabels()
		d.Labels = d.Labels || labels
		d.NoRoomNeeded = d.NoRoomNeeded || c.checkedRequests && !c.trustRequests
		if labels || !c.goesByNode() {
			continue
		}
		if d.Vetoed == nil {
			d.Vetoed = map[model.Class][]string{}
		}
		for _, node := range c.vetoed {
			d.Vetoed[c.task.Shape] = append(d.Vetoed[c.task.Shape], a.overlay.nodes[node].Node().Name)
		}
	}
	return d
}

// goesByLabels reports whether pods of the class, but with other labels or in another namespace, may be told otherwise.
func (c *class) goesByLabels() bool {
	if c.asksOutside() || dependence(c.state)&(OnPodsElsewhere|OnJob) != 0 {
		return true
	}
	if c.dismissed() {
		return c.rejectedBy == interPodAffinity || c.rejectedBy == podTopologySpread
	}
	skipped := c.state.GetSkipFilterPlugins()
	switch {
	case !skipped.Has(podTopologySpread) && len(c.pod.Spec.TopologySpreadConstraints) == 0:
		// The profile has constraints of its own for the pod.
		return true
	case skipped.Has(interPodAffinity) && len(c.attempt.overlay.repelling) == 0:
		return false
	}
	return len(c.podInfo.GetRequiredAffinityTerms())+len(c.podInfo.GetRequiredAntiAffinityTerms()) == 0 ||
		slices.ContainsFunc(c.refusals.byNode, func(reasons []string) bool {
			return slices.Contains(reasons, repelledByOthers)
		})
}

// goesByNode reports whether the filters decide by the node and the pod's spec alone.
func (c *class) goesByNode() bool {
	return c.task.Traits == 0 && !c.looksAround && !c.canFail && !c.dismissed() && c.attempt.evictor == nil && !c.attempt.keeps
}
