// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/caldera-scheduler/caldera/pkg/gang"
	"github.com/caldera-scheduler/caldera/pkg/plugins/planner"
)

// newPlanner gives the planner what it needs of a profile.
func newPlanner(f framework.Framework, parts Parts, devices *planner.Devices) *gang.Planner {
	claims := f.SharedInformerFactory().Core().V1().PersistentVolumeClaims().Lister()
	p := planner.New(f, devices)
	p.Arrange, p.Domains = parts.Rules.Arrange, parts.Rules
	p.Ours = func(pod types.UID) bool { return parts.State.Task(pod) != nil }
	p.SampleSize = func(nodes int) int { return sampleSize(nodes, f.PercentageOfNodesToScore()) }
	p.ReservationCanFail = func(pod *corev1.Pod) bool {
		return reservationCanFail(pod, claims) || parts.Rules.ReservationCanFail(pod)
	}
	return p
}

// leastSample is the number of nodes below which all are looked at, leastPercentage the smallest share of the nodes
// otherwise (k8s.io/kubernetes/pkg/scheduler/schedule_one.go).
const (
	leastSample     = 100
	leastPercentage = 5
)

// sampleSize is upstream's rule for how many feasible nodes are enough: all of a small cluster, 50 % less 1 % for
// each 125 nodes of a larger one, or the configured percentage.
func sampleSize(nodes int, configured *int32) int {
	if nodes < leastSample {
		return nodes
	}
	percentage := 0
	if configured != nil {
		percentage = int(*configured)
	}
	if percentage == 0 {
		percentage = max(leastPercentage, 50-nodes/125)
	}
	return max(leastSample, nodes*percentage/100)
}

// reservationCanFail reports whether placing the pod takes something that Filter only believes to be there: a volume
// that is not bound to its claim yet, or a device.
func reservationCanFail(pod *corev1.Pod, claims corelisters.PersistentVolumeClaimLister) bool {
	if len(pod.Spec.ResourceClaims) > 0 {
		return true
	}
	for i := range pod.Spec.Volumes {
		switch v := &pod.Spec.Volumes[i]; {
		case v.Ephemeral != nil:
			return true
		case v.PersistentVolumeClaim != nil:
			claim, err := claims.PersistentVolumeClaims(pod.Namespace).Get(v.PersistentVolumeClaim.ClaimName)
			if err != nil || claim.Spec.VolumeName == "" {
				return true
			}
		}
	}
	return false
}
