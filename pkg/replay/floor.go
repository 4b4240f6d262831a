// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"strings"

	"github.com/caldera-scheduler/caldera/pkg/node/fragment"
	"github.com/caldera-scheduler/caldera/pkg/replay/trace"
)

// floor is what is left on nodes, to measure fragmentation.
type floor struct {
	// cpuOf is the CPU of a pod of a job, in thousandths of a core.
	cpuOf func(trace.Job) int64
	kinds fragment.Kinds
	nodes []machine
	// index are the nodes by name.
	index map[string]int
	// held are the nodes of each job's pods.
	held map[*actor][]int
}

// machine is what is left on a node.
type machine struct {
	milliCPU int64
	// left is what is left of each GPU.
	left  []int
	model string
}

func newFloor(t *trace.Trace, cpuOf func(trace.Job) int64) *floor {
	f := &floor{cpuOf: cpuOf, index: map[string]int{}, held: map[*actor][]int{}}
	for _, n := range t.Nodes {
		f.index[n.Name] = len(f.nodes)
		m := machine{milliCPU: n.MilliCPU, model: n.Model, left: make([]int, n.GPUs)}
		for i := range m.left {
			m.left[i] = fragment.Whole
		}
		f.nodes = append(f.nodes, m)
	}
	counts := map[fragment.Demand]int{}
	for _, j := range t.Jobs {
		counts[f.demand(j)] += j.Workers
	}
	f.kinds = fragment.KindsOf(counts)
	return f
}

// demand is what a pod of a job asks for.
func (f *floor) demand(j trace.Job) fragment.Demand {
	d := fragment.Demand{MilliCPU: f.cpuOf(j), GPUs: j.GPUs, Models: strings.Join(j.Models, "|")}
	if j.GPUs > 0 {
		d.Milli = j.MilliGPU
	}
	return d
}

// take notes that a pod of a job is on a node. Whole GPUs are alike.
func (f *floor) take(a *actor, node string) {
	i, ok := f.index[node]
	if !ok {
		return
	}
	f.held[a] = append(f.held[a], i)
	f.change(i, a, -1)
}

// give notes that a job left its nodes.
func (f *floor) give(a *actor) {
	for _, i := range f.held[a] {
		f.change(i, a, 1)
	}
	delete(f.held, a)
}

// change moves the GPUs of a pod: from those that are whole to those that are gone, or back.
func (f *floor) change(node int, a *actor, sign int) {
	m := &f.nodes[node]
	m.milliCPU += int64(sign) * f.cpuOf(a.Job)
	is := fragment.Whole
	if sign > 0 {
		is = 0
	}
	for i, moved := 0, 0; i < len(m.left) && moved < a.GPUs; i++ {
		if m.left[i] == is {
			m.left[i] = fragment.Whole - is
			moved++
		}
	}
}

// fragmented is what the average pod could not use, in GPUs.
func (f *floor) fragmented() float64 {
	sum := 0.0
	for _, m := range f.nodes {
		sum += f.kinds.Lost(m.milliCPU, m.left, m.model)
	}
	return sum / fragment.Whole
}

// cpuOf is the CPU of a pod of a job, in thousandths of a core.
func (s *shapes) cpuOf(j trace.Job) int64 {
	if j.MilliCPU >= 0 {
		return j.MilliCPU
	}
	return max(withoutGPU, int64(s.milliCPU*float64(j.GPUs)))
}

// memoryOf is its memory in MiB.
func (s *shapes) memoryOf(j trace.Job) int64 {
	if j.MemoryMiB >= 0 {
		return j.MemoryMiB
	}
	return max(withoutGPU, int64(s.memoryMiB*float64(j.GPUs)))
}
