// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package numa_test

import (
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/utils/cpuset"
	"pgregory.net/rapid"

	"github.com/caldera-scheduler/caldera/pkg/topology/numa"
)

// node is a node of 1 to 4 NUMA nodes with gaps in their numbers, each a socket or half of one, some of whose CPUs are free.
func node(t *rapid.T) (numa.CPUs, cpuset.CPUSet) {
	cpus, free := numa.CPUs{}, []int{}
	perSocket, perCore := rapid.IntRange(1, 2).Draw(t, "NUMA nodes per socket"), rapid.IntRange(1, 2).Draw(t, "threads")
	for n := range rapid.IntRange(1, 4).Draw(t, "NUMA nodes") {
		for i := range perCore * rapid.IntRange(1, 3).Draw(t, "cores") {
			id := len(cpus)
			cpus[id] = numa.CPU{NUMA: 3 * n, Socket: n / perSocket, Core: n%perSocket*10 + i/perCore}
			if rapid.Bool().Draw(t, "free") {
				free = append(free, id)
			}
		}
	}
	return cpus, cpuset.New(free...)
}

// on counts those of some CPUs that are on NUMA nodes of a set.
func on(cpus numa.CPUs, mask numa.Mask, of cpuset.CPUSet) int {
	n := 0
	for _, id := range of.List() {
		if mask&numa.Of(cpus[id].NUMA) != 0 {
			n++
		}
	}
	return n
}

// slowHints looks at every set and at every smaller one.
func slowHints(cpus numa.CPUs, free cpuset.CPUSet, count int) []numa.Hint {
	all := cpus.Nodes()
	var hints []numa.Hint
	for mask := numa.Mask(1); mask <= all; mask++ {
		if mask&^all != 0 || on(cpus, mask, free) < count {
			continue
		}
		preferred := true
		for other := numa.Mask(1); other <= all; other++ {
			if other&^all == 0 && other.Size() < mask.Size() && on(cpus, other, cpus.All()) >= count {
				preferred = false
			}
		}
		hints = append(hints, numa.Hint{NUMANodes: mask, Preferred: preferred})
	}
	return hints
}

func TestHintsAreThoseOfAllSets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cpus, free := node(t)
		count := rapid.IntRange(1, len(cpus)+1).Draw(t, "count")
		if diff := gocmp.Diff(slowHints(cpus, free, count), sorted(cpus.Hints(free, count)), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("hints (-slow,+got)\n%s", diff)
		}
	})
}

func TestAssignKeepsToThePolicy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cpus, free := node(t)
		count := rapid.IntRange(1, len(cpus)+1).Draw(t, "count")
		policy := rapid.SampledFrom(numa.Policies()).Draw(t, "policy")
		possible, narrowest := free.Size() >= count, len(cpus)
		aligned, single := false, false
		for _, h := range slowHints(cpus, free, count) {
			narrowest = min(narrowest, h.NUMANodes.Size())
			aligned = aligned || h.Preferred
			single = single || h.Preferred && h.NUMANodes.Size() == 1
		}
		want := map[numa.Policy]bool{
			numa.None: possible, numa.BestEffort: possible, numa.Restricted: aligned, numa.SingleNUMANode: single,
		}[policy]
		got, ok := cpus.Assign(policy, free, count)
		switch {
		case ok != want:
			t.Fatalf("%s admits it: %t, want %t", policy, ok, want)
		case ok && (got.Size() != count || !got.IsSubsetOf(free)):
			t.Fatalf("%d CPUs of %s are %s", count, free, got)
		case ok && policy != numa.None && cpus.NUMANodes(got).Size() > narrowest:
			t.Fatalf("%s is on %d NUMA nodes, %d have enough", got, cpus.NUMANodes(got).Size(), narrowest)
		}
	})
}

// wholeCores counts the cores that are in a set as a whole.
func wholeCores(cpus numa.CPUs, set cpuset.CPUSet) int {
	type core struct{ socket, core int }
	size, in := map[core]int{}, map[core]int{}
	for id, cpu := range cpus {
		c := core{cpu.Socket, cpu.Core}
		size[c]++
		if set.Contains(id) {
			in[c]++
		}
	}
	whole := 0
	for c, n := range in {
		if n == size[c] {
			whole++
		}
	}
	return whole
}

// With cores of one size no other choice of as many CPUs has more whole cores.
func TestTakeBreaksNoMoreCoresThanItMust(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cpus, free := node(t)
		if free.IsEmpty() {
			return
		}
		count := rapid.IntRange(1, free.Size()).Draw(t, "count")
		got, _ := cpus.Take(free, count)
		best := 0
		ids := free.List()
		for choice := range 1 << len(ids) {
			var chosen []int
			for i, id := range ids {
				if choice>>i&1 == 1 {
					chosen = append(chosen, id)
				}
			}
			if len(chosen) == count {
				best = max(best, wholeCores(cpus, cpuset.New(chosen...)))
			}
		}
		if whole := wholeCores(cpus, got); whole != best {
			t.Fatalf("%s of %s has %d whole cores, another choice %d", got, free, whole, best)
		}
	})
}
