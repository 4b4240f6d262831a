// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package room

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// Checks are the filters of a profile that the counting may rely on. What a profile does not filter by excludes no node.
type Checks struct {
	// Resources: nodes are refused that lack what the pod asks for (NodeResourcesFit).
	Resources bool
	// Affinity: by node selector and required node affinity (NodeAffinity).
	Affinity bool
	// Taints: by taints that are not tolerated (TaintToleration).
	Taints bool
	// Unschedulable: nodes that are cordoned (NodeUnschedulable).
	Unschedulable bool
}

// admission decides which nodes a pod may go to as far as their labels and taints tell.
type admission struct {
	checks      Checks
	tolerations []corev1.Toleration
	// selects: the pod says which labels it wants.
	selects  bool
	affinity nodeaffinity.RequiredNodeAffinity
}

func newAdmission(pod *corev1.Pod, checks Checks) admission {
	a := pod.Spec.Affinity
	return admission{
		checks: checks, tolerations: pod.Spec.Tolerations,
		selects:  len(pod.Spec.NodeSelector) > 0 || a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil,
		affinity: nodeaffinity.GetRequiredNodeAffinity(pod),
	}
}

// admit reports whether a node takes the pod.
func (a *admission) admit(node *corev1.Node) bool {
	if a.checks.Unschedulable && node.Spec.Unschedulable && !a.tolerates(&cordoned) {
		return false
	}
	if a.checks.Taints && slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return keepsOff(&t) && !a.tolerates(&t) }) {
		return false
	}
	if !a.checks.Affinity || !a.selects {
		return true
	}
	// A term that cannot be read is for the filter to refuse.
	match, err := a.affinity.Match(node)
	return match || err != nil
}

// cordoned is the taint that a pod must tolerate to go to a node that is unschedulable.
var cordoned = corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}

// keepsOff reports whether a taint keeps new pods off its node.
func keepsOff(t *corev1.Taint) bool {
	return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
}

// tolerates reports whether the pod tolerates a taint. Tolerations by comparison are taken to tolerate what has their key: whether they
// count is for the filter to say.
func (a *admission) tolerates(taint *corev1.Taint) bool {
	return slices.ContainsFunc(a.tolerations, func(t corev1.Toleration) bool {
		if t.Effect != "" && t.Effect != taint.Effect || t.Key != "" && t.Key != taint.Key {
			return false
		}
		switch t.Operator {
		case corev1.TolerationOpEqual, "":
			return t.Value == taint.Value
		default:
			return true
		}
	})
}

// admissionChanged reports whether two states of a node may differ in the pods that they take.
func admissionChanged(before, after *corev1.Node) bool {
	if before == after {
		return false
	}
	return before == nil || after == nil || before.Name != after.Name || before.Spec.Unschedulable != after.Spec.Unschedulable ||
		!maps.Equal(before.Labels, after.Labels) || !slices.EqualFunc(before.Spec.Taints, after.Spec.Taints, sameTaint)
}

func sameTaint(a, b corev1.Taint) bool {
	return a.Key == b.Key && a.Value == b.Value && a.Effect == b.Effect
}
