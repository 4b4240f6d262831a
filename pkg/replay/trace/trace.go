// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package trace reads what a replay plays: nodes, queues and jobs, in the CSV formats in which others published them, and cuts and compresses it.
// docs/replay.md describes the formats.
package trace

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// Trace is a cluster and the jobs that come to it.
type Trace struct {
	Nodes []Node
	// Queues may be empty: then all jobs are in queue default.
	Queues []Queue
	// Jobs are in order of submission.
	Jobs []Job
	// Once: a job that cannot start at once is gone for ever.
	Once bool
	// Topology is how close gangs want their pods.
	Topology Topology
	// Usual are the jobs by which fragmentation is measured; nil: Jobs.
	Usual []Job
}

// Topology is how close gangs want their pods to each other in the network; the zero value: they do not care.
type Topology struct {
	// Mode is "soft", where close is better, or "hard", where all pods have to be below one switch.
	Mode string `json:"mode"`
	// Tier is how high that switch may be; 1 is the one next to the hosts.
	Tier int `json:"tier"`
}

// The modes of a topology.
const (
	Soft = "soft"
	Hard = "hard"
)

// Node is a machine.
type Node struct {
	Name string
	// MilliCPU is in thousandths of a core, MemoryMiB in MiB.
	MilliCPU, MemoryMiB int64
	GPUs                int
	// Model is that of the GPUs; empty: unknown, or none.
	Model string
	// Network are the switches above the node, the outermost first; empty: not known.
	Network []string
}

// Queue is a queue and what it is due.
type Queue struct {
	Name string
	// Nodes is how many nodes the queue is due. Where 0, it has a weight of 1 and deserves nothing.
	Nodes int
}

// Job is a gang of equal pods.
type Job struct {
	// ID is the number of the job in its trace.
	ID int
	// Submit is when it comes, from the beginning of the trace; Duration how long it runs once it is whole, 0: for ever.
	Submit, Duration time.Duration
	// Queue is empty for queue default.
	Queue string
	// Workers is how many pods the job has, 1 or more; all of them are its minimum.
	Workers int
	// GPUs is how many each worker asks for, MilliGPU how much of each, in thousandths, 1 to 1000.
	GPUs, MilliGPU int
	// MilliCPU and MemoryMiB are for each worker; negative: not known.
	MilliCPU, MemoryMiB int64
	// Models are those of GPUs that are accepted; empty: all.
	Models []string
}

// AllGPUs is how many GPUs a job asks for, parts of GPUs as such.
func (j Job) AllGPUs() float64 { return float64(j.milli()) / wholeGPU }

// milli is how many GPUs a job asks for, in thousandths.
func (j Job) milli() int { return j.Workers * j.GPUs * j.MilliGPU }

// GPUs is how many GPUs the nodes have.
func (t *Trace) GPUs() int {
	sum := 0
	for _, n := range t.Nodes {
		sum += n.GPUs
	}
	return sum
}

// Shares reports whether a job asks for a part of a GPU.
func (t *Trace) Shares() bool {
	return slices.ContainsFunc(t.Jobs, func(j Job) bool { return j.GPUs > 0 && j.MilliGPU < wholeGPU })
}

// wholeGPU is a GPU in thousandths.
const wholeGPU = 1000

// Last is when the last job is submitted.
func (t *Trace) Last() time.Duration {
	if len(t.Jobs) == 0 {
		return 0
	}
	return t.Jobs[len(t.Jobs)-1].Submit
}

// Load is the GPU time that the jobs ask for, as a part of that of the nodes until the last submission; 0 without either.
func (t *Trace) Load() float64 {
	sum := 0.0
	for _, j := range t.Jobs {
		sum += j.AllGPUs() * j.Duration.Seconds()
	}
	room := float64(t.GPUs()) * t.Last().Seconds()
	if room == 0 {
		return 0
	}
	return sum / room
}

// Window leaves the jobs that are submitted from a time on and before another, 0: no end, and has the trace begin there.
func (t *Trace) Window(from, to time.Duration) {
	t.Jobs = slices.DeleteFunc(t.Jobs, func(j Job) bool { return j.Submit < from || to > 0 && j.Submit >= to })
	for i := range t.Jobs {
		t.Jobs[i].Submit -= from
	}
}

// Compress has jobs come so many times as fast, and run as long as they did.
func (t *Trace) Compress(factor float64) {
	for i := range t.Jobs {
		t.Jobs[i].Submit = time.Duration(math.Round(float64(t.Jobs[i].Submit) / factor))
	}
}

// Gangs says how the GPUs of a job are divided among pods.
type Gangs string

const (
	// AsListed leaves the pods that the trace has.
	AsListed Gangs = "listed"
	// Packed makes as few pods as nodes of PackedGPUs can hold. A job that cannot be divided evenly stays as it is.
	Packed Gangs = "packed"
	// PodPerGPU makes a pod for each GPU.
	PodPerGPU Gangs = "pod-per-gpu"
)

// Ends is what a scheduler is told of when pods end.
type Ends string

// What it may be told.
const (
	// Enforced: a pod has its true duration as activeDeadlineSeconds.
	Enforced Ends = "Enforced"
	// Declared: it has it as annotation caldera.dev/expected-runtime.
	Declared Ends = "Declared"
)

// Valid reports whether it is one of these, or empty.
func (e Ends) Valid() bool { return e == "" || e == Enforced || e == Declared }

// PackedGPUs is how many GPUs a pod has at most after Packed.
const PackedGPUs = 8

// Divide divides all jobs of more than one GPU anew.
func (t *Trace) Divide(g Gangs) error {
	switch g {
	case AsListed:
	case Packed, PodPerGPU:
		for i := range t.Jobs {
			divide(&t.Jobs[i], g)
		}
	default:
		return fmt.Errorf("gangs is %q: use %s, %s or %s", g, AsListed, Packed, PodPerGPU)
	}
	return nil
}

func divide(j *Job, g Gangs) {
	all := j.Workers * j.GPUs
	if all <= 1 || j.MilliGPU < wholeGPU {
		return
	}
	each := 1
	if g == Packed {
		each = min(all, PackedGPUs)
		for all%each != 0 {
			each--
		}
	}
	workers := all / each
	if j.MilliCPU > 0 {
		j.MilliCPU = j.MilliCPU * int64(j.Workers) / int64(workers)
	}
	if j.MemoryMiB > 0 {
		j.MemoryMiB = j.MemoryMiB * int64(j.Workers) / int64(workers)
	}
	j.Workers, j.GPUs = workers, each
}

// sort puts jobs in order of submission; of those submitted at once the lower number is first.
func sortJobs(jobs []Job) {
	slices.SortStableFunc(jobs, func(a, b Job) int { return cmp.Or(cmp.Compare(a.Submit, b.Submit), cmp.Compare(a.ID, b.ID)) })
}
