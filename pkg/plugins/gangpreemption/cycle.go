// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gangpreemption

import (
	"math"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/policy"
)

// cycle is what one preemption goes by: jobs as they were when it began, however many nodes are looked at, at the same time and pod by pod.
type cycle struct {
	// batch reports whether a pod is of a batch profile.
	batch func(*corev1.Pod) bool
	// rule is nil, and there are no jobs, where no profile is a batch profile.
	rule *policy.Ordinary
	jobs *model.Snapshot

	// mu guards what follows.
	mu sync.Mutex
	// tasks are the tasks of the jobs that were looked at.
	tasks map[model.JobKey]map[types.UID]*model.Task
	// spare are the batch pods of each node that may go, all of a node together.
	spare map[string]map[types.UID]bool
	// victims are those that would have to go from each node.
	victims map[string][]types.UID
}

func newCycle(p Parts) *cycle {
	c := &cycle{
		batch: p.batch, tasks: map[model.JobKey]map[types.UID]*model.Task{}, spare: map[string]map[types.UID]bool{},
		victims: map[string][]types.UID{},
	}
	// Who is broken changes with the jobs, so these come second: a gang that is whole by now is not taken for broken.
	if c.rule = p.Ordinary(); c.rule != nil {
		c.jobs = p.State.Snapshot()
	}
	return c
}

// job returns the job of a batch pod; nil when it is not known.
func (c *cycle) job(pod *corev1.Pod) *model.Job {
	if c.jobs == nil {
		return nil
	}
	return c.jobs.JobOf(pod)
}

// spares returns the batch pods of a node that pods of a priority may have go, all of them together: several pods of a gang are not the same
// surplus. It is worked out once, as the node was when the search began.
func (c *cycle) spares(node fwk.NodeInfo, priority int32) map[types.UID]bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if spare, ok := c.spare[node.Node().Name]; ok {
		return spare
	}
	spare := map[types.UID]bool{}
	for job, tasks := range c.onNode(node, priority) {
		for _, t := range c.rule.Spare(job, tasks) {
			spare[t.UID] = true
		}
	}
	c.spare[node.Node().Name] = spare
	return spare
}

// onNode are the tasks of jobs on a node that upstream's preemption may choose by their priority. Pods that the model has yet to learn of are
// nobody's. The caller holds mu.
func (c *cycle) onNode(node fwk.NodeInfo, priority int32) map[*model.Job][]*model.Task {
	tasks := map[*model.Job][]*model.Task{}
	for _, info := range node.GetPods() {
		pod := info.GetPod()
		if !c.batch(pod) || corev1helpers.PodPriority(pod) >= priority {
			continue
		}
		if job := c.job(pod); job != nil {
			if t := c.tasksOf(job)[pod.UID]; t != nil {
				tasks[job] = append(tasks[job], t)
			}
		}
	}
	return tasks
}

// tasksOf are the tasks of a job by UID. The caller holds mu.
func (c *cycle) tasksOf(job *model.Job) map[types.UID]*model.Task {
	tasks := c.tasks[job.Key]
	if tasks == nil {
		tasks = make(map[types.UID]*model.Task, len(job.Tasks))
		for _, t := range job.Tasks {
			tasks[t.UID] = t
		}
		c.tasks[job.Key] = tasks
	}
	return tasks
}

// broken reports whether a pod is of a gang of which too few are left to be of use.
func (c *cycle) broken(pod *corev1.Pod) bool {
	if !c.batch(pod) {
		return false
	}
	job := c.job(pod)
	return job != nil && c.rule.Broken(job)
}

// brokenVictim reports whether all of a victim is.
func (c *cycle) brokenVictim(v preemption.Victim) bool {
	return !slices.ContainsFunc(v.Pods(), func(info fwk.PodInfo) bool { return !c.broken(info.GetPod()) })
}

// found remembers who would have to go from a node.
func (c *cycle) found(node string, victims []*corev1.Pod) {
	c.mu.Lock()
	defer c.mu.Unlock()
	uids := make([]types.UID, len(victims))
	for i, pod := range victims {
		uids[i] = pod.UID
	}
	c.victims[node] = uids
}

// preferBroken takes the other nodes out where, on some, only broken gangs have to go. Fewer violations of budgets come first.
func (c *cycle) preferBroken(nodes map[string]*extenderv1.Victims) {
	least, only := int64(math.MaxInt64), map[string]bool{}
	for _, v := range nodes {
		least = min(least, v.NumPDBViolations)
	}
	for name, v := range nodes {
		if v.NumPDBViolations == least && !slices.ContainsFunc(v.Pods, func(pod *corev1.Pod) bool { return !c.broken(pod) }) {
			only[name] = true
		}
	}
	for name := range nodes {
		if len(only) > 0 && !only[name] {
			delete(nodes, name)
		}
	}
}
