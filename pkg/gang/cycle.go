// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang

import (
	fwk "k8s.io/kube-scheduler/framework"
)

// planKey marks the cycle states that the planner hands to plugins.
const planKey fwk.StateKey = "caldera/plan"

// planMark is the mark.
type planMark struct{}

// Clone implements fwk.StateData.
func (planMark) Clone() fwk.StateData { return planMark{} }

// MarkPlan marks a cycle state as a plan's.
func MarkPlan(state fwk.CycleState) { state.Write(planKey, planMark{}) }

// Planning reports whether a plugin is run for a plan, in which other pods of the gang are on the nodes already, and not by
// the scheduling cycle of a pod.
func Planning(state fwk.CycleState) bool {
	_, err := state.Read(planKey)
	return err == nil
}

// Dependence is a set of things besides the node and the pod's spec on which the verdicts and scores of a plugin depend.
type Dependence int

// What they may depend on.
const (
	// OnPodsElsewhere: a pod on another node can change the verdict of Filter. The plugin hears of pods that are planned or
	// taken away by its PreFilterExtensions.
	OnPodsElsewhere Dependence = 1 << iota
	// OnJob: pods of different jobs are treated differently though they ask for the same.
	OnJob
	// OnTime: the verdict on a node changes with the time, or with something outside of the cluster.
	OnTime
)

// lasts reports whether what was found out for one plan holds for the next one.
func (d Dependence) lasts() bool { return d&(OnJob|OnTime) == 0 }

// Clone implements fwk.StateData.
func (d Dependence) Clone() fwk.StateData { return d }

const dependKey fwk.StateKey = "caldera/depends"

// Depend is for plugins to say, at PreFilter, on what their verdicts for the pod of the cycle depend: pods with the same spec
// are filtered and scored once, and what was found out for one job is used for the next. Plugins that decide by the node and the
// pod's spec say nothing. kube-scheduler's own are known.
func Depend(state fwk.CycleState, on Dependence) {
	state.Write(dependKey, dependence(state)|on)
}

func dependence(state fwk.CycleState) Dependence {
	if data, err := state.Read(dependKey); err == nil {
		return data.(Dependence)
	}
	return 0
}
