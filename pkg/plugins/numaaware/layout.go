// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package numaaware

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/cpuset"
	nodeinfo "volcano.sh/apis/pkg/apis/nodeinfo/v1alpha1"

	"github.com/caldera-scheduler/caldera/pkg/topology/numa"
)

// layout is what a Numatopology tells of a node.
type layout struct {
	spec *nodeinfo.NumatopoSpec
	// problem says which field cannot be read, and why; empty when all can.
	problem string
	// cpuManager is the policy of the kubelet's CPU manager: "static" gives containers CPUs of their own.
	cpuManager string
	policy     numa.Policy
	cpus       numa.CPUs
	// free are the CPUs that no container has for itself and that are not reserved for the system.
	free cpuset.CPUSet
	// exclusive is how many CPUs containers have for themselves.
	exclusive int
}

// read reads a Numatopology.
func read(o *nodeinfo.Numatopology) *layout {
	l := &layout{
		spec:       &o.Spec,
		cpuManager: o.Spec.Policies[nodeinfo.CPUManagerPolicy],
		policy:     numa.Policy(o.Spec.Policies[nodeinfo.TopologyManagerPolicy]),
		cpus:       numa.CPUs{},
	}
	if l.policy == "" {
		l.policy = numa.None
	}
	if err := l.readCPUs(); err != nil {
		l.problem = fmt.Sprintf("Numatopology %s cannot be read: %v", o.Name, err)
	}
	return l
}

func (l *layout) readCPUs() error {
	if !slices.Contains(numa.Policies(), l.policy) {
		return fmt.Errorf("spec.policies[%s] is %q, want one of %v", nodeinfo.TopologyManagerPolicy, l.policy, numa.Policies())
	}
	for _, key := range slices.Sorted(maps.Keys(l.spec.CPUDetail)) {
		where := l.spec.CPUDetail[key]
		id, err := strconv.ParseUint(key, 10, 31)
		if err != nil {
			return fmt.Errorf("spec.cpuDetail has the key %q, want the number of a CPU", key)
		}
		if where.NUMANodeID < 0 || where.NUMANodeID > numa.HighestNUMANode {
			return fmt.Errorf("spec.cpuDetail[%s].numa is %d, want a number from 0 to %d", key, where.NUMANodeID, numa.HighestNUMANode)
		}
		l.cpus[int(id)] = numa.CPU{NUMA: where.NUMANodeID, Socket: where.SocketID, Core: where.CoreID}
	}
	all := l.cpus.All()
	if count := l.cpus.Nodes().Size(); count > numa.MostNUMANodes {
		return fmt.Errorf("spec.cpuDetail has %d NUMA nodes, at most %d are supported", count, numa.MostNUMANodes)
	}
	const field = "spec.numares[cpu].allocatable"
	given := l.spec.NumaResMap[string(corev1.ResourceCPU)].Allocatable
	allocatable, err := cpuset.Parse(given)
	if err != nil {
		return fmt.Errorf("%s is %q, want CPUs such as 0-3,8", field, given)
	}
	if unknown := allocatable.Difference(all); !unknown.IsEmpty() {
		return fmt.Errorf("%s is %q, and spec.cpuDetail does not know %s", field, given, unknown)
	}
	reserved, err := l.reserved()
	if err != nil {
		return err
	}
	l.free = allocatable.Difference(reserved)
	l.exclusive = all.Difference(allocatable).Difference(reserved).Size()
	return nil
}

// reserved are the CPUs that the kubelet keeps for the system. It says how many these are; which ones follows from that
// (kubernetes pkg/kubelet/cm/cpumanager/policy_static.go).
func (l *layout) reserved() (cpuset.CPUSet, error) {
	given := l.spec.ResReserved[string(corev1.ResourceCPU)]
	if given == "" {
		return cpuset.New(), nil
	}
	quantity, err := resource.ParseQuantity(given)
	if err != nil {
		return cpuset.New(), fmt.Errorf("spec.resReserved[cpu] is %q, want a number of CPUs such as 500m", given)
	}
	all := l.cpus.All()
	reserved, _ := l.cpus.Take(all, min(max(0, int(quantity.Value())), all.Size())) // Value rounds up.
	return reserved, nil
}
