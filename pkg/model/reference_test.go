// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// reference is the model as one would write it who has all the time in the world: it remembers objects, and every answer is
// counted anew from them.
type reference struct {
	pods map[types.UID]*corev1.Pod
	// reserved maps each pod with a reservation that is not confirmed to its node.
	reserved map[types.UID]string
	groups   map[model.JobKey]*model.Group
	// gathered are the pods that belong to the gang of their owner.
	gathered map[types.UID]bool
	// ending are the tasks that finished while they were known to live, and whether they were deleted since.
	ending  map[types.UID]bool
	nodes   map[string]*corev1.Node
	queues  map[string]*model.Queue
	classes map[string]int32
	// namespaces maps a namespace to the queue that it names.
	namespaces map[string]string
	// standard is the PriorityClass of those who name none, if there is one.
	standard string
}

func newReference() *reference {
	return &reference{
		pods: map[types.UID]*corev1.Pod{}, reserved: map[types.UID]string{}, groups: map[model.JobKey]*model.Group{},
		gathered: map[types.UID]bool{}, ending: map[types.UID]bool{},
		nodes: map[string]*corev1.Node{}, queues: map[string]*model.Queue{}, classes: map[string]int32{}, namespaces: map[string]string{},
	}
}

func finished(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

func (w *reference) upsertPod(p *corev1.Pod) {
	before := w.pods[p.UID]
	if before != nil && p.Spec.SchedulerName == batch && finished(before) && !finished(p) {
		if !w.ending[p.UID] {
			w.ending[p.UID] = false
		}
		return // Late news.
	}
	if before != nil && p.Spec.SchedulerName == batch && before.Spec.SchedulerName == batch && finished(p) && !finished(before) {
		w.ending[p.UID] = false
	}
	w.pods[p.UID] = p
	w.gathered[p.UID] = model.JobByOwner(p) == owners && p.Spec.SchedulerName == batch && w.gang()
	if model.NewTask(p).Status != model.Pending {
		delete(w.reserved, p.UID)
	}
}

// gang reports whether the gang of the owner is known: the owner makes one, or pods of it are left.
func (w *reference) gang() bool {
	return w.groups[owners] != nil || slices.Contains(slices.Collect(maps.Values(w.gathered)), true)
}

// gather has the pods of the owner be its gang, or jobs of one.
func (w *reference) gather(gang bool) {
	for uid, p := range w.pods {
		w.gathered[uid] = gang && model.JobByOwner(p) == owners && p.Spec.SchedulerName == batch
	}
}

func (w *reference) leavePod(uid types.UID) {
	if p := w.pods[uid]; p == nil || p.Spec.SchedulerName != batch || !finished(p) || w.ending[uid] {
		w.deletePod(uid)
	}
	delete(w.ending, uid)
}

func (w *reference) deleteFinished(uid types.UID) {
	p := w.pods[uid]
	_, ends := w.ending[uid]
	switch {
	case p != nil && !finished(p):
	case ends:
		w.ending[uid] = true
	default:
		w.deletePod(uid)
	}
}

func (w *reference) deletePod(uid types.UID) {
	delete(w.pods, uid)
	delete(w.gathered, uid)
	delete(w.ending, uid)
	delete(w.reserved, uid)
}

func (w *reference) assume(uid types.UID, node string) {
	if t := w.tasks()[uid]; t != nil && t.Status == model.Pending {
		w.reserved[uid] = node
	}
}

// tasks are the pods of the batch scheduler as they stand.
func (w *reference) tasks() map[types.UID]*model.Task {
	tasks := map[types.UID]*model.Task{}
	for uid, p := range w.pods {
		if p.Spec.SchedulerName != batch {
			continue
		}
		t := model.NewTask(p)
		if w.gathered[uid] {
			t.Job = owners
		}
		if node, ok := w.reserved[uid]; ok {
			t.Status, t.Node = model.Allocated, node
		}
		tasks[uid] = t
	}
	return tasks
}

// holdings say which pods take what of which node.
func (w *reference) holdings() map[types.UID]string {
	held := map[types.UID]string{}
	for uid, p := range w.pods {
		node := p.Spec.NodeName
		if reserved, ok := w.reserved[uid]; ok {
			node = reserved
		}
		if node != "" && !finished(p) {
			held[uid] = node
		}
	}
	return held
}

func (w *reference) sums() sums {
	var allocatable, used, largest resource.Vector
	for _, n := range w.nodes {
		v := resource.FromList(n.Status.Allocatable)
		allocatable.Add(v)
		largest.Max(v)
	}
	for uid, node := range w.holdings() {
		if w.nodes[node] != nil {
			used.Add(resource.OfPod(w.pods[uid]))
		}
	}
	return sums{Nodes: len(w.nodes), Allocatable: present(allocatable), Used: present(used), Largest: present(largest)}
}

// usable is what tasks can use of the nodes, or hold, and what is idle on those that some may go to.
func (w *reference) usable() (all, idle resource.Vector) {
	tasks := w.tasks()
	open := func(n *corev1.Node) bool {
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
				return false
			}
		}
		if n.Spec.Unschedulable || len(n.Spec.Taints) > 0 && n.Spec.Taints[0].Key == "down" {
			return false
		}
		hard := slices.DeleteFunc(slices.Clone(n.Spec.Taints), func(t corev1.Taint) bool { return t.Effect == corev1.TaintEffectPreferNoSchedule })
		tolerant := func(t *model.Task) bool {
			return !finished(t.Pod) && !slices.ContainsFunc(hard, func(taint corev1.Taint) bool {
				return !slices.ContainsFunc(t.Pod.Spec.Tolerations, func(o corev1.Toleration) bool { return o.Key == taint.Key })
			})
		}
		return len(hard) == 0 || slices.ContainsFunc(slices.Collect(maps.Values(tasks)), tolerant)
	}
	for name, n := range w.nodes {
		var foreign, own resource.Vector
		for uid, node := range w.holdings() {
			switch {
			case node != name:
			case tasks[uid] == nil:
				foreign.Add(resource.OfPod(w.pods[uid]))
			default:
				own.Add(resource.OfPod(w.pods[uid]))
			}
		}
		if open(n) {
			both := foreign.Clone()
			both.Add(own)
			idle.Add(resource.FromList(n.Status.Allocatable).Beyond(both))
			all.Add(resource.FromList(n.Status.Allocatable).Beyond(foreign))
		} else {
			all.Add(own)
		}
	}
	return all, idle
}

// kindOfTask tells waiting tasks apart as a job does.
type kindOfTask struct {
	class model.Class
	role  string
}

// jobView is everything a job says, in values that compare.
type jobView struct {
	Group    *model.Group
	Queue    string
	Priority int32
	Created  time.Time
	UID      types.UID
	Counts   model.Counts
	Roles    map[string]model.Counts
	Pending  map[kindOfTask]string
	// Tasks are sorted; empty for a job without its tasks.
	Tasks []string
}

func viewOf(j *model.Job) jobView {
	v := jobView{
		Group: j.Group, Queue: j.Queue, Priority: j.Priority, Created: j.Created, UID: j.UID, Counts: j.Counts,
		Roles: map[string]model.Counts{}, Pending: map[kindOfTask]string{},
	}
	for _, role := range j.Roles {
		v.Roles[role.Role] = role.Counts
	}
	for _, demand := range j.Pending {
		v.Pending[kindOfTask{demand.Class, demand.Role}] = fmt.Sprintf("%d times %s", demand.Count, demand.Request)
	}
	for _, t := range j.Tasks {
		v.Tasks = append(v.Tasks, describe(t))
	}
	slices.Sort(v.Tasks)
	return v
}

func describe(t *model.Task) string {
	return fmt.Sprintf("%s of %s, role %q: %s on %q, asks %s, pod %p", t.UID, t.Job, t.Role, t.Status, t.Node, t.Request, t.Pod)
}

// jobs counts every job anew.
func (w *reference) jobs() map[model.JobKey]jobView {
	tasks := map[model.JobKey][]*model.Task{}
	for _, t := range w.tasks() {
		tasks[t.Job] = append(tasks[t.Job], t)
	}
	views := map[model.JobKey]jobView{}
	for key := range w.groups {
		views[key] = w.job(key, tasks[key])
	}
	for key, list := range tasks {
		views[key] = w.job(key, list)
	}
	return views
}

func (w *reference) job(key model.JobKey, tasks []*model.Task) jobView {
	slices.SortFunc(tasks, func(a, b *model.Task) int {
		if c := a.Created.Compare(b.Created); c != 0 {
			return c
		}
		if a.UID < b.UID {
			return -1
		}
		return 1
	})
	v := jobView{Group: w.groups[key], Roles: map[string]model.Counts{}, Pending: map[kindOfTask]string{}}
	if v.Group != nil {
		v.Queue, v.Created, v.UID = v.Group.Queue, v.Group.Created, v.Group.UID
		value, known := w.classes[v.Group.PriorityClass]
		if !known {
			value = w.classes[w.standard]
		}
		v.Priority = value
		if v.Group.ByOwner && len(tasks) > 0 {
			v.Priority = ptr.Deref(tasks[0].Pod.Spec.Priority, 0)
		}
	} else {
		oldest := tasks[0].Pod
		v.Created, v.UID = oldest.CreationTimestamp.Time, oldest.UID
		if oldest.Spec.Priority != nil {
			v.Priority = *oldest.Spec.Priority
		}
	}
	if v.Queue == "" && len(tasks) > 0 {
		v.Queue = tasks[0].Pod.Annotations[model.QueueAnnotation]
	}
	v.Queue = cmp.Or(v.Queue, w.namespaces[key.Namespace], model.DefaultQueue)
	waiting := map[kindOfTask]int{}
	for _, t := range tasks {
		v.Tasks = append(v.Tasks, describe(t))
		role := v.Roles[t.Role]
		for _, c := range []*model.Counts{&v.Counts, &role} {
			c.ByStatus[t.Status]++
			pending := t.Status == model.Pending
			c.PendingGated += number(pending && t.Gated)
			c.PendingBestEffort += number(pending && !t.Gated && t.BestEffort)
			c.ReleasingPlaced += number(t.Status == model.Releasing && t.Node != "")
			c.Killed += number(t.Status == model.Failed && t.Pod.DeletionTimestamp != nil)
		}
		v.Roles[t.Role] = role
		if t.Status == model.Pending && !t.Gated {
			kind := kindOfTask{t.Class, t.Role}
			waiting[kind]++
			v.Pending[kind] = fmt.Sprintf("%d times %s", waiting[kind], t.Request)
		}
	}
	slices.Sort(v.Tasks)
	return v
}

func number(yes bool) int {
	if yes {
		return 1
	}
	return 0
}
