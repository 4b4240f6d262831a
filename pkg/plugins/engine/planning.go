// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import fwk "k8s.io/kube-scheduler/framework"

// planKey marks the cycle states that the planner of gangs hands to plugins.
const planKey fwk.StateKey = "caldera/plan"

// plan is the mark.
type plan struct{}

// Clone implements fwk.StateData.
func (plan) Clone() fwk.StateData { return plan{} }

// MarkPlan marks a cycle state as one of the planner.
func MarkPlan(state fwk.CycleState) { state.Write(planKey, plan{}) }

// Planning reports whether a plugin is run by the planner and not by the scheduling cycle of a pod: what it does then is
// only supposed, and must not reach beyond the cycle state.
func Planning(state fwk.CycleState) bool {
	_, err := state.Read(planKey)
	return err == nil
}
