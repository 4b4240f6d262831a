// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package numa_test

import (
	"cmp"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/utils/cpuset"

	"github.com/caldera-scheduler/caldera/pkg/topology/numa"
)

// Two NUMA nodes, each a socket of four cores: the node of Volcano's tests of hints
// (pkg/scheduler/plugins/numaaware/provider/cpumanager).
func twoByFour() numa.CPUs {
	cpus := numa.CPUs{}
	for id := range 8 {
		cpus[id] = numa.CPU{NUMA: id / 4, Socket: id / 4, Core: id}
	}
	return cpus
}

// Two sockets with two cores of two threads each; threads of a core are four apart, and both sockets number their cores from 0.
func threads() numa.CPUs {
	cpus := numa.CPUs{}
	for id := range 8 {
		cpus[id] = numa.CPU{NUMA: id % 4 / 2, Socket: id % 4 / 2, Core: id % 2}
	}
	return cpus
}

const (
	first  = numa.Mask(0b01)
	second = numa.Mask(0b10)
	both   = numa.Mask(0b11)
)

func preferred(masks ...numa.Mask) []numa.Hint {
	hints := make([]numa.Hint, len(masks))
	for i, m := range masks {
		hints[i] = numa.Hint{NUMANodes: m, Preferred: true}
	}
	return hints
}

func tolerated(mask numa.Mask) numa.Hint { return numa.Hint{NUMANodes: mask} }

// sorted puts hints into one order.
func sorted(hints []numa.Hint) []numa.Hint {
	slices.SortFunc(hints, func(a, b numa.Hint) int { return cmp.Compare(a.NUMANodes, b.NUMANodes) })
	return hints
}

func TestHintsAndWhatPoliciesAdmit(t *testing.T) {
	admits := func(policies ...numa.Policy) []numa.Policy { return policies }
	for name, tc := range map[string]struct {
		free  string
		count int
		hints []numa.Hint
		// admits are the policies that let the container in.
		admits []numa.Policy
	}{
		"half of it, all free":          {"0-7", 4, append(preferred(first, second), tolerated(both)), admits(numa.None, numa.BestEffort, numa.Restricted, numa.SingleNUMANode)},
		"half of it, one CPU is taken":  {"1-7", 4, append(preferred(second), tolerated(both)), admits(numa.None, numa.BestEffort, numa.Restricted, numa.SingleNUMANode)},
		"more than a NUMA node has":     {"0-7", 5, preferred(both), admits(numa.None, numa.BestEffort, numa.Restricted)},
		"all of it":                     {"0-7", 8, preferred(both), admits(numa.None, numa.BestEffort, numa.Restricted)},
		"more than there is":            {"0-7", 9, nil, nil},
		"enough on no single NUMA node": {"2-5", 4, []numa.Hint{tolerated(both)}, admits(numa.None, numa.BestEffort)},
		"more than is free":             {"0-2", 4, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			cpus, free := twoByFour(), parse(t, tc.free)
			hints := sorted(cpus.Hints(free, tc.count))
			if len(hints) == 0 {
				hints = nil
			}
			if diff := gocmp.Diff(tc.hints, hints); diff != "" {
				t.Errorf("hints (-want,+got)\n%s", diff)
			}
			var admitted []numa.Policy
			for _, policy := range numa.Policies() {
				if _, ok := cpus.Assign(policy, free, tc.count); ok {
					admitted = append(admitted, policy)
				}
			}
			if diff := gocmp.Diff(tc.admits, admitted); diff != "" {
				t.Errorf("policies that admit it (-want,+got)\n%s", diff)
			}
		})
	}
}

func parse(t *testing.T, list string) cpuset.CPUSet {
	t.Helper()
	set, err := cpuset.Parse(list)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// The case with two resources is Volcano's own (pkg/scheduler/plugins/numaaware/policy).
func TestMerge(t *testing.T) {
	type result struct {
		Hint     numa.Hint
		Admitted bool
	}
	for name, tc := range map[string]struct {
		policy    numa.Policy
		resources [][]numa.Hint
		want      result
	}{
		"two resources prefer the same": {
			numa.BestEffort,
			[][]numa.Hint{append(preferred(first), tolerated(both)), append(preferred(first), tolerated(both))},
			result{preferred(first)[0], true},
		},
		"two resources prefer different NUMA nodes": {
			numa.Restricted,
			[][]numa.Hint{append(preferred(first), tolerated(both)), append(preferred(second), tolerated(both))},
			result{tolerated(first), false},
		},
		"two resources on different NUMA nodes": {
			numa.BestEffort, [][]numa.Hint{preferred(first), preferred(second)}, result{tolerated(both), true},
		},
		"the lower of two that are as good": {numa.Restricted, [][]numa.Hint{preferred(second, first)}, result{preferred(first)[0], true}},
		"one NUMA node only":                {numa.SingleNUMANode, [][]numa.Hint{preferred(both)}, result{tolerated(both), false}},
		"nobody asks for anything":          {numa.SingleNUMANode, nil, result{preferred(both)[0], true}},
		"no hints":                          {numa.Restricted, [][]numa.Hint{nil}, result{tolerated(both), false}},
	} {
		t.Run(name, func(t *testing.T) {
			hint, admitted := numa.Merge(tc.policy, both, tc.resources...)
			if diff := gocmp.Diff(tc.want, result{hint, admitted}); diff != "" {
				t.Errorf("(-want,+got)\n%s", diff)
			}
		})
	}
}

func TestTake(t *testing.T) {
	for name, tc := range map[string]struct {
		cpus  numa.CPUs
		free  string
		count int
		want  string
	}{
		"a whole socket": {threads(), "0-7", 4, "0,1,4,5"},
		"the other socket if one of this is taken":          {threads(), "1-7", 4, "2,3,6,7"},
		"a socket and a core":                               {threads(), "0-7", 6, "0-2,4-6"},
		"a core on the socket where the fewest cores are":   {threads(), "1-7", 2, "1,5"},
		"one CPU of a core that is begun":                   {threads(), "1-7", 1, "4"},
		"a core, and one CPU beside it":                     {threads(), "1-7", 3, "1,4,5"},
		"one CPU of a core that is whole, if there is none": {threads(), "0-7", 1, "0"},
		"scattered CPUs":                                    {threads(), "0,3", 2, "0,3"},
		"all":                                               {threads(), "0-7", 8, "0-7"},
		"a socket over two NUMA nodes":                      {numa.CPUs{0: {NUMA: 0}, 1: {NUMA: 0, Core: 1}, 2: {NUMA: 1, Core: 2}, 3: {NUMA: 1, Core: 3}}, "2,3", 2, "2,3"},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := tc.cpus.Take(parse(t, tc.free), tc.count)
			if !ok || !got.Equals(parse(t, tc.want)) {
				t.Errorf("took %s, %t, want %s", got, ok, tc.want)
			}
		})
	}
	if got, ok := threads().Take(parse(t, "0-2"), 4); ok || !got.IsEmpty() {
		t.Errorf("took %s of 3 CPUs that are free, want 4 or none", got)
	}
}
