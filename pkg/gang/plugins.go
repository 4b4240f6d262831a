// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	corehelpers "k8s.io/component-helpers/scheduling/corev1"
	fwk "k8s.io/kube-scheduler/framework"
)

// plugins are those of a profile, and its extenders, as they see one pod: with what they found out before they looked at nodes.
type plugins struct {
	attempt *attempt
	pod     *corev1.Pod
	podInfo fwk.PodInfo
	state   fwk.CycleState
	// looksAround: a filter depends on pods of other nodes.
	looksAround bool
}

func (p *plugins) preFilterError(status *fwk.Status) error {
	return fmt.Errorf("running PreFilter for pod %s/%s: %w", p.pod.Namespace, p.pod.Name, status.AsError())
}

// addPod tells the plugins of a pod planned on a node.
func (p *plugins) addPod(ctx context.Context, pod fwk.PodInfo, node fwk.NodeInfo) error {
	return p.addTo(ctx, p.state, pod, node)
}

// addTo tells the plugins of a pod planned on a node, by another state.
func (p *plugins) addTo(ctx context.Context, state fwk.CycleState, pod fwk.PodInfo, node fwk.NodeInfo) error {
	if status := p.attempt.planner.Framework.RunPreFilterExtensionAddPod(ctx, state, p.pod, pod, node); !status.IsSuccess() {
		return fmt.Errorf("adding planned pod to the PreFilter state of pod %s/%s: %w", p.pod.Namespace, p.pod.Name, status.AsError())
	}
	return nil
}

// removePod tells the plugins of a pod taken off a node.
func (p *plugins) removePod(ctx context.Context, state fwk.CycleState, r removed, node fwk.NodeInfo) error {
	if status := p.attempt.planner.Framework.RunPreFilterExtensionRemovePod(ctx, state, p.pod, r.pod, node); !status.IsSuccess() {
		return fmt.Errorf("removing a pod from the PreFilter state of pod %s/%s: %w", p.pod.Namespace, p.pod.Name, status.AsError())
	}
	return nil
}

// repelledByOthers is upstream's reason for a node with pods whose own anti-affinity selects the pod (InterPodAffinity).
const repelledByOthers = "node(s) didn't satisfy existing pods anti-affinity rules"

// repelled is the verdict on a node with such pods of the plan.
var repelled = fwk.NewStatus(fwk.Unschedulable, repelledByOthers)

// runFilters runs the filters on a node.
func (p *plugins) runFilters(ctx context.Context, info fwk.NodeInfo) *fwk.Status {
	return p.filterIn(ctx, p.state, info)
}

// filterIn runs the filters on a node by another state: with the pods nominated to the node by others, if there are any, and without
// them, for they may go elsewhere. So does upstream (runtime.RunFilterPluginsWithNominatedPods), which counts our own a second time, or though they have lost
// their room.
func (p *plugins) filterIn(ctx context.Context, state fwk.CycleState, info fwk.NodeInfo) *fwk.Status {
	status := p.attempt.planner.Framework.RunFilterPlugins(ctx, state, p.pod, info)
	if !status.IsSuccess() {
		return status
	}
	return p.beside(ctx, state, info)
}

// beside says the rest of what filterIn does, of a node that passes the filters as it is.
func (p *plugins) beside(ctx context.Context, state fwk.CycleState, info fwk.NodeInfo) *fwk.Status {
	framework := p.attempt.planner.Framework
	if foreign := p.foreign(framework.NominatedPodsForNode(info.Node().Name)); len(foreign) > 0 {
		state, info = state.Clone(), info.Snapshot()
		for _, pod := range foreign {
			info.AddPodInfo(pod)
			if status := framework.RunPreFilterExtensionAddPod(ctx, state, p.pod, pod, info); !status.IsSuccess() {
				return fwk.AsStatus(status.AsError())
			}
		}
		if status := framework.RunFilterPlugins(ctx, state, p.pod, info); !status.IsSuccess() {
			return status
		}
	}
	if p.attempt.overlay.repels(p.pod, info) {
		return repelled
	}
	return nil
}

// foreign are those of the pods nominated to a node that keep their room from the pod: of other schedulers, and at least as important.
// Those of our own are on the overlay, whatever their priority; one that is not there has lost its room, which the API server has yet to be
// told. The queue names pods that are in none of its queues, and knows no more of them than the name.
func (p *plugins) foreign(nominated []fwk.PodInfo) []fwk.PodInfo {
	var foreign []fwk.PodInfo
	for _, info := range nominated {
		pod := info.GetPod()
		if pod.Spec.SchedulerName != p.pod.Spec.SchedulerName && !p.attempt.planner.Ours(pod.UID) &&
			corehelpers.PodPriority(pod) >= corehelpers.PodPriority(p.pod) {
			foreign = append(foreign, info)
		}
	}
	return foreign
}

// extend asks the profile's extenders about the nodes that passed the filters.
func (p *plugins) extend(nodes []int, results []verdict) error {
	for _, extender := range p.attempt.planner.Framework.Extenders() {
		if !extender.IsInterested(p.pod) {
			continue
		}
		var passed []fwk.NodeInfo
		for i, r := range results {
			if r.fits() {
				passed = append(passed, p.attempt.overlay.at(nodes[i]))
			}
		}
		if len(passed) == 0 {
			return nil
		}
		kept, _, _, err := extender.Filter(p.pod, passed)
		if err != nil {
			if extender.IsIgnorable() {
				continue
			}
			return fmt.Errorf("asking extender %s about pod %s/%s: %w", extender.Name(), p.pod.Namespace, p.pod.Name, err)
		}
		names := sets.New[string]()
		for _, n := range kept {
			names.Insert(n.Node().Name)
		}
		for i := range results {
			if r := &results[i]; r.fits() && !names.Has(p.attempt.overlay.at(nodes[i]).Node().Name) {
				r.status = fwk.NewStatus(fwk.Unschedulable, "node(s) were refused by extender "+extender.Name())
			}
		}
	}
	return nil
}

// asksOutside reports whether somebody is asked about the pods of whom it is not known what they go by.
func (p *plugins) asksOutside() bool {
	planner := p.attempt.planner
	return planner.ByLabels() || slices.ContainsFunc(planner.Framework.Extenders(), func(e fwk.Extender) bool { return e.IsInterested(p.pod) })
}

// spreads reports whether the pod has constraints about the numbers of pods in domains that nodes must meet.
func (p *plugins) spreads() bool { return !p.state.GetSkipFilterPlugins().Has(podTopologySpread) }

// prefers reports whether upstream scores nodes for the pod by pods on them once there are any that its terms match.
func (p *plugins) prefers() bool {
	return len(p.podInfo.GetPreferredAffinityTerms())+len(p.podInfo.GetPreferredAntiAffinityTerms()) > 0
}

// mayTurn reports whether pods planned elsewhere may make a node feasible that has been refused.
func (p *plugins) mayTurn(status *fwk.Status) bool {
	if !p.looksAround || status.IsSuccess() {
		return false
	}
	return status.Plugin() == interPodAffinity || status.Plugin() == podTopologySpread || dependence(p.state)&OnPodsElsewhere != 0
}

// seesLike reports whether the filters of two pods of one shape see the same.
func (p *plugins) seesLike(other *plugins) bool {
	return Seen(p.state) == Seen(other.state) && p.state.GetSkipFilterPlugins().Equal(other.state.GetSkipFilterPlugins())
}

// scoresLike reports whether the scores for two pods of one shape see the same of these nodes.
func (p *plugins) scoresLike(ctx context.Context, other *plugins, infos []fwk.NodeInfo) (bool, error) {
	if status := p.attempt.planner.Framework.RunPreScorePlugins(ctx, p.state, p.pod, infos); !status.IsSuccess() {
		return false, p.scoreError(status)
	}
	return p.state.GetSkipScorePlugins().Equal(other.state.GetSkipScorePlugins()), nil
}

// prescore runs PreScore on the candidates. What it says of other pods counts those planned so far.
func (p *plugins) prescore(ctx context.Context, infos []fwk.NodeInfo) error {
	a := p.attempt
	follows := a.assumed > 0 || a.overlay.attracting || p.prefers()
	for {
		if follows {
			if err := a.follow(); err != nil {
				return err
			}
		}
		if status := a.planner.Framework.RunPreScorePlugins(ctx, p.state, p.pod, infos); !status.IsSuccess() {
			return fmt.Errorf("running PreScore for pod %s/%s: %w", p.pod.Namespace, p.pod.Name, status.AsError())
		}
		if a.assumed == len(a.overlay.added) || !scoresLookAround(p.state) {
			return nil
		}
		follows = true
	}
}

func (p *plugins) scoreError(status *fwk.Status) error {
	return fmt.Errorf("scoring nodes for pod %s/%s: %w", p.pod.Namespace, p.pod.Name, status.AsError())
}
