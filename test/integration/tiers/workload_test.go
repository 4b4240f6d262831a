// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package tiers_test

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/test/integration/env"
)

const gpu corev1.ResourceName = "nvidia.com/gpu"

// job describes a job of equal pods.
func job(name string, least, size int, cpu string, changes ...func(*corev1.Pod)) env.Gang {
	return env.Gang{Name: name, Min: least, Size: size, CPU: cpu, Pod: func(_ int, p *corev1.Pod) {
		for _, change := range changes {
			change(p)
		}
	}}
}

// of puts a job into a queue.
func of(queue string, g env.Gang) env.Gang {
	g.Queue = queue
	return g
}

// hurried has a job go before others.
func hurried(g env.Gang) env.Gang {
	g.Group = func(group *volcano.PodGroup) { group.Spec.PriorityClassName = urgent }
	return g
}

// needing has a job say what it needs, so that it is not let in unseen when its PodGroup is there before its pods.
func needing(cpu string, g env.Gang) env.Gang {
	g.Group = func(group *volcano.PodGroup) {
		group.Spec.MinResources = &corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
	}
	return g
}

// on lets a pod run on one node only.
func on(node string) func(*corev1.Pod) { return selected(corev1.LabelHostname, node) }

// selected lets a pod run on nodes with a label only.
func selected(label, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{label: value} }
}

// prefers has a pod prefer one node.
func prefers(node string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{
				Weight: 1, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{
					Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node},
				}}},
			}},
		}}
	}
}

func annotated(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Annotations[key] = value }
}

func labelled(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels[key] = value }
}

// limited has a pod ask for so much besides, and be limited to it.
func limited(amount string, names ...corev1.ResourceName) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		r := &p.Spec.Containers[0].Resources
		r.Limits = corev1.ResourceList{}
		for _, name := range names {
			r.Requests[name], r.Limits[name] = resource.MustParse(amount), resource.MustParse(amount)
		}
	}
}

// hold has a pod of somebody else's take up part of a node, and waits until it runs.
func (s *fixture) hold(name, node, cpu string, changes ...func(*corev1.Pod)) {
	s.t.Helper()
	p := env.Pod(name, cpu)
	p.Labels = map[string]string{env.GroupLabel: name}
	p.Spec.NodeName, p.Spec.SchedulerName = node, "somebody-else"
	for _, change := range changes {
		change(p)
	}
	s.CreatePods(s.t, p)
	env.Eventually(s.t, patience, func() string {
		if pods := s.Members(s.t, name); len(pods) != 1 || pods[0].Status.Phase != corev1.PodRunning {
			return "pod " + name + " does not run"
		}
		return ""
	})
}

// release deletes pods, and waits until they are gone. They go at once: while they terminate, whoever has a turn when the room
// comes free gets it.
func (s *fixture) release(names ...string) {
	s.t.Helper()
	for _, name := range names {
		s.must(s.Kube.CoreV1().Pods(env.Namespace).DeleteCollection(s.t.Context(), metav1.DeleteOptions{GracePeriodSeconds: new(int64)},
			metav1.ListOptions{LabelSelector: env.GroupLabel + "=" + name}))
	}
	for _, name := range names {
		s.gone(labels.SelectorFromSet(labels.Set{env.GroupLabel: name}))
	}
}

func (s *fixture) gone(selector labels.Selector) {
	s.t.Helper()
	env.Eventually(s.t, patience, func() string {
		pods, err := s.Pods.List(selector)
		if err != nil || len(pods) > 0 {
			return fmt.Sprintf("%d pods are left (%v)", len(pods), err)
		}
		return ""
	})
}

// queue creates a queue, with a weight of 1 if it has none.
func (s *fixture) queue(name string, spec volcano.QueueSpec) {
	s.t.Helper()
	spec.Weight = max(1, spec.Weight)
	_, err := s.Volcano.SchedulingV1beta1().Queues().Create(s.t.Context(),
		&volcano.Queue{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}, metav1.CreateOptions{})
	s.must(err)
}

// runs creates a job, and waits until so many of its pods have nodes: their names, sorted.
func (s *fixture) runs(g env.Gang, want int) []string {
	s.t.Helper()
	s.Create(s.t, g)
	return s.nodes(g.Name, want)
}

// nodes waits until so many pods of a job have nodes: their names, sorted.
func (s *fixture) nodes(name string, want int) []string {
	s.t.Helper()
	env.Eventually(s.t, patience, s.AllBound(s.t, name, want))
	var nodes []string
	for _, p := range s.Members(s.t, name) {
		if p.Spec.NodeName != "" {
			nodes = append(nodes, p.Spec.NodeName)
		}
	}
	slices.Sort(nodes)
	return nodes
}

// waits creates a job, and waits until its PodGroup says that it has to wait for this reason.
func (s *fixture) waits(g env.Gang, reason model.ReasonKind) {
	s.t.Helper()
	s.Create(s.t, g)
	env.Eventually(s.t, patience, s.Waits(s.t, g.Name, reason))
}

// phase waits until a PodGroup has a phase.
func (s *fixture) phase(name string, want volcano.PodGroupPhase) {
	s.t.Helper()
	env.Eventually(s.t, patience, func() string {
		if got := s.PodGroup(s.t, name).Status.Phase; got != want {
			return fmt.Sprintf("PodGroup %s is %s, want %s", name, got, want)
		}
		return ""
	})
}

// expect compares where the pods of a job are with where they should be.
func (s *fixture) expect(name string, got []string, want ...string) {
	s.t.Helper()
	if !slices.Equal(got, want) {
		s.t.Errorf("the pods of %s are on %q, want %q", name, got, want)
	}
}
