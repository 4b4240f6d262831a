// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/pkg/localcluster"
	"github.com/caldera-scheduler/caldera/pkg/model"
)

const (
	// urgent is the priority class of gangs for which others are evicted.
	urgent = "chaos-urgent"
	// terminateAfter is how long the simulated kubelet lets a deleted pod go on.
	terminateAfter = "localcluster.caldera.dev/terminate-after"
)

// create makes a gang: a PodGroup, and a ReplicaSet that keeps its pods there.
func (s *stage) create(ctx context.Context, name string) error {
	group := &volcano.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}, Spec: volcano.PodGroupSpec{MinMember: int32(s.Size)}}
	labels := map[string]string{gangLabel: name}
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{model.GroupNameAnnotation: name}},
		Spec:       worker("1"),
	}
	if s.trouble.adorn != nil {
		s.trouble.adorn(name, group, &template.Spec)
	}
	if _, err := s.groups.SchedulingV1beta1().PodGroups(namespace).Create(ctx, group, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating a PodGroup: %w", err)
	}
	set := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec:       appsv1.ReplicaSetSpec{Replicas: new(int32(s.Size)), Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template},
	}
	if _, err := s.kube.AppsV1().ReplicaSets(namespace).Create(ctx, set, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating a ReplicaSet: %w", err)
	}
	return nil
}

// worker is a batch pod that asks for so much CPU, and ends at once when it is told to.
func worker(cpu string) corev1.PodSpec {
	return corev1.PodSpec{
		SchedulerName:                 "volcano",
		TerminationGracePeriodSeconds: new(int64(0)),
		Containers: []corev1.Container{{
			Name: "work", Image: "registry.k8s.io/pause:3.10",
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}},
		}},
	}
}

// fill has others take all cores that are idle, as another scheduler would.
func (s *stage) fill(ctx context.Context, r *round) error {
	return s.eachNode(ctx, func(node string) error {
		idle := nodeCores - s.watcher.on(node)
		if idle <= 0 {
			return nil
		}
		pod := other(r, node)
		pod.Spec = worker(fmt.Sprint(idle))
		pod.Spec.SchedulerName, pod.Spec.NodeName = "others", node
		return s.createPod(ctx, pod)
	})
}

// crowd has an elastic job of low priority on all cores, whose pods take a while to end.
func (s *stage) crowd(ctx context.Context, r *round) error {
	name := fmt.Sprintf("others-%d", r.number)
	group := &volcano.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}, Spec: volcano.PodGroupSpec{MinMember: 1}}
	if _, err := s.groups.SchedulingV1beta1().PodGroups(namespace).Create(ctx, group, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating the PodGroup of others: %w", err)
	}
	return s.eachNode(ctx, func(node string) error {
		for i := range nodeCores {
			pod := other(r, fmt.Sprintf("%s-%d", node, i))
			pod.Annotations = map[string]string{model.GroupNameAnnotation: name, terminateAfter: "5s"}
			pod.Spec = worker("1")
			pod.Spec.NodeName, pod.Spec.TerminationGracePeriodSeconds = node, new(int64(30))
			if err := s.createPod(ctx, pod); err != nil {
				return err
			}
		}
		return nil
	})
}

// other is a pod that takes room.
func other(r *round, name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: fmt.Sprintf("others-%d-%s", r.number, name), Namespace: namespace, Labels: map[string]string{othersLabel: "true"},
	}}
}

func (s *stage) createPod(ctx context.Context, pod *corev1.Pod) error {
	if _, err := s.kube.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating a pod of others: %w", err)
	}
	return nil
}

func (s *stage) eachNode(ctx context.Context, do func(node string) error) error {
	nodes, err := s.kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing nodes: %w", err)
	}
	for _, node := range nodes.Items {
		if err := do(node.Name); err != nil {
			return err
		}
	}
	return nil
}

// createUrgent makes the priority class of gangs for which others are evicted.
func (s *stage) createUrgent(ctx context.Context) error {
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: urgent}, Value: 1000}
	return localcluster.CreatePriorityClass(ctx, s.kube, class)
}

// clear removes the gangs and others, and returns when their pods are gone.
func (s *stage) clear(ctx context.Context, names []string) error {
	background := metav1.DeletePropagationBackground
	for _, name := range names {
		if err := s.kube.AppsV1().ReplicaSets(namespace).Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
			return fmt.Errorf("deleting a ReplicaSet: %w", err)
		}
	}
	err := s.groups.SchedulingV1beta1().PodGroups(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("deleting the PodGroups: %w", err)
	}
	return errors.Join(s.remove(ctx, gangLabel), s.remove(ctx, othersLabel))
}

// remove deletes the pods that have a label, and returns when they are gone.
func (s *stage) remove(ctx context.Context, label string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*s.Patience)
	defer cancel()
	err := wait.PollUntilContextCancel(ctx, 5*poll, true, func(ctx context.Context) (bool, error) {
		// A controller may create some before it knows that it is not to.
		err := s.kube.CoreV1().Pods(namespace).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}, metav1.ListOptions{LabelSelector: label})
		return s.watcher.with(label) == 0, err
	})
	if err != nil {
		return fmt.Errorf("removing the pods with label %s: %w", label, err)
	}
	return nil
}
