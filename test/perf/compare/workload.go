// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
	volcanoclient "volcano.sh/apis/pkg/client/clientset/versioned"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

const (
	namespace = "default"
	// groupLabel names a pod's gang, for the measurement only; plain pods carry it too.
	groupLabel = "compare.caldera.dev/group"
	// batchName is the name by which pods ask for Caldera.
	batchName = "volcano"
	creators  = 32
)

// creator makes a scenario's objects.
type creator struct {
	kind    podKind
	queues  int
	spread  string
	kube    kubernetes.Interface
	volcano volcanoclient.Interface
}

// create makes the queues, the gangs' PodGroups and all pods.
func create(ctx context.Context, s scenario, c contender, config *rest.Config) error {
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	groups, err := volcanoclient.NewForConfig(config)
	if err != nil {
		return err
	}
	w := &creator{kind: c.pods, queues: c.queues, spread: s.Spread, kube: kube, volcano: groups}
	for i := range w.queues {
		queue := &volcano.Queue{ObjectMeta: metav1.ObjectMeta{Name: queueName(i)}, Spec: volcano.QueueSpec{Weight: int32(i + 1)}}
		if _, err := groups.SchedulingV1beta1().Queues().Create(ctx, queue, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("creating queue %s: %w", queue.Name, err)
		}
	}
	nodes, err := kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing nodes: %w", err)
	}
	err = w.gangs(ctx, (s.Bound+boundSize-1)/boundSize, func(i int) gang {
		return gang{name: fmt.Sprintf("bound-%05d", i), number: i, size: min(boundSize, s.Bound-i*boundSize), on: nodes.Items}
	})
	if err != nil {
		return err
	}
	return w.gangs(ctx, s.Gangs, func(i int) gang {
		return gang{name: fmt.Sprintf("gang-%05d", i), number: i, size: s.Size}
	})
}

// boundSize is the size of the gangs that run before the scheduler does.
const boundSize = 100

// gang is what is created of one gang.
type gang struct {
	name         string
	number, size int
	// on are the nodes over which its pods are spread; none: the pods have no nodes yet.
	on []corev1.Node
}

// gangs makes n gangs, many at a time.
func (w *creator) gangs(ctx context.Context, n int, of func(i int) gang) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	workqueue.ParallelizeUntil(ctx, creators, n, func(i int) {
		g := of(i)
		if err := w.create(ctx, g); err != nil {
			cancel(fmt.Errorf("creating gang %s: %w", g.name, err))
		}
	})
	return context.Cause(ctx)
}

// create makes a gang's PodGroup, if it has one, and its pods.
func (w *creator) create(ctx context.Context, g gang) error {
	meta := metav1.ObjectMeta{Name: g.name}
	var err error
	switch w.kind {
	case volcanoPods:
		group := &volcano.PodGroup{ObjectMeta: meta, Spec: volcano.PodGroupSpec{MinMember: int32(g.size)}}
		if w.queues > 0 {
			group.Spec.Queue = queueName(g.number % w.queues)
		}
		_, err = w.volcano.SchedulingV1beta1().PodGroups(namespace).Create(ctx, group, metav1.CreateOptions{})
	case nativePods, batchNativePods:
		group := &schedulingv1beta1.PodGroup{ObjectMeta: meta, Spec: schedulingv1beta1.PodGroupSpec{
			SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: int32(g.size)}},
		}}
		_, err = w.kube.SchedulingV1beta1().PodGroups(namespace).Create(ctx, group, metav1.CreateOptions{})
	case plainPods, alonePods:
	}
	for i := 0; i < g.size && err == nil; i++ {
		pod := w.pod(g.name, i)
		if len(g.on) > 0 {
			pod.Spec.NodeName = g.on[(g.number*boundSize+i)%len(g.on)].Name
		}
		_, err = w.kube.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
	}
	return err
}

func queueName(i int) string { return fmt.Sprintf("team-%02d", i) }

func (w *creator) pod(group string, i int) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%05d", group, i), Labels: map[string]string{groupLabel: group}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "work", Image: "registry.k8s.io/pause:3.10",
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("1Gi"),
			}},
		}}},
	}
	if w.spread != "" {
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: w.spread, WhenUnsatisfiable: corev1.DoNotSchedule,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{groupLabel: group}},
		}}
	}
	switch w.kind {
	case volcanoPods:
		p.Spec.SchedulerName = batchName
		p.Annotations = map[string]string{model.GroupNameAnnotation: group}
	case alonePods:
		p.Spec.SchedulerName = batchName
	case nativePods:
		p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &group}
	case batchNativePods:
		p.Spec.SchedulerName = batchName
		p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &group}
	case plainPods:
	}
	return p
}
