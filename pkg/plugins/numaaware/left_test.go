// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package numaaware_test

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/utils/cpuset"
	"pgregory.net/rapid"
	nodeinfo "volcano.sh/apis/pkg/apis/nodeinfo/v1alpha1"

	"github.com/caldera-scheduler/caldera/pkg/plugins/numaaware"
	"github.com/caldera-scheduler/caldera/pkg/topology/numa"
)

// TestWhatIsNotToldYetIsWorkedOut plays the kubelet: it gives pods CPUs in the order in which they come, and the exporter tells of the
// first of them only. What is left must be the same however many it tells of, in whatever order the pods are listed.
func TestWhatIsNotToldYetIsWorkedOut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		policy := rapid.SampledFrom(numa.Policies()).Draw(t, "policy")
		cpus, detail := numa.CPUs{}, map[string]nodeinfo.CPUInfo{}
		for id := range 16 {
			cpu := numa.CPU{NUMA: id % 8 / 4, Socket: id % 8 / 4, Core: id % 8}
			cpus[id], detail[strconv.Itoa(id)] = cpu, nodeinfo.CPUInfo{NUMANodeID: cpu.NUMA, SocketID: cpu.Socket, CoreID: cpu.Core}
		}
		reserved := rapid.IntRange(0, 3).Draw(t, "reserved")
		system, _ := cpus.Take(cpus.All(), reserved)
		free, told := cpus.All().Difference(system), []cpuset.CPUSet{cpus.All()}
		var pods []fwk.PodInfo
		for i := range rapid.IntRange(0, 5).Draw(t, "pods") {
			count := rapid.IntRange(1, 6).Draw(t, "CPUs")
			taken, ok := cpus.Assign(policy, free, count)
			if !ok {
				continue
			}
			free = free.Difference(taken)
			told = append(told, told[len(told)-1].Difference(taken))
			pods = append(pods, podOf(t, i, count))
		}
		known := rapid.IntRange(0, len(pods)).Draw(t, "pods that are told of")
		for _, p := range pods[:known] {
			p.GetPod().Status.StartTime = &p.GetPod().CreationTimestamp
		}
		o := &nodeinfo.Numatopology{Spec: nodeinfo.NumatopoSpec{
			Policies:    map[nodeinfo.PolicyName]string{nodeinfo.CPUManagerPolicy: "static", nodeinfo.TopologyManagerPolicy: string(policy)},
			ResReserved: map[string]string{"cpu": strconv.Itoa(reserved)},
			NumaResMap:  map[string]nodeinfo.ResourceInfo{"cpu": {Allocatable: told[known].String()}},
			CPUDetail:   detail,
		}}
		slices.Reverse(pods)
		if got := numaaware.Left(o, pods); !got.Equals(free) {
			t.Fatalf("%s is left, want %s", got, free)
		}
	})
}

// podOf is a guaranteed pod with so many CPUs.
func podOf(t *rapid.T, number, cpus int) fwk.PodInfo {
	limits := corev1.ResourceList{"cpu": *resource.NewQuantity(int64(cpus), resource.DecimalSI), "memory": resource.MustParse("1Gi")}
	info, err := framework.NewPodInfo(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("p%d", number), CreationTimestamp: metav1.NewTime(time.Unix(int64(1000+number), 0)),
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: limits, Limits: limits}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return info
}
