// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package nodespec

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// minDigits keeps names of small clusters stable (node-0000) and sortable up to 10,000 nodes.
const minDigits = 4

// Nodes builds the objects of all shapes. Shapes with the same prefix are numbered together; names sort in creation
// order. Each node is complete, with a Ready status, so that one API call creates a schedulable node.
func Nodes(shapes []Shape, kubeletVersion string, now time.Time) []*corev1.Node {
	perPrefix := map[string]int{}
	for _, shape := range shapes {
		perPrefix[shape.Prefix] += shape.Count
	}
	next := map[string]int{}
	var nodes []*corev1.Node
	for _, shape := range shapes {
		digits := max(minDigits, len(strconv.Itoa(perPrefix[shape.Prefix]-1)))
		for range shape.Count {
			name := fmt.Sprintf("%s-%0*d", shape.Prefix, digits, next[shape.Prefix])
			next[shape.Prefix]++
			nodes = append(nodes, node(name, len(nodes), shape, kubeletVersion, now))
		}
	}
	return nodes
}

func node(name string, index int, shape Shape, kubeletVersion string, now time.Time) *corev1.Node {
	labels := map[string]string{
		corev1.LabelHostname:   name,
		corev1.LabelOSStable:   "linux",
		corev1.LabelArchStable: "amd64",
	}
	maps.Copy(labels, shape.Labels)
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec:       corev1.NodeSpec{Taints: slices.Clone(shape.Taints)},
		Status: corev1.NodeStatus{
			Capacity:    shape.Resources.DeepCopy(),
			Allocatable: shape.Resources.DeepCopy(),
			Phase:       corev1.NodeRunning,
			Conditions:  readyConditions(metav1.NewTime(now)),
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: nodeIP(index)},
				{Type: corev1.NodeHostName, Address: name},
			},
			NodeInfo: corev1.NodeSystemInfo{
				KubeletVersion:  kubeletVersion,
				OperatingSystem: "linux",
				Architecture:    "amd64",
			},
		},
	}
}

// nodeIP spreads nodes over 172.16.0.0/12, which holds a million of them.
func nodeIP(index int) string {
	index++
	return fmt.Sprintf("172.%d.%d.%d", 16+(index>>16)&0xf, index>>8&0xff, index&0xff)
}

func readyConditions(now metav1.Time) []corev1.NodeCondition {
	healthy := func(kind corev1.NodeConditionType, status corev1.ConditionStatus, reason string) corev1.NodeCondition {
		return corev1.NodeCondition{
			Type: kind, Status: status, Reason: reason, LastHeartbeatTime: now, LastTransitionTime: now,
		}
	}
	return []corev1.NodeCondition{
		healthy(corev1.NodeReady, corev1.ConditionTrue, "KubeletReady"),
		healthy(corev1.NodeMemoryPressure, corev1.ConditionFalse, "KubeletHasSufficientMemory"),
		healthy(corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure"),
		healthy(corev1.NodePIDPressure, corev1.ConditionFalse, "KubeletHasSufficientPID"),
	}
}
