// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Class identifies pods that every node treats alike, so that one filtering and one scoring serve them all.
type Class [sha256.Size]byte

// identityLabels differ between otherwise equal replicas: an index, a name, a generated hash. They are left out of the
// class unless a term of the pod itself selects on them. A wrong guess costs a second plan, never a wrong placement:
// every member is filtered once more on the node planned for it.
var identityLabels = map[string]bool{
	"batch.kubernetes.io/job-completion-index": true,
	"statefulset.kubernetes.io/pod-name":       true,
	"apps.kubernetes.io/pod-index":             true,
	"training.kubeflow.org/replica-index":      true,
	"volcano.sh/task-index":                    true,
	"volcano.sh/partition-id":                  true,
}

// NUMAPolicyAnnotation is the policy of the kubelet's topology manager that a pod asks for (Volcano
// pkg/scheduler/api/numa_info.go).
const NUMAPolicyAnnotation = "volcano.sh/numa-topology-policy"

// placementAnnotations are those that filters and scorers read.
var placementAnnotations = []string{
	PreemptableKey, RevocableZoneKey, ScoringTypeAnnotation, ScoringWeightAnnotation, NUMAPolicyAnnotation,
	VGPUModeAnnotation, GPUTypeAnnotation, NoGPUTypeAnnotation, GPUUUIDAnnotation, NoGPUUUIDAnnotation, VGPUGroupPolicyAnnotation,
}

// classOf digests what filters and scorers read of a pod: everything in the spec that bears on a node, annotations about
// placement, the namespace and the labels. Pods that bring volumes or claims of their own differ by the names of these.
// The shape is the same without labels and namespace: pods of equal shape are treated alike by plugins that look at
// no other pods. What the pod asks for lies between the two: as long as nobody else's terms go by its labels, pods that ask for
// the same can be placed, or cannot, for the same reasons.
func classOf(pod *corev1.Pod) (class, shape, ask Class) {
	spec := corev1.PodSpec{
		NodeSelector:              pod.Spec.NodeSelector,
		NodeName:                  pod.Spec.NodeName,
		Affinity:                  pod.Spec.Affinity,
		Tolerations:               pod.Spec.Tolerations,
		TopologySpreadConstraints: pod.Spec.TopologySpreadConstraints,
		Priority:                  pod.Spec.Priority,
		PreemptionPolicy:          pod.Spec.PreemptionPolicy,
		Overhead:                  pod.Spec.Overhead,
		RuntimeClassName:          pod.Spec.RuntimeClassName,
		HostNetwork:               pod.Spec.HostNetwork,
		ResourceClaims:            pod.Spec.ResourceClaims,
		Resources:                 pod.Spec.Resources,
		OS:                        pod.Spec.OS,
		SchedulerName:             pod.Spec.SchedulerName,
		Containers:                placementParts(pod.Spec.Containers),
		InitContainers:            placementParts(pod.Spec.InitContainers),
	}
	ownVolumes := false
	for i := range pod.Spec.Volumes {
		switch v := pod.Spec.Volumes[i]; {
		case v.ConfigMap != nil, v.Secret != nil, v.EmptyDir != nil, v.Projected != nil, v.DownwardAPI != nil, v.HostPath != nil:
		default:
			ownVolumes = ownVolumes || v.Ephemeral != nil
			spec.Volumes = append(spec.Volumes, v)
		}
	}
	for i := range pod.Spec.ResourceClaims {
		ownVolumes = ownVolumes || pod.Spec.ResourceClaims[i].ResourceClaimTemplateName != nil
	}

	h := sha256.New()
	if raw, err := spec.Marshal(); err == nil {
		h.Write(raw)
	} else {
		// Not reachable with objects from the API server; such a pod is a class of its own.
		h.Write([]byte(pod.UID))
	}
	if ownVolumes {
		h.Write([]byte(pod.Name))
	}
	for _, key := range placementAnnotations {
		if value, ok := pod.Annotations[key]; ok {
			fmt.Fprintf(h, "\x00%s=%s", key, value)
		}
	}
	shape = Class(h.Sum(nil))
	selected := selectedKeys(&pod.Spec)
	ask = shape
	if traitsOf(pod) != 0 {
		ask = askOf(shape, pod, selected)
	}
	fmt.Fprintf(h, "\x00%s", pod.Namespace)
	for _, key := range slices.Sorted(maps.Keys(pod.Labels)) {
		if !identityLabels[key] || selected[key] {
			fmt.Fprintf(h, "\x00%s=%s", key, pod.Labels[key])
		}
	}
	return Class(h.Sum(nil)), shape, ask
}

// askOf adds to the shape of a pod the namespace, in which it selects other pods and names volumes and claims, and those of its labels
// by which its own terms count it, too.
func askOf(shape Class, pod *corev1.Pod, selected map[string]bool) Class {
	h := sha256.New()
	h.Write(shape[:])
	fmt.Fprintf(h, "\x00%s", pod.Namespace)
	for _, key := range slices.Sorted(maps.Keys(selected)) {
		if value, ok := pod.Labels[key]; ok {
			fmt.Fprintf(h, "\x00%s=%s", key, value)
		}
	}
	return Class(h.Sum(nil))
}

// placementParts keeps of containers what a node is asked for: requests, ports, images.
func placementParts(containers []corev1.Container) []corev1.Container {
	parts := make([]corev1.Container, len(containers))
	for i := range containers {
		c := &containers[i]
		parts[i] = corev1.Container{Image: c.Image, Ports: c.Ports, Resources: c.Resources, RestartPolicy: c.RestartPolicy}
	}
	return parts
}

// selectedKeys are the label keys that the pod's own affinity and spread terms look at.
func selectedKeys(spec *corev1.PodSpec) map[string]bool {
	keys := map[string]bool{}
	addTerm := func(term *corev1.PodAffinityTerm) {
		for _, k := range append(slices.Clone(term.MatchLabelKeys), term.MismatchLabelKeys...) {
			keys[k] = true
		}
		if term.LabelSelector != nil {
			for k := range term.LabelSelector.MatchLabels {
				keys[k] = true
			}
			for _, e := range term.LabelSelector.MatchExpressions {
				keys[e.Key] = true
			}
		}
	}
	for i := range spec.TopologySpreadConstraints {
		c := &spec.TopologySpreadConstraints[i]
		addTerm(&corev1.PodAffinityTerm{LabelSelector: c.LabelSelector, MatchLabelKeys: c.MatchLabelKeys})
	}
	if spec.Affinity == nil {
		return keys
	}
	if a := spec.Affinity.PodAffinity; a != nil {
		addTerms(addTerm, a.RequiredDuringSchedulingIgnoredDuringExecution, a.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if a := spec.Affinity.PodAntiAffinity; a != nil {
		addTerms(addTerm, a.RequiredDuringSchedulingIgnoredDuringExecution, a.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	return keys
}

func addTerms(add func(*corev1.PodAffinityTerm), required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) {
	for i := range required {
		add(&required[i])
	}
	for i := range preferred {
		add(&preferred[i].PodAffinityTerm)
	}
}
