// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MovableAnnotation of a pod: "true" lets it be moved to another node however long it has run, "false" keeps it where it is. To be moved is to be
// evicted, and created again by its controller.
const MovableAnnotation = "caldera.dev/movable"

// ParseMovable reads the value of MovableAnnotation.
func ParseMovable(said string) (bool, error) {
	may, err := strconv.ParseBool(said)
	if err != nil {
		return false, fmt.Errorf(`annotation %s is %.100q: write "true" or "false"; the pod is not moved until then`, MovableAnnotation, said)
	}
	return may, nil
}

// Controller is who creates the pod again; nil when nobody does.
func (t *Task) Controller() *metav1.OwnerReference { return metav1.GetControllerOf(t.Pod) }

// Unmovable says why a running pod is not to be moved to another node, in a short phrase; empty when it may be. MaxAge is how long it may have run; 0 is
// however long.
func (t *Task) Unmovable(now time.Time, maxAge time.Duration) string {
	said, given := t.Pod.Annotations[MovableAnnotation]
	may, _ := ParseMovable(said)
	owner := t.Controller()
	switch {
	case given && !may:
		return "it is not to be moved (" + MovableAnnotation + ")"
	case owner == nil:
		return "nobody would create it again: it has no controller"
	case owner.Kind == "DaemonSet":
		return "it belongs to its node: its controller is a DaemonSet"
	case t.Traits != 0 || tiedToNode(&t.Pod.Spec):
		return "it has volumes, resource claims, host ports or terms about other pods"
	case !given && maxAge > 0 && t.startedBy(now.Add(-maxAge)):
		return "it has run for too long to be moved"
	}
	return ""
}

// startedBy reports whether the pod had started at a time.
func (t *Task) startedBy(at time.Time) bool {
	start := t.Pod.Status.StartTime
	return start != nil && start.Time.Before(at)
}

// tiedToNode reports whether a pod uses what is its node's.
func tiedToNode(spec *corev1.PodSpec) bool {
	port := func(p corev1.ContainerPort) bool { return p.HostPort != 0 }
	container := func(c corev1.Container) bool { return slices.ContainsFunc(c.Ports, port) }
	return spec.HostNetwork || slices.ContainsFunc(spec.Containers, container) || slices.ContainsFunc(spec.InitContainers, container) ||
		slices.ContainsFunc(spec.Volumes, func(v corev1.Volume) bool { return v.HostPath != nil })
}
