// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/internal/testing/builders"
	"github.com/caldera-scheduler/caldera/pkg/model"
)

// batch is the scheduler name whose pods are tasks in these tests.
const batch = "volcano"

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// newPod returns a pod of namespace "ns" that waits for a node and asks for one core, changed by the options. Its UID
// is its name.
func newPod(name string, options ...func(*corev1.Pod)) *corev1.Pod {
	p := builders.Pod("ns", name).SchedulerName(batch).CreationTimestamp(metav1.NewTime(epoch)).Phase(corev1.PodPending).
		Req(builders.CPU("1")).Obj()
	for _, change := range options {
		change(p)
	}
	return p
}

// amounts builds a list from names and quantities in turn.
func amounts(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

func annotated(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Annotations[key] = value }
}

func labelled(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels[key] = value }
}

// in makes the pod a member of a Volcano PodGroup.
func in(group string) func(*corev1.Pod) { return annotated(model.GroupNameAnnotation, group) }

// owned makes the pod one of the ReplicaSet "set".
func owned(p *corev1.Pod) {
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "set", UID: "set-uid", Controller: new(true)}}
}

func role(name string) func(*corev1.Pod) { return annotated(model.RoleKey, name) }

func asking(pairs ...string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests = amounts(pairs...) }
}

// of hands the pod to another scheduler.
func of(scheduler string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.SchedulerName = scheduler }
}

func bestEffort(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests = nil }

func gated(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "hold"}} }

func terminating(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: epoch.Add(time.Hour)} }

func on(node string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.NodeName = node } }

func phase(ph corev1.PodPhase) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Status.Phase = ph } }

// running pods are on node-0.
func running(p *corev1.Pod) { p.Spec.NodeName, p.Status.Phase = "node-0", corev1.PodRunning }

func succeeded(p *corev1.Pod) { p.Spec.NodeName, p.Status.Phase = "node-0", corev1.PodSucceeded }

func failed(p *corev1.Pod) { p.Spec.NodeName, p.Status.Phase = "node-0", corev1.PodFailed }

// members returns n pods of the PodGroup "train" whose names begin with a prefix.
func members(prefix string, n int, options ...func(*corev1.Pod)) []*corev1.Pod {
	pods := make([]*corev1.Pod, n)
	for i := range pods {
		pods[i] = newPod(prefix+"-"+string(rune('0'+i)), append([]func(*corev1.Pod){in("train")}, options...)...)
	}
	return pods
}

// train is the key of the job that members belong to.
var train = model.JobKey{Source: model.FromVolcano, Namespace: "ns", Name: "train"}

// jobOf returns the job "train" made of a group, which may be nil, and pods. Those named in assumed have reservations.
func jobOf(group *model.Group, pods []*corev1.Pod, assumed ...types.UID) *model.Job {
	state := model.NewState()
	state.AddScheduler(batch)
	if group != nil {
		state.UpsertGroup(train, group)
	}
	for _, p := range pods {
		state.UpsertPod(p)
	}
	for _, uid := range assumed {
		state.Assume(uid, "node-1")
	}
	return state.Job(train)
}

func newNode(name string, options ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}},
		Status:     corev1.NodeStatus{Allocatable: amounts("cpu", "8", "pods", "110")},
	}
	for _, change := range options {
		change(n)
	}
	return n
}

func having(pairs ...string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Status.Allocatable = amounts(pairs...) }
}
