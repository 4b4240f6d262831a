// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"fmt"
	"strings"
	"time"
)

// most is the largest number of pods, or of GPUs of a pod, that is taken for meant.
const most = 100_000

// ReadJobs reads a list of jobs: job, submit_s, gpus_per_worker, workers and duration_s, and queue and cpus_per_worker if they are there.
func ReadJobs(file string) ([]Job, error) {
	var jobs []Job
	err := each(file, []string{"job", "submit_s", "workers", "gpus_per_worker", "duration_s"}, func(t *table) {
		j := Job{
			ID: int(t.number("job", 0)), Queue: t.text("queue"),
			Submit: t.seconds("submit_s", 0), Duration: t.seconds("duration_s", 1),
			Workers: int(t.number("workers", 1)), GPUs: int(t.number("gpus_per_worker", 0)), MilliGPU: 1000,
			MilliCPU: -1, MemoryMiB: -1,
		}
		if cores := t.optional("cpus_per_worker"); cores >= 0 {
			j.MilliCPU = 1000 * cores
		}
		t.bound("workers", j.Workers)
		t.bound("gpus_per_worker", j.GPUs)
		jobs = append(jobs, j)
	})
	sortJobs(jobs)
	return jobs, err
}

// bound refuses a number that cannot be meant.
func (t *table) bound(column string, value int) {
	if value > most {
		t.refuse(column, fmt.Sprintf("write %d at most", most))
	}
}

// seconds is a time in whole seconds of at least so many.
func (t *table) seconds(column string, least int64) time.Duration {
	return time.Duration(t.number(column, least)) * time.Second
}

// ReadNodes reads a list of nodes as openb has it: sn, cpu_milli, memory_mib, gpu, model.
func ReadNodes(file string) ([]Node, error) {
	var nodes []Node
	err := each(file, []string{"sn", "cpu_milli", "memory_mib", "gpu", "model"}, func(t *table) {
		nodes = append(nodes, Node{
			Name: t.text("sn"), MilliCPU: t.number("cpu_milli", 0), MemoryMiB: t.number("memory_mib", 0),
			GPUs: int(t.number("gpu", 0)), Model: t.text("model"),
		})
	})
	return nodes, err
}

// tiers is how many tiers of switches hosts have.
const tiers = 3

// ReadHosts reads hosts and the switches above them, as lingjun has them: host, dsw, psw, asw. What else a host has is that of the machine.
func ReadHosts(file string, machine Node) ([]Node, error) {
	var nodes []Node
	err := each(file, []string{"host", "dsw", "psw", "asw"}, func(t *table) {
		n := machine
		n.Name, n.Network = t.text("host"), []string{t.text("dsw"), t.text("psw"), t.text("asw")}
		nodes = append(nodes, n)
	})
	return nodes, err
}

// ReadQueues reads queues and how many nodes each of them is due: queue, nodes.
func ReadQueues(file string) ([]Queue, error) {
	var queues []Queue
	err := each(file, []string{"queue", "nodes"}, func(t *table) {
		queues = append(queues, Queue{Name: t.text("queue"), Nodes: int(t.number("nodes", 0))})
	})
	return queues, err
}

// ReadPods reads a list of pods as openb has it: name, cpu_milli, memory_mib, num_gpu, gpu_milli and, if they are there, gpu_spec, creation_time
// and deletion_time. Each is a job of one worker.
func ReadPods(file string) ([]Job, error) {
	var jobs []Job
	err := each(file, []string{"name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli"}, func(t *table) {
		j := Job{
			ID: len(jobs), Workers: 1, MilliCPU: t.number("cpu_milli", 0), MemoryMiB: t.number("memory_mib", 0),
			GPUs: int(t.number("num_gpu", 0)), MilliGPU: int(t.number("gpu_milli", 0)),
		}
		if j.MilliGPU > 1000 || j.GPUs > 1 && j.MilliGPU != 1000 || j.GPUs == 1 && j.MilliGPU == 0 {
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
