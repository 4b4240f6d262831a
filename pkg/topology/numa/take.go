// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package numa

import (
	"cmp"
	"slices"

	"k8s.io/utils/cpuset"
)

// Assign chooses as many of the free CPUs as asked for, on NUMA nodes that a policy of the topology manager admits; false when
// it admits none, or there are not so many.
func (c CPUs) Assign(policy Policy, free cpuset.CPUSet, count int) (cpuset.CPUSet, bool) {
	all := c.Nodes()
	hint := Hint{NUMANodes: all}
	if policy != None {
		var admitted bool
		if hint, admitted = Merge(policy, all, c.Hints(free, count)); !admitted {
			return cpuset.New(), false
		}
	}
	return c.Take(c.on(hint.NUMANodes, free), count)
}

// Take chooses as many of the free CPUs as asked for so that what stays free is in one piece: whole sockets, then whole
// cores on the sockets with the fewest of them, then single CPUs where the fewest are free, beside those chosen already; false
// when there are not so many. Source: kubernetes pkg/kubelet/cm/cpumanager/cpu_assignment.go.
func (c CPUs) Take(free cpuset.CPUSet, count int) (cpuset.CPUSet, bool) {
	if count > free.Size() {
		return cpuset.New(), false
	}
	t := &taking{cpus: c, free: free.List(), open: count}
	t.whole(func(cpu CPU) CPU { return CPU{Socket: cpu.Socket} })
	t.whole(func(cpu CPU) CPU { return CPU{Socket: cpu.Socket, Core: cpu.Core} })
	t.single()
	return cpuset.New(t.taken...), true
}

// taking is a choice in the making.
type taking struct {
	cpus CPUs
	// free are those left to choose from, by number.
	free, taken []int
	// open is how many are still to be chosen.
	open int
}

// count is how many CPUs a part of the node has.
type count map[CPU]int

// whole takes parts of the node, sockets or cores, all CPUs of which are free, while they are not more than is open. Those on
// the sockets with the fewest such parts go first.
func (t *taking) whole(part func(CPU) CPU) {
	size := count{}
	for _, cpu := range t.cpus {
		size[part(cpu)]++
	}
	free := map[CPU][]int{}
	for _, id := range t.free {
		p := part(t.cpus[id])
		free[p] = append(free[p], id)
	}
	var parts []CPU
	perSocket := map[int]int{}
	for p, ids := range free {
		if len(ids) == size[p] {
			parts = append(parts, p)
			perSocket[p.Socket]++
		}
	}
	slices.SortFunc(parts, func(a, b CPU) int {
		return cmp.Or(cmp.Compare(perSocket[a.Socket], perSocket[b.Socket]), cmp.Compare(a.Socket, b.Socket), cmp.Compare(a.Core, b.Core))
	})
	for _, p := range parts {
		if len(free[p]) <= t.open {
			t.take(free[p]...)
		}
	}
}

// single takes CPUs one by one.
func (t *taking) single() {
	onSocket, onCore, ours := map[int]int{}, count{}, map[int]int{}
	core := func(id int) CPU { return CPU{Socket: t.cpus[id].Socket, Core: t.cpus[id].Core} }
	for _, id := range t.free {
		onSocket[t.cpus[id].Socket]++
		onCore[core(id)]++
	}
	for _, id := range t.taken {
		ours[t.cpus[id].Socket]++
	}
	slices.SortFunc(t.free, func(a, b int) int {
		x, y := core(a), core(b)
		return cmp.Or(
			cmp.Compare(ours[y.Socket], ours[x.Socket]),
			cmp.Compare(onSocket[x.Socket], onSocket[y.Socket]),
			cmp.Compare(onCore[x], onCore[y]),
			cmp.Compare(x.Socket, y.Socket), cmp.Compare(x.Core, y.Core), cmp.Compare(a, b),
		)
	})
	t.take(slices.Clone(t.free[:t.open])...)
}

func (t *taking) take(ids ...int) {
	t.taken = append(t.taken, ids...)
	t.free = slices.DeleteFunc(t.free, func(id int) bool { return slices.Contains(ids, id) })
	t.open -= len(ids)
}
