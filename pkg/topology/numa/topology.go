// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package numa decides which logical CPUs of a node a container gets, as the kubelet's CPU manager and topology manager
// do. It knows nothing of Kubernetes but its sets of CPUs.
package numa

import (
	"math/bits"
	"slices"

	"k8s.io/utils/cpuset"
)

// CPU is where a logical CPU is. Numbers of cores may repeat from one socket to the next.
type CPU struct{ NUMA, Socket, Core int }

// CPUs are the logical CPUs of a node, by number.
type CPUs map[int]CPU

// MostNUMANodes is how many NUMA nodes there may be: hints are made for every set of them. The kubelet supports 8 unless it is
// told otherwise.
const MostNUMANodes = 16

// HighestNUMANode is the highest number of a NUMA node; the numbers are bits of a Mask.
const HighestNUMANode = 63

// All are all CPUs.
func (c CPUs) All() cpuset.CPUSet {
	ids := make([]int, 0, len(c))
	for id := range c {
		ids = append(ids, id)
	}
	return cpuset.New(ids...)
}

// Mask is a set of NUMA nodes, by number: one bit each.
type Mask uint64

// Of returns the set of a NUMA node.
func Of(numa int) Mask { return 1 << numa }

// Size is how many NUMA nodes are in the set.
func (m Mask) Size() int { return bits.OnesCount64(uint64(m)) }

// narrower reports whether a set is smaller than another one, or as small with lower numbers.
func (m Mask) narrower(other Mask) bool {
	return m.Size() < other.Size() || m.Size() == other.Size() && m < other
}

// Nodes is the set of all NUMA nodes.
func (c CPUs) Nodes() Mask {
	var mask Mask
	for _, cpu := range c {
		mask |= Of(cpu.NUMA)
	}
	return mask
}

// NUMANodes is the set of NUMA nodes that some CPUs are on.
func (c CPUs) NUMANodes(of cpuset.CPUSet) Mask {
	var mask Mask
	for _, id := range of.UnsortedList() {
		mask |= Of(c[id].NUMA)
	}
	return mask
}

// on are those of some CPUs that are on NUMA nodes of a set.
func (c CPUs) on(mask Mask, of cpuset.CPUSet) cpuset.CPUSet {
	var ids []int
	for _, id := range of.UnsortedList() {
		if mask&Of(c[id].NUMA) != 0 {
			ids = append(ids, id)
		}
	}
	return cpuset.New(ids...)
}

// Hint is a set of NUMA nodes on which there is enough of a resource.
type Hint struct {
	NUMANodes Mask
	// Preferred: no smaller set could ever have enough.
	Preferred bool
}

// Hints are the sets of NUMA nodes that have as many free CPUs as asked for, which is at least 1, by their numbers as bits. A
// set is preferred if no smaller one would have so many CPUs if all were free. Source: Volcano
// pkg/scheduler/plugins/numaaware/provider/cpumanager, kubernetes pkg/kubelet/cm/cpumanager/policy_static.go.
func (c CPUs) Hints(free cpuset.CPUSet, count int) []Hint {
	nodes, total, idle := c.perNUMANode(free)
	least := len(nodes) + 1
	enough := make([]Hint, 0, 1<<len(nodes))
	// A number is a set of positions in nodes; what a set has is what the set without its lowest position has, and that one.
	has, hasFree := make([]int, 1<<len(nodes)), make([]int, 1<<len(nodes))
	masks := make([]Mask, 1<<len(nodes))
	for set := 1; set < len(masks); set++ {
		rest, lowest := set&(set-1), bits.TrailingZeros(uint(set))
		has[set], hasFree[set] = has[rest]+total[lowest], hasFree[rest]+idle[lowest]
		masks[set] = masks[rest] | Of(nodes[lowest])
		if has[set] >= count {
			least = min(least, masks[set].Size())
		}
		if hasFree[set] >= count {
			enough = append(enough, Hint{NUMANodes: masks[set]})
		}
	}
	for i := range enough {
		enough[i].Preferred = enough[i].NUMANodes.Size() == least
	}
	return enough
}

// perNUMANode returns the NUMA nodes by number, and for each how many CPUs it has and how many of them are free.
func (c CPUs) perNUMANode(free cpuset.CPUSet) (nodes, total, idle []int) {
	for mask := c.Nodes(); mask != 0; mask &= mask - 1 {
		nodes = append(nodes, bits.TrailingZeros64(uint64(mask)))
	}
	position := make(map[int]int, len(nodes))
	for i, numa := range nodes {
		position[numa] = i
	}
	total, idle = make([]int, len(nodes)), make([]int, len(nodes))
	for id, cpu := range c {
		total[position[cpu.NUMA]]++
		if free.Contains(id) {
			idle[position[cpu.NUMA]]++
		}
	}
	return nodes, total, idle
}

// Policy is a policy of the kubelet's topology manager.
type Policy string

// The policies.
const (
	None           Policy = "none"
	BestEffort     Policy = "best-effort"
	Restricted     Policy = "restricted"
	SingleNUMANode Policy = "single-numa-node"
)

// Policies are all policies there are.
func Policies() []Policy { return []Policy{None, BestEffort, Restricted, SingleNUMANode} }

// Merge finds the narrowest set of NUMA nodes on which all resources agree, each with hints of its own, and one that all
// prefer if there is one; all NUMA nodes if they do not agree. It also reports whether a policy admits that. Source: Volcano
// pkg/scheduler/plugins/numaaware/policy, kubernetes pkg/kubelet/cm/topologymanager.
func Merge(policy Policy, all Mask, resources ...[]Hint) (merged Hint, admitted bool) {
	agreed := []Hint{{NUMANodes: all, Preferred: true}}
	for _, hints := range resources {
		if policy == SingleNUMANode {
			hints = slices.DeleteFunc(slices.Clone(hints), func(h Hint) bool { return !h.Preferred || h.NUMANodes.Size() != 1 })
		}
		agreed = both(agreed, hints)
	}
	merged = Hint{NUMANodes: all}
	for _, h := range agreed {
		if h.Preferred && !merged.Preferred || h.Preferred == merged.Preferred && h.NUMANodes.narrower(merged.NUMANodes) {
			merged = h
		}
	}
	return merged, merged.Preferred || policy == None || policy == BestEffort
}

// both are the sets on which one of the first hints and one of the second agree.
func both(first, second []Hint) []Hint {
	var agreed []Hint
	for _, a := range first {
		for _, b := range second {
			if common := a.NUMANodes & b.NUMANodes; common != 0 {
				agreed = append(agreed, Hint{NUMANodes: common, Preferred: a.Preferred && b.Preferred})
			}
		}
	}
	return agreed
}
