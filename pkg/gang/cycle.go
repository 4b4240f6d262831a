// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"maps"

	fwk "k8s.io/kube-scheduler/framework"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// planKey marks the cycle states that the planner hands to plugins.
const planKey fwk.StateKey = "caldera/plan"

// planMark is the mark.
type planMark struct{ job *model.Job }

// Clone implements fwk.StateData.
func (m planMark) Clone() fwk.StateData { return m }

// MarkPlan marks a cycle state as that of a plan for a job.
func MarkPlan(state fwk.CycleState, job *model.Job) { state.Write(planKey, planMark{job}) }

// Planned returns the job for which a plugin is run, as the plan takes it, when other pods of it may be on the nodes already;
// nil when the plugin is run by the scheduling cycle of a pod.
func Planned(state fwk.CycleState) *model.Job {
	if data, err := state.Read(planKey); err == nil {
		return data.(planMark).job
	}
	return nil
}

// Planning reports whether a plugin is run for a plan, and not by the scheduling cycle of a pod.
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
	// ScoresOnPodsElsewhere: a pod on another node can change any score. It makes plans of many pods slow: after each one all
	// candidates are scored anew.
	ScoresOnPodsElsewhere
	// OnJob: pods of different jobs are treated differently though they ask for the same.
	OnJob
)

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

// fine are the scores of plugins that know them as fractions, by plugin.
type fine map[string]func(fwk.NodeInfo) float64

// Clone implements fwk.StateData.
func (f fine) Clone() fwk.StateData { return f }

const fineKey fwk.StateKey = "caldera/fine"

// Refine is for plugins that have to round their scores for kube-scheduler. A plan takes the node with the greatest sum before rounding, as Volcano
// does. A plugin says at PreFilter or PreScore how a node scores exactly, 0 to 100. The function is called by several goroutines at once. It counts for
// plugins that do not normalise.
func Refine(state fwk.CycleState, plugin string, score func(node fwk.NodeInfo) float64) {
	if !Planning(state) {
		return
	}
	refined := maps.Clone(finely(state))
	if refined == nil {
		refined = fine{}
	}
	refined[plugin] = score
	state.Write(fineKey, refined)
}

func finely(state fwk.CycleState) fine {
	if data, err := state.Read(fineKey); err == nil {
		return data.(fine)
	}
	return nil
}

// seen is a digest of what plugins see besides the snapshot.
type seen int64

// Clone implements fwk.StateData.
func (s seen) Clone() fwk.StateData { return s }

const seenKey fwk.StateKey = "caldera/seen"

// See is for plugins that decide on nodes by more than the scheduler's snapshot: the time, or what is outside of the cluster. At
// PreFilter they number what they see; what was found out for one plan is used for the next while that stays the same.
func See(state fwk.CycleState, what int64) {
	const factor = 1_000_003
	state.Write(seenKey, seen(Seen(state)*factor+what+1))
}

// Seen is what the plugins of a cycle see, as one number; 0 when none looks further than the snapshot.
func Seen(state fwk.CycleState) int64 {
	if data, err := state.Read(seenKey); err == nil {
		return int64(data.(seen))
	}
	return 0
}
