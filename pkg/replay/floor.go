// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/caldera-scheduler/caldera/pkg/node/fragment"
	"github.com/caldera-scheduler/caldera/pkg/plugins/deviceshare/card"
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
	// held is what each job's pods hold.
	held map[*actor][]holding
	// changed are the nodes whose loss is to be computed anew.
	changed map[int]bool
}

// machine is a node with what is left of it.
type machine struct {
	fragment.Left
	// leaf is the switch next to it; empty: not known.
	leaf string
	// lost is what the average pod could not use of that.
	lost float64
}

// holding is what a pod holds of a node: so much of some GPUs.
type holding struct {
	node, milli int
	gpus        []int
}

func newFloor(t *trace.Trace, cpuOf func(trace.Job) int64) *floor {
	f := &floor{cpuOf: cpuOf, index: map[string]int{}, held: map[*actor][]holding{}, changed: map[int]bool{}}
	for i, n := range t.Nodes {
		f.index[n.Name] = i
		f.changed[i] = true
		m := machine{Left: fragment.Left{MilliCPU: n.MilliCPU, GPUs: make([]int, n.GPUs), Model: n.Model}}
		if len(n.Network) > 0 {
			m.leaf = switchName(n, 1)
		}
		for g := range m.GPUs {
			m.GPUs[g] = fragment.Whole
		}
		f.nodes = append(f.nodes, m)
	}
	usual := t.Usual
	if usual == nil {
		usual = t.Jobs
	}
	counts := map[fragment.Demand]float64{}
	for _, j := range usual {
		counts[f.demand(j)] += float64(j.Workers)
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

// take notes that a pod of a job is on a node.
func (f *floor) take(a *actor, pod *corev1.Pod) {
	i, ok := f.index[pod.Spec.NodeName]
	if !ok {
		return
	}
	h := holding{node: i, milli: a.MilliGPU, gpus: f.cards(pod)}
	if h.gpus == nil {
		h.gpus = f.nodes[i].whole(a.GPUs)
	}
	f.held[a] = append(f.held[a], h)
	f.change(a, h, -1)
}

// cards are the GPUs that a pod was told to use; nil where it was told nothing.
func (f *floor) cards(pod *corev1.Pod) []int {
	assigned, ok := card.VGPU{}.Recorded(pod, pod.Spec.NodeName)
	if !ok {
		return nil
	}
	var gpus []int
	for _, container := range assigned {
		for _, slice := range container {
			if g, ok := cardNumber(slice.Card); ok {
				gpus = append(gpus, g)
			}
		}
	}
	return gpus
}

// whole are so many GPUs of which nothing is taken. They are alike.
func (m *machine) whole(n int) []int {
	var gpus []int
	for g, left := range m.GPUs {
		if len(gpus) < n && left == fragment.Whole {
			gpus = append(gpus, g)
		}
	}
	return gpus
}

// switches is how many switches next to the nodes a job's pods are below.
func (f *floor) switches(a *actor) int {
	var leaves []string
	for _, h := range f.held[a] {
		if leaf := f.nodes[h.node].leaf; leaf != "" && !slices.Contains(leaves, leaf) {
			leaves = append(leaves, leaf)
		}
	}
	return len(leaves)
}

// give notes that a job left its nodes.
func (f *floor) give(a *actor) {
	for _, h := range f.held[a] {
		f.change(a, h, 1)
	}
	delete(f.held, a)
}

// change adds to what is left on a node, or takes from it.
func (f *floor) change(a *actor, h holding, sign int) {
	m := &f.nodes[h.node]
	m.MilliCPU += int64(sign) * f.cpuOf(a.Job)
	for _, g := range h.gpus {
		m.GPUs[g] += sign * h.milli
	}
	f.changed[h.node] = true
}

// fragmented is what the average pod could not use, in GPUs.
func (f *floor) fragmented() float64 {
	for i := range f.changed {
		m := &f.nodes[i]
		m.lost = f.kinds.Lost(m.Left)
	}
	clear(f.changed)
	sum := 0.0
	for i := range f.nodes {
		sum += f.nodes[i].lost
	}
	return sum / fragment.Whole
}
