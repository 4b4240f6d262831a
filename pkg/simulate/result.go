// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// Result is what a simulation came to. Its lists are sorted by name, so that equal scenarios give equal results.
type Result struct {
	// Rounds is how many rounds were run. Settled: the last of them changed nothing.
	Rounds  int  `json:"rounds"`
	Settled bool `json:"settled"`

	Pods   []Pod   `json:"pods"`
	Jobs   []Job   `json:"jobs"`
	Queues []Queue `json:"queues"`
	// Nodes are the names of all nodes.
	Nodes []string `json:"nodes"`
	// Initial are the figures before any decision, Final those at the end.
	Initial Figures `json:"initial"`
	Final   Figures `json:"final"`
}

// Pod is a pod at the end.
type Pod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Job is the name of the pod's PodGroup, in its namespace; empty for a pod without one.
	Job string `json:"job,omitempty"`
	// Node is empty while the pod waits.
	Node  string   `json:"node,omitempty"`
	State PodState `json:"state"`
	// Round is the one in which the pod was bound; 0: it waits, or was on its node from the start.
	Round int `json:"round,omitempty"`
	// Message is why the pod waits, if the scheduler said so on the pod.
	Message string `json:"message,omitempty"`
}

// Placed reports whether the pod is on a node and stays there.
func (p Pod) Placed() bool { return p.State == PodBound || p.State == PodRunning }

// PodState is what becomes of a pod.
type PodState string

// The states of pods. A pod that is bound runs from the next round on, one that terminates is gone by then.
const (
	PodPending     PodState = "Pending"
	PodBound       PodState = "Bound"
	PodRunning     PodState = "Running"
	PodTerminating PodState = "Terminating"
	PodFinished    PodState = "Finished"
)

// Job is a PodGroup and its pods, or a pod of a batch profile without a PodGroup.
type Job struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// PodGroup is false for a pod without one.
	PodGroup  bool   `json:"podGroup"`
	Queue     string `json:"queue"`
	MinMember int    `json:"minMember"`
	// Phase and Conditions are those of Volcano's PodGroup.
	Phase      volcano.PodGroupPhase `json:"phase,omitempty"`
	Conditions []Condition           `json:"conditions,omitempty"`
	// Pods counts the job's pods, Placed those on nodes, Evicted those that were evicted at least once.
	Pods    int `json:"pods"`
	Placed  int `json:"placed"`
	Evicted int `json:"evicted"`
	// Started: at least one pod, and at least minMember, are on nodes.
	Started bool `json:"started"`
	// Waits is why the job waits; nil when it does not.
	Waits *Reason `json:"waits,omitempty"`
}

// String returns "namespace/name".
func (j Job) String() string { return j.Namespace + "/" + j.Name }

// Condition is a condition of a PodGroup, without its times.
type Condition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// Reason is why a job waits.
type Reason struct {
	Kind    model.ReasonKind `json:"kind"`
	Message string           `json:"message"`
}

// Queue is a queue at the end.
type Queue struct {
	Name  string             `json:"name"`
	State volcano.QueueState `json:"state"`
	// Parent is empty for queues at the top.
	Parent string `json:"parent,omitempty"`
}

// collect fills in the result from what there is at the end.
func (c *cluster) collect(r *Result) error {
	pods := c.pods()
	// Lists that are empty are lists in JSON, too.
	r.Pods, r.Queues = []Pod{}, []Queue{}
	for _, p := range pods {
		pod := c.podOf(p)
		pod.Round = c.boundIn[p.UID]
		r.Pods = append(r.Pods, pod)
	}
	r.Jobs = c.jobs(pods)
	for q := range c.box.Core.State.Snapshot().Queues {
		queue, ok := q.Object.(*volcano.Queue)
		if !ok {
			return fmt.Errorf("reading queue %s: it comes from a %T", q.Name, q.Object)
		}
		r.Queues = append(r.Queues, Queue{Name: q.Name, State: queue.Status.State, Parent: q.Parent})
	}
	slices.SortFunc(r.Queues, func(a, b Queue) int { return cmp.Compare(a.Name, b.Name) })
	r.Nodes = c.nodes()
	r.Final = figuresOf(c.box.Core)
	return nil
}

func (c *cluster) podOf(p *corev1.Pod) Pod {
	pod := Pod{Namespace: p.Namespace, Name: p.Name, Node: p.Spec.NodeName, State: PodRunning}
	if key := c.box.Core.State.JobOf(p); key.Source != model.FromPod {
		pod.Job = key.Name
	}
	switch {
	case finished(p):
		pod.State = PodFinished
	case p.DeletionTimestamp != nil:
		pod.State = PodTerminating
	case p.Spec.NodeName == "":
		pod.State = PodPending
		for _, condition := range p.Status.Conditions {
			if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
				pod.Message = condition.Message
			}
		}
	case p.Status.Phase == corev1.PodPending:
		pod.State = PodBound
	}
	return pod
}

// tally counts the pods of jobs.
type tally struct {
	pods, placed map[model.JobKey]int
	// evicted are the names of the pods that were evicted at least once.
	evicted map[model.JobKey]map[types.NamespacedName]bool
}

func (c *cluster) tallyOf(pods, disrupted []*corev1.Pod) tally {
	t := tally{pods: map[model.JobKey]int{}, placed: map[model.JobKey]int{}, evicted: map[model.JobKey]map[types.NamespacedName]bool{}}
	for _, p := range pods {
		key := c.box.Core.State.JobOf(p)
		t.pods[key]++
		if c.podOf(p).Placed() {
			t.placed[key]++
		}
	}
	for _, p := range disrupted {
		key := c.box.Core.State.JobOf(p)
		if t.evicted[key] == nil {
			t.evicted[key] = map[types.NamespacedName]bool{}
		}
		t.evicted[key][types.NamespacedName{Namespace: p.Namespace, Name: p.Name}] = true
	}
	return t
}

// jobs returns the jobs of the model with what became of their pods.
func (c *cluster) jobs(pods []*corev1.Pod) []Job {
	t := c.tallyOf(pods, c.box.API.Disruptions(0))
	reasons := c.box.Core.Dispatcher.View().Reasons()
	byKey := map[model.JobKey]Job{}
	for j := range c.box.Core.State.Snapshot().Jobs {
		job := Job{
			Namespace: j.Key.Namespace, Name: j.Key.Name, PodGroup: j.Key.Source != model.FromPod, Queue: j.Queue, MinMember: j.Min(),
			Pods: t.pods[j.Key], Placed: t.placed[j.Key], Evicted: len(t.evicted[j.Key]),
		}
		job.Started = job.Placed > 0 && job.Placed >= job.MinMember
		if reason, waits := reasons[j.Key]; waits {
			job.Waits = &Reason{Kind: reason.Kind, Message: reason.Text()}
		}
		if j.Group != nil {
			if group, ok := j.Group.Object.(*volcano.PodGroup); ok {
				job.describe(group)
			}
		}
		byKey[j.Key] = job
	}
	keys := slices.SortedFunc(maps.Keys(byKey), model.JobKey.Compare)
	jobs := make([]Job, len(keys))
	for i, key := range keys {
		jobs[i] = byKey[key]
	}
	return jobs
}

// describe adds what a PodGroup's status says. A PodGroup without pods waits for no turn; why it may have none is only
// there.
func (j *Job) describe(group *volcano.PodGroup) {
	j.Phase = group.Status.Phase
	for _, c := range group.Status.Conditions {
		j.Conditions = append(j.Conditions, Condition{Type: string(c.Type), Status: string(c.Status), Reason: c.Reason, Message: c.Message})
		if j.Waits == nil && c.Type == volcano.PodGroupUnschedulableType && c.Status == corev1.ConditionTrue {
			j.Waits = &Reason{Kind: model.ReasonKind(c.Reason), Message: c.Message}
		}
	}
	slices.SortFunc(j.Conditions, func(a, b Condition) int { return cmp.Compare(a.Type, b.Type) })
}
