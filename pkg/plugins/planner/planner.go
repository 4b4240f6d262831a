// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package planner makes the planner of pkg/gang run the plugins of a kube-scheduler profile.
package planner

import (
	"context"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	upstream "k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	upstreamnames "k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeaffinity"

	"github.com/caldera-scheduler/caldera/pkg/gang"
	"github.com/caldera-scheduler/caldera/pkg/plugins/names"
)

// New returns a planner that runs the plugins of a profile. It still has to be told how jobs are arranged, how large samples of
// nodes are, and which reservations can fail.
func New(f framework.Framework, devices *Devices) *gang.Planner {
	return &gang.Planner{
		Framework:     &deviceProfile{f, devices},
		NewState:      func() fwk.CycleState { return framework.NewCycleState() },
		NewPodInfo:    func(pod *corev1.Pod) (fwk.PodInfo, error) { return framework.NewPodInfo(pod) },
		RemovePod:     func(node fwk.NodeInfo, pod *corev1.Pod) error { return node.RemovePod(klog.Background(), pod) },
		Assume:        func(pod *corev1.Pod, node string) (func(context.Context), error) { return assume(f, pod, node) },
		FiltersByLook: byLook(f, filtersByLook, filtersByOwnTerms, func(p *config.Plugins) config.PluginSet { return p.Filter }),
		ScoresByLook:  byLook(f, scoresByLook, scoresByOwnTerms, func(p *config.Plugins) config.PluginSet { return p.Score }),
		// The profile is not complete while its plugins are made.
		ByLabels: sync.OnceValue(func() bool {
			enabled := f.ListPlugins()
			return !OnlyKnown(enabled.PreFilter, enabled.Filter, enabled.PreScore, enabled.Score)
		}),
	}
}

// known are the plugins of which it is known by what of a pod they go.
var known = sync.OnceValue(func() sets.Set[string] { return sets.KeySet(upstream.NewInTreeRegistry()).Insert(names.All...) })

// OnlyKnown reports whether all plugins of some extension points are upstream's or of this module.
func OnlyKnown(points ...config.PluginSet) bool {
	for _, point := range points {
		if slices.ContainsFunc(point.Enabled, func(p config.Plugin) bool { return !known().Has(p.Name) }) {
			return false
		}
	}
	return true
}

// filtersByLook and scoresByLook are the plugins that go by nothing of a node but what gang.Planner says of FiltersByLook. A pod
// without volumes, claims, ports, and terms about other pods has no others: they are skipped for it. NodeAffinity is not listed, since it depends on its
// arguments: see byLook. NodeName and Gang let a pod that has no node yet go anywhere. Those that normalise scores do so by the largest of them. VolumeBinding and DynamicResources score what their filters have found; where these are skipped, all nodes alike.
var (
	filtersByLook = sets.New(upstreamnames.NodeName, upstreamnames.NodeUnschedulable, upstreamnames.TaintToleration, upstreamnames.NodeResourcesFit,
		names.Gang, names.ResourceStrategyFit)
	scoresByLook = sets.New(upstreamnames.TaintToleration, upstreamnames.NodeResourcesFit, upstreamnames.NodeResourcesBalancedAllocation, upstreamnames.ImageLocality,
		upstreamnames.VolumeBinding, upstreamnames.DynamicResources, names.Binpack, names.MostRequested, names.ResourceStrategyFit)
)

// byLook reports, of those plugins of a profile that work at a point and are not skipped, whether all go by looks. NodeAffinity does so if it goes by a pod's own terms.
func byLook(
	f framework.Framework, goes sets.Set[string], ownTerms func(*nodeaffinity.NodeAffinity) bool, point func(*config.Plugins) config.PluginSet,
) func(skipped sets.Set[string]) bool {
	// The profile is not complete while its plugins are made.
	others := sync.OnceValue(func() []string {
		var others []string
		for _, p := range point(f.ListPlugins()).Enabled {
			if !goes.Has(p.Name) && (p.Name != upstreamnames.NodeAffinity || !ownTerms(nodeAffinity(f))) {
				others = append(others, p.Name)
			}
		}
		return others
	})
	return func(skipped sets.Set[string]) bool {
		return !slices.ContainsFunc(others(), func(name string) bool { return !skipped.Has(name) })
	}
}

// nodeAffinity finds the plugin of a profile. It is nil if there is none, or another one of that name.
func nodeAffinity(f framework.Framework) *nodeaffinity.NodeAffinity {
	for _, p := range f.EnqueueExtensions() {
		if found, ok := p.(*nodeaffinity.NodeAffinity); ok {
			return found
		}
	}
	return nil
}

// filtersByOwnTerms reports whether NodeAffinity filters by nothing but a pod's own terms. The argument addedAffinity gives it others, which it does not show. But then it
// has something to do with a pod without terms.
func filtersByOwnTerms(p *nodeaffinity.NodeAffinity) bool {
	if p == nil {
		return false
	}
	_, status := p.PreFilter(context.Background(), framework.NewCycleState(), &corev1.Pod{}, nil)
	return status.IsSkip()
}

// scoresByOwnTerms reports the same of its score.
func scoresByOwnTerms(p *nodeaffinity.NodeAffinity) bool {
	return p != nil && p.PreScore(context.Background(), framework.NewCycleState(), &corev1.Pod{}, nil).IsSkip()
}

// snapshot is the part of kube-scheduler's snapshot that its own cycle of pod groups uses.
type snapshot interface {
	AssumePod(*framework.PodInfo) error
	ForgetPod(klog.Logger, *corev1.Pod) error
}

var _ snapshot = (*cache.Snapshot)(nil)

// assume puts a pod on a node of the snapshot behind a profile, where all its plugins see it, until the function it returns is called:
// last first, before the cycle ends.
func assume(f framework.Framework, pod *corev1.Pod, node string) (forget func(context.Context), err error) {
	s, ok := f.SnapshotSharedLister().(snapshot)
	if !ok {
		return nil, fmt.Errorf("pods cannot be planned on a snapshot of type %T", f.SnapshotSharedLister())
	}
	placed := *pod
	placed.Spec.NodeName = node
	info, err := framework.NewPodInfo(&placed)
	if err != nil {
		return nil, err
	}
	if err := s.AssumePod(info); err != nil {
		return nil, err
	}
	return func(ctx context.Context) {
		if err := s.ForgetPod(klog.FromContext(ctx), &placed); err != nil {
			klog.FromContext(ctx).Error(err, "A planned pod stays on the snapshot of the scheduler until the end of the cycle", "pod", klog.KObj(pod), "node", node)
		}
	}, nil
}
