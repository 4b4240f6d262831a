// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package golden

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// Begin is when everything in a world was created unless it says otherwise.
var Begin = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Namespace is that of all jobs.
const Namespace = "default"

const (
	scheduler = "volcano"
	onlyNode  = "node-0"
)

// World is a cluster of one node, with the queues, jobs and quotas of a case, in the scheduler's own model.
type World struct {
	State *model.State
	// Queues and Jobs are in the order of their lines.
	Queues []string
	Jobs   []model.JobKey

	pods int
}

// World builds what the lines describe:
//
//	cluster total=cpu=10,memory=10Gi
//	queue NAME [parent= weight= priority= capability= guarantee= deserved= state= created=10s path=root/a weights=1/2]
//	job NAME [queue= min= minResources= phase= priority= created= sla= running= bound= waiting= gated= releasing= succeeded=]
//	quota NAME hard= used=
//
// Pods are written as "3xcpu=1,memory=1Gi", several kinds with "+" between them.
func (c *Case) World() *World {
	w := &World{State: model.NewState()}
	w.State.AddScheduler(scheduler)
	for _, l := range c.Lines {
		switch l.Word(0) {
		case "cluster":
			w.State.UpsertNode(&corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Name: onlyNode}, Status: corev1.NodeStatus{Allocatable: l.List("total")},
			})
		case "queue":
			w.State.UpsertQueue(l.queue())
			w.Queues = append(w.Queues, l.Word(1))
		case "job":
			w.Jobs = append(w.Jobs, w.addJob(l))
		case "quota":
			w.State.UpsertQuota(&model.Quota{
				Namespace: Namespace, Name: l.Word(1), Hard: l.Amounts("hard"), Used: l.Amounts("used"),
			})
		default:
			c.Fatalf("a world has no %q", l.Word(0))
		}
	}
	return w
}

// queue reads a queue. Capability, guarantee and deserved are read as the informers read them.
func (l *Line) queue() *model.Queue {
	q := &model.Queue{
		Name: l.Word(1), UID: types.UID(l.Word(1)), Parent: l.Text("parent", ""), State: model.QueueState(l.Text("state", "")),
		Created: Begin.Add(l.Duration("created", 0)), Weight: int32(l.Int("weight", 1)), Priority: int32(l.Int("priority", 0)),
		Reclaimable: true, Hierarchy: l.Split("path", "/"),
		Capability: resource.Schedulable(l.List("capability")), Guarantee: resource.Schedulable(l.List("guarantee")),
		Deserved: resource.Schedulable(l.List("deserved")),
	}
	if least := l.Duration("min-runtime", -1); least >= 0 {
		q.MinRuntime = model.Say(least)
	}
	for _, text := range l.Split("weights", "/") {
		weight, err := strconv.ParseFloat(text, 64)
		if err != nil {
			l.c.Fatalf("weights: %v", err)
		}
		q.HierarchyWeights = append(q.HierarchyWeights, weight)
	}
	return q
}

// KeyOf is the key of the job with a name.
func KeyOf(name string) model.JobKey {
	return model.JobKey{Source: model.FromVolcano, Namespace: Namespace, Name: name}
}

// addJob reads a PodGroup and its pods.
func (w *World) addJob(l *Line) model.JobKey {
	key := KeyOf(l.Word(1))
	created := Begin.Add(l.Duration("created", 0))
	group := &model.Group{
		UID: types.UID(l.Word(1)), Queue: l.Text("queue", model.DefaultQueue), MinMember: l.Int("min", 1), Created: created,
		Phase: model.Phase(l.Text("phase", string(model.PhasePending))), WaitingTime: l.Duration("sla", 0),
	}
	if l.Has("minResources") {
		group.MinQuota, group.MinResources = l.Amounts("minResources"), resource.Schedulable(l.List("minResources"))
	}
	if l.Has("priority") {
		group.PriorityClass = l.Word(1)
		w.State.UpsertPriorityClass(group.PriorityClass, int32(l.Int("priority", 0)), false)
	}
	w.State.UpsertGroup(key, group)
	for _, kind := range []string{"running", "bound", "waiting", "gated", "releasing", "succeeded"} {
		for _, text := range l.Split(kind, "+") {
			count, asks, _ := strings.Cut(text, "x")
			n, err := strconv.Atoi(count)
			if err != nil {
				l.c.Fatalf("%s: want such as 3xcpu=1: %v", kind, err)
			}
			list := (&Line{attrs: map[string]string{kind: asks}, read: map[string]bool{}, c: l.c}).List(kind)
			for range n {
				w.AddPod(key, kind, list, created)
			}
		}
	}
	return key
}

// AddPod adds a pod of a kind ("running", "waiting", ...) to a job.
func (w *World) AddPod(key model.JobKey, kind string, asks corev1.ResourceList, created time.Time) {
	w.pods++
	name := fmt.Sprintf("%s-%d", key.Name, w.pods)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: key.Namespace, UID: types.UID(name), CreationTimestamp: metav1.NewTime(created),
			Annotations: map[string]string{model.GroupNameAnnotation: key.Name},
		},
		Spec: corev1.PodSpec{SchedulerName: scheduler, Containers: []corev1.Container{{
			Name: "main", Resources: corev1.ResourceRequirements{Requests: asks},
		}}},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
	if kind != "waiting" && kind != "gated" {
		pod.Spec.NodeName = onlyNode
	}
	switch kind {
	case "running":
		pod.Status.Phase = corev1.PodRunning
	case "succeeded":
		pod.Status.Phase = corev1.PodSucceeded
	case "releasing":
		pod.DeletionTimestamp = &metav1.Time{Time: created}
	case "gated":
		pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "hold"}}
	}
	w.State.UpsertPod(pod)
}

// Run puts a waiting pod of a job on the node, and reports whether there was one.
func (w *World) Run(key model.JobKey) bool {
	for _, t := range w.State.Job(key).Tasks {
		if t.Status == model.Pending {
			w.State.Assume(t.UID, onlyNode)
			return true
		}
	}
	return false
}
