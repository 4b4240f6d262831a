// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// Resource is an amount of everything: cpu in millicores, memory in bytes, pods in pods, anything else in thousandths.
type Resource struct {
	MilliCPU, Memory float64
	ScalarResources  map[corev1.ResourceName]float64
	MaxTaskNum       int
}

// ResourceOf writes a vector.
func ResourceOf(v resource.Vector) *Resource {
	r := &Resource{}
	for _, a := range v.Counted() {
		switch a.Name {
		case corev1.ResourceCPU:
			r.MilliCPU = float64(a.Value)
			continue
		case corev1.ResourceMemory:
			r.Memory = float64(a.Value)
			continue
		}
		if r.ScalarResources == nil {
			r.ScalarResources = map[corev1.ResourceName]float64{}
		}
		r.ScalarResources[a.Name] = float64(a.Value) * 1000
		if a.Name == corev1.ResourcePods {
			r.ScalarResources[a.Name], r.MaxTaskNum = float64(a.Value), int(a.Value)
		}
	}
	return r
}

// statuses are Volcano's numbers of the statuses of tasks (pkg/scheduler/api/types.go, TaskStatus), which has Pipelined
// and Binding between Allocated and Bound.
var statuses = map[model.Status]int{
	model.Pending: 1 << 0, model.Allocated: 1 << 1, model.Bound: 1 << 4, model.Running: 1 << 5, model.Releasing: 1 << 6,
	model.Succeeded: 1 << 7, model.Failed: 1 << 8, model.Unknown: 1 << 9,
}

// pipelined is the status of a task that waits with a node of its own, until others have left it.
const pipelined = 1 << 2

// Task is Volcano's TaskInfo.
type Task struct {
	UID, Job, Name, Namespace string
	TaskRole                  string
	Resreq, InitResreq        *Resource
	NodeName                  string
	Status                    int
	Priority                  int32
	Preemptable, BestEffort   bool
	SchGated                  bool
	NumaInfo                  *struct{}
	Pod                       *corev1.Pod
}

// TaskOf writes a task.
func TaskOf(t *model.Task) *Task {
	request := ResourceOf(t.Request)
	written := &Task{
		UID: string(t.UID), Job: t.Job.String(), Name: t.Pod.Name, Namespace: t.Pod.Namespace, TaskRole: t.Role,
		Resreq: request, InitResreq: request, NodeName: t.Node, Status: statuses[t.Status], Priority: t.Priority,
		Preemptable: t.Preemptable(), BestEffort: t.BestEffort, SchGated: t.Gated, Pod: t.Pod,
	}
	if t.Nominated != "" {
		written.NodeName, written.Status = t.Nominated, pipelined
	}
	return written
}

// Job is Volcano's JobInfo.
type Job struct {
	UID, Name, Namespace, Queue string
	PgUID                       string
	Priority                    int32
	MinAvailable                int32
	WaitingTime                 *time.Duration
	Tasks                       map[string]*Task
	TaskMinAvailable            map[string]int32
	TaskMinAvailableTotal       int32
	Allocated, TotalRequest     *Resource
	CreationTimestamp           metav1.Time
	PodGroup                    *volcano.PodGroup
	Preemptable                 bool
}

// JobOf writes a job with its tasks.
func JobOf(j *model.Job) *Job {
	written := &Job{
		UID: j.Key.String(), Name: j.Key.Name, Namespace: j.Key.Namespace, Queue: j.Queue, Priority: j.Priority, MinAvailable: int32(j.Min()),
		Tasks: map[string]*Task{}, TaskMinAvailable: map[string]int32{},
		Allocated: ResourceOf(j.Usage.Allocated), TotalRequest: ResourceOf(j.Usage.Requested), CreationTimestamp: metav1.NewTime(j.Created),
	}
	written.Preemptable, _ = j.Preemptable()
	for _, t := range j.Tasks {
		written.Tasks[string(t.UID)] = TaskOf(t)
	}
	if g := j.Group; g != nil {
		written.PgUID, written.PodGroup = string(g.UID), podGroup(j)
		if g.WaitingTime != 0 {
			written.WaitingTime = &g.WaitingTime
		}
		for role, n := range g.MinTaskMember {
			written.TaskMinAvailable[role] = int32(n)
			written.TaskMinAvailableTotal += int32(n)
		}
	}
	return written
}

// podGroup is the PodGroup of a job as Volcano has it, whichever API it comes from.
func podGroup(j *model.Job) *volcano.PodGroup {
	g := j.Group
	if object, ok := g.Object.(*volcano.PodGroup); ok {
		return object
	}
	written := &volcano.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: j.Key.Namespace, Name: j.Key.Name, UID: g.UID, CreationTimestamp: metav1.NewTime(g.Created)},
		Spec:       volcano.PodGroupSpec{MinMember: int32(g.MinMember), Queue: g.Queue, PriorityClassName: g.PriorityClass},
		Status:     volcano.PodGroupStatus{Phase: volcano.PodGroupPhase(g.Phase)},
	}
	if g.MinResources != nil {
		list := g.MinResources.List()
		written.Spec.MinResources = &list
	}
	return written
}

// Queue is Volcano's QueueInfo.
type Queue struct {
	UID, Name string
	Weight    int32
	// Weights and Hierarchy are the annotations of the queue.
	Weights, Hierarchy string
	Queue              runtime.Object
}

// QueueOf writes a queue. Its UID is its name, as in Volcano.
func QueueOf(q *model.Queue) *Queue {
	written := &Queue{UID: q.Name, Name: q.Name, Weight: q.Weight, Queue: q.Object}
	if object, ok := q.Object.(metav1.Object); ok {
		written.Weights = object.GetAnnotations()[volcano.KubeHierarchyWeightAnnotationKey]
		written.Hierarchy = object.GetAnnotations()[volcano.KubeHierarchyAnnotationKey]
	}
	return written
}

// State is Volcano's NodeState; a phase of 1 is ready.
type State struct {
	Phase  int
	Reason string
}

// Node is Volcano's NodeInfo.
type Node struct {
	Name                             string
	Node                             *corev1.Node
	State                            State
	Releasing, Pipelined, Idle, Used *Resource
	Allocatable, Capacity            *Resource
	ResourceUsage                    *struct{}
	Tasks                            map[string]*Task
	Others                           map[string]any
}

// NodeOf writes a node with the tasks on it.
func NodeOf(n *corev1.Node, tasks []*model.Task) *Node {
	allocatable := resource.FromList(n.Status.Allocatable)
	var used, releasing resource.Vector
	written := &Node{
		Name: n.Name, Node: n, State: State{Phase: 1}, Pipelined: &Resource{}, Tasks: map[string]*Task{},
		Allocatable: ResourceOf(allocatable), Capacity: ResourceOf(resource.FromList(n.Status.Capacity)),
	}
	for _, t := range tasks {
		used.Add(t.Request)
		if t.Status == model.Releasing {
			releasing.Add(t.Request)
		}
		written.Tasks[t.Pod.Namespace+"/"+t.Pod.Name] = TaskOf(t)
	}
	idle := allocatable.Clone()
	idle.Sub(used)
	written.Used, written.Releasing, written.Idle = ResourceOf(used), ResourceOf(releasing), ResourceOf(idle)
	return written
}
