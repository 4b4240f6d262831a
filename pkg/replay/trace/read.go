// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"strings"
	"time"
)

// The largest numbers that are taken for meant.
const (
	// mostPods is of pods of a job, GPUs of a pod or a node, and nodes.
	mostPods = 100_000
	// mostAmount is of millicores and MiB.
	mostAmount = 1 << 40
	// mostJobs is of numbers of jobs.
	mostJobs = 1 << 40
	// mostSeconds is a hundred years.
	mostSeconds = 100 * 365 * 24 * 3600
)

// ReadJobs reads a list of jobs: job, submit_s, gpus_per_worker, workers and duration_s, and queue and cpus_per_worker if they are there.
func ReadJobs(file string) ([]Job, error) {
	var jobs []Job
	err := each(file, []string{"job", "submit_s", "workers", "gpus_per_worker", "duration_s"}, func(t *table) {
		j := Job{
			ID: int(t.number("job", 0, mostJobs)), Queue: t.text("queue"),
			Submit: t.seconds("submit_s", 0), Duration: t.seconds("duration_s", 1),
			Workers: int(t.number("workers", 1, mostPods)), GPUs: int(t.number("gpus_per_worker", 0, mostPods)), MilliGPU: wholeGPU,
			MilliCPU: -1, MemoryMiB: -1,
		}
		if t.text("cpus_per_worker") != "" {
			j.MilliCPU = 1000 * t.number("cpus_per_worker", 0, mostPods)
		}
		jobs = append(jobs, j)
	})
	sortJobs(jobs)
	return jobs, err
}

// seconds is a time in whole seconds of at least so many.
func (t *table) seconds(column string, least int64) time.Duration {
	return time.Duration(t.number(column, least, mostSeconds)) * time.Second
}

// ReadNodes reads a list of nodes as openb has it: sn, cpu_milli, memory_mib, gpu, model.
func ReadNodes(file string) ([]Node, error) {
	var nodes []Node
	names := map[string]bool{}
	err := each(file, []string{"sn", "cpu_milli", "memory_mib", "gpu", "model"}, func(t *table) {
		t.once("sn", names)
		nodes = append(nodes, Node{
			Name: t.text("sn"), MilliCPU: t.number("cpu_milli", 0, mostAmount), MemoryMiB: t.number("memory_mib", 0, mostAmount),
			GPUs: int(t.number("gpu", 0, mostPods)), Model: t.text("model"),
		})
	})
	return nodes, err
}

// tiers is how many tiers of switches hosts have.
const tiers = 3

// ReadHosts reads hosts and the switches above them, as lingjun has them: host, dsw, psw, asw. What else a host has is that of the machine.
func ReadHosts(file string, machine Node) ([]Node, error) {
	var nodes []Node
	names := map[string]bool{}
	err := each(file, []string{"host", "dsw", "psw", "asw"}, func(t *table) {
		t.once("host", names)
		n := machine
		n.Name, n.Network = t.text("host"), []string{t.text("dsw"), t.text("psw"), t.text("asw")}
		nodes = append(nodes, n)
	})
	return nodes, err
}

// ReadQueues reads queues and how many nodes each of them is due: queue, nodes.
func ReadQueues(file string) ([]Queue, error) {
	var queues []Queue
	names := map[string]bool{}
	err := each(file, []string{"queue", "nodes"}, func(t *table) {
		t.once("queue", names)
		queues = append(queues, Queue{Name: t.text("queue"), Nodes: int(t.number("nodes", 0, mostPods))})
	})
	return queues, err
}

// once refuses a name that is empty, or there already.
func (t *table) once(column string, names map[string]bool) {
	name := t.text(column)
	if name == "" || names[name] {
		t.refuse(column, "write a name that no other line has")
	}
	names[name] = true
}

// ReadPods reads a list of pods as openb has it: name, cpu_milli, memory_mib, num_gpu, gpu_milli and, if they are there, gpu_spec, creation_time
// and deletion_time. Each is a job of one worker.
func ReadPods(file string) ([]Job, error) {
	var jobs []Job
	err := each(file, []string{"name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli"}, func(t *table) {
		j := Job{
			ID: len(jobs), Workers: 1, MilliCPU: t.number("cpu_milli", 0, mostAmount), MemoryMiB: t.number("memory_mib", 0, mostAmount),
			GPUs: int(t.number("num_gpu", 0, mostPods)), MilliGPU: int(t.number("gpu_milli", 0, wholeGPU)),
		}
		if j.GPUs > 1 && j.MilliGPU != wholeGPU || j.GPUs == 1 && j.MilliGPU == 0 {
			t.refuse("gpu_milli", "write 1 to 1000, and 1000 for more than one GPU")
		}
		if models := t.text("gpu_spec"); models != "" {
			j.Models = strings.Split(models, "|")
		}
		if t.text("creation_time") != "" {
			j.Submit = t.seconds("creation_time", 0)
			j.Duration = max(time.Second, t.seconds("deletion_time", 0)-j.Submit)
		}
		jobs = append(jobs, j)
	})
	sortJobs(jobs)
	return jobs, err
}
