// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reload gives a running scheduler other plugins, arguments and weights: what a change of its configuration asks for,
// without a restart.
package reload

import (
	"context"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// ReloadableFramework is a profile whose plugins can be exchanged while it is used. A scheduling cycle and the binding that follows go on with
// the plugins with which they began: those are found in the cycle's state. What has nothing to do with plugins, such as the pods
// that wait in Permit, is the first framework's for ever.
type ReloadableFramework struct {
	framework.Framework
	current atomic.Pointer[framework.Framework]
}

// NewReloadableFramework returns a profile with the plugins of a framework.
func NewReloadableFramework(first framework.Framework) *ReloadableFramework {
	s := &ReloadableFramework{Framework: first}
	s.current.Store(&first)
	return s
}

// To has the cycles that begin from now on use the plugins of another framework.
func (s *ReloadableFramework) To(f framework.Framework) { s.current.Store(&f) }

func (s *ReloadableFramework) now() framework.Framework { return *s.current.Load() }

// stateKey is where a cycle keeps its framework.
const stateKey fwk.StateKey = "caldera/framework"

type began struct{ framework.Framework }

// Clone implements fwk.StateData.
func (b began) Clone() fwk.StateData { return b }

// of is the framework with which a cycle began.
func (s *ReloadableFramework) of(state fwk.CycleState) framework.Framework {
	if data, err := state.Read(stateKey); err == nil {
		return data.(began).Framework
	}
	return s.now()
}

// RunPreFilterPlugins begins a cycle.
func (s *ReloadableFramework) RunPreFilterPlugins(ctx context.Context, state fwk.CycleState, pod *corev1.Pod) (*fwk.PreFilterResult, *fwk.Status, sets.Set[string]) {
	f := s.now()
	state.Write(stateKey, began{f})
	return f.RunPreFilterPlugins(ctx, state, pod)
}

// RunPreFilterExtensionAddPod tells the cycle's plugins of a pod that is added.
func (s *ReloadableFramework) RunPreFilterExtensionAddPod(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, added fwk.PodInfo, node fwk.NodeInfo) *fwk.Status {
	return s.of(state).RunPreFilterExtensionAddPod(ctx, state, pod, added, node)
}

// RunPreFilterExtensionRemovePod tells the cycle's plugins of a pod that is removed.
func (s *ReloadableFramework) RunPreFilterExtensionRemovePod(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, removed fwk.PodInfo, node fwk.NodeInfo) *fwk.Status {
	return s.of(state).RunPreFilterExtensionRemovePod(ctx, state, pod, removed, node)
}

// RunFilterPlugins runs the filters of the cycle.
func (s *ReloadableFramework) RunFilterPlugins(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node fwk.NodeInfo) *fwk.Status {
	return s.of(state).RunFilterPlugins(ctx, state, pod, node)
}

// RunFilterPluginsWithNominatedPods runs the filters of the cycle with the pods that are nominated to the node.
func (s *ReloadableFramework) RunFilterPluginsWithNominatedPods(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node fwk.NodeInfo) *fwk.Status {
	return s.of(state).RunFilterPluginsWithNominatedPods(ctx, state, pod, node)
}

// RunPostFilterPlugins runs what the cycle has for a pod that fits nowhere.
func (s *ReloadableFramework) RunPostFilterPlugins(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, nodes fwk.NodeToStatusReader) (*fwk.PostFilterResult, *fwk.Status) {
	return s.of(state).RunPostFilterPlugins(ctx, state, pod, nodes)
}

// RunPreScorePlugins prepares the scores of the cycle.
func (s *ReloadableFramework) RunPreScorePlugins(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, nodes []fwk.NodeInfo) *fwk.Status {
	return s.of(state).RunPreScorePlugins(ctx, state, pod, nodes)
}

// RunScorePlugins scores nodes as the cycle does.
func (s *ReloadableFramework) RunScorePlugins(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, nodes []fwk.NodeInfo) ([]fwk.NodePluginScores, *fwk.Status) {
	return s.of(state).RunScorePlugins(ctx, state, pod, nodes)
}

// RunRawScorePlugins scores a node as the cycle does.
func (s *ReloadableFramework) RunRawScorePlugins(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node fwk.NodeInfo) ([]fwk.PluginScore, *fwk.Status) {
	return s.of(state).RunRawScorePlugins(ctx, state, pod, node)
}

// NormalizeScores normalises scores as the cycle does.
func (s *ReloadableFramework) NormalizeScores(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, scores []fwk.NodePluginScores) *fwk.Status {
	return s.of(state).NormalizeScores(ctx, state, pod, scores)
}

// RunReservePluginsReserve reserves with the plugins of the cycle.
func (s *ReloadableFramework) RunReservePluginsReserve(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, nodeName string) *fwk.Status {
	return s.of(state).RunReservePluginsReserve(ctx, state, pod, nodeName)
}

// RunReservePluginsUnreserve takes back what the plugins of the cycle reserved.
func (s *ReloadableFramework) RunReservePluginsUnreserve(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, nodeName string) {
	s.of(state).RunReservePluginsUnreserve(ctx, state, pod, nodeName)
}

// RunPermitPlugins asks the plugins of the cycle whether the pod has to wait.
func (s *ReloadableFramework) RunPermitPlugins(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, nodeName string) (map[string]time.Duration, *fwk.Status) {
	return s.of(state).RunPermitPlugins(ctx, state, pod, nodeName)
}

// RunPreBindPlugins prepares a binding with the plugins of the cycle.
func (s *ReloadableFramework) RunPreBindPlugins(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, nodeName string) *fwk.Status {
	return s.of(state).RunPreBindPlugins(ctx, state, pod, nodeName)
}

// RunPreBindPreFlights asks the plugins of the cycle whether they prepare a binding.
func (s *ReloadableFramework) RunPreBindPreFlights(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, nodeName string) *fwk.Status {
	return s.of(state).RunPreBindPreFlights(ctx, state, pod, nodeName)
}

// RunBindPlugins binds with the plugins of the cycle.
func (s *ReloadableFramework) RunBindPlugins(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, nodeName string) *fwk.Status {
	return s.of(state).RunBindPlugins(ctx, state, pod, nodeName)
}

// RunPostBindPlugins tells the plugins of the cycle of a binding.
func (s *ReloadableFramework) RunPostBindPlugins(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, nodeName string) {
	s.of(state).RunPostBindPlugins(ctx, state, pod, nodeName)
}

// HasFilterPlugins reports whether there are filters now.
func (s *ReloadableFramework) HasFilterPlugins() bool { return s.now().HasFilterPlugins() }

// HasPostFilterPlugins reports whether there is something for pods that fit nowhere now.
func (s *ReloadableFramework) HasPostFilterPlugins() bool { return s.now().HasPostFilterPlugins() }

// HasScorePlugins reports whether there are scores now.
func (s *ReloadableFramework) HasScorePlugins() bool { return s.now().HasScorePlugins() }

// ListPlugins lists the plugins that are in use now.
func (s *ReloadableFramework) ListPlugins() *schedulerconfig.Plugins { return s.now().ListPlugins() }

// PercentageOfNodesToScore is that of the profile now.
func (s *ReloadableFramework) PercentageOfNodesToScore() *int32 {
	return s.now().PercentageOfNodesToScore()
}

// GetNodeHint knows of no node that suits the pod because it suited the one before: upstream remembers that with the first
// framework, by which it also filters again. Members of gangs go to planned nodes anyway.
func (s *ReloadableFramework) GetNodeHint(context.Context, *corev1.Pod, fwk.PodSignature, fwk.CycleState, int64) string {
	return ""
}

// StoreScheduleResults keeps nothing for GetNodeHint.
func (s *ReloadableFramework) StoreScheduleResults(context.Context, fwk.PodSignature, string, string, framework.SortedScoredNodes, int64) {
}
