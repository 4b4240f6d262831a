// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package skiprecheck spares the scheduling cycles of planned pods what their plan has found out already. Upstream's cycle counts the
// pods of all nodes for terms about other pods, for each pod of a gang once more than the plan did. What concerns the planned node
// alone, its resources, ports, taints and volumes, is checked in the cycle as ever.
//
// It is an optimisation: without it the cycle comes to the same.
package skiprecheck

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/caldera-scheduler/caldera/pkg/plugins/names"
	"github.com/caldera-scheduler/caldera/pkg/plugins/planner"
	"github.com/caldera-scheduler/caldera/pkg/scheduler/core"
)

// Install has the cycles of a scheduler that does not run yet skip it.
func Install(c *core.Core, sched *scheduler.Scheduler) {
	sched.SchedulePod = around(sched.SchedulePod, func(f framework.Framework, uid types.UID) bool {
		return c.Dispatcher.SkipsRecheck(uid) && readsTermsOnlyThere(f)
	})
}

// readsTermsOnlyThere reports whether nobody but upstream's plugins for terms about other pods reads these when a profile looks for a
// node: neither an extender nor a plugin that is not known.
func readsTermsOnlyThere(f framework.Framework) bool {
	enabled := f.ListPlugins()
	return planner.OnlyKnown(enabled.PreFilter, enabled.Filter) && len(f.Extenders()) == 0 &&
		!slices.ContainsFunc(enabled.Filter.Enabled, func(p config.Plugin) bool { return p.Name == names.Extender })
}

// schedule is the part of a scheduling cycle that finds a node.
type schedule = func(context.Context, framework.Framework, fwk.CycleState, *framework.QueuedPodInfo) (scheduler.ScheduleResult, error)

// around leaves out the terms of pods whose plan is trusted.
func around(inner schedule, trusts func(framework.Framework, types.UID) bool) schedule {
	return func(ctx context.Context, f framework.Framework, state fwk.CycleState, queued *framework.QueuedPodInfo) (scheduler.ScheduleResult, error) {
		if pod := queued.Pod; hasTerms(pod) && trusts(f, pod.UID) {
			info, err := framework.NewPodInfo(withoutTerms(pod))
			if err != nil {
				return scheduler.ScheduleResult{}, err
			}
			queued = &framework.QueuedPodInfo{PodInfo: info, QueueingParams: queued.QueueingParams, PodSignature: queued.PodSignature}
		}
		return inner(ctx, f, state, queued)
	}
}

// hasTerms reports whether a pod says beside which pods it must, or must not, be.
func hasTerms(pod *corev1.Pod) bool {
	a := pod.Spec.Affinity
	return len(pod.Spec.TopologySpreadConstraints) > 0 || a != nil && (a.PodAffinity != nil || a.PodAntiAffinity != nil)
}

// withoutTerms is the pod as one that only prefers some pods to others, which no node is refused for. A pod without any spread
// constraints would get those that the profile has for such pods.
func withoutTerms(pod *corev1.Pod) *corev1.Pod {
	p := *pod
	if p.Spec.Affinity != nil {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: p.Spec.Affinity.NodeAffinity}
	}
	p.Spec.TopologySpreadConstraints = nil
	for _, c := range pod.Spec.TopologySpreadConstraints {
		c.WhenUnsatisfiable = corev1.ScheduleAnyway
		p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, c)
	}
	return &p
}
