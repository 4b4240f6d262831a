// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package evictions_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/test/integration/env"
)

// ranked gives a job the priority of a class, which is created if need be.
func (s *scene) ranked(class string, value int32, g env.Gang) env.Gang {
	s.t.Helper()
	s.PriorityClass(s.t, class, value)
	pod := g.Pod
	g.Group = func(group *volcano.PodGroup) { group.Spec.PriorityClassName = class }
	g.Pod = func(i int, p *corev1.Pod) {
		pod(i, p)
		p.Spec.PriorityClassName = class
	}
	return g
}

// TestAnImportantGangPreempts checks that a gang takes the room of less important pods of its queue: in a full cluster, and
// in a queue that is at its capability while nodes are idle. At no moment do its pods ask for nodes: the same write that says they have none names
// the one that is made room on.
func TestAnImportantGangPreempts(t *testing.T) {
	st := open(t, 4)
	for _, c := range []struct {
		name, capability string
		held             int
	}{
		{name: "in a full cluster", held: 16},
		{name: "in a queue at its capability", capability: "10", held: 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := st.play(t, byShares)
			s.recreate(true)
			s.queues(map[string]queueSpec{"q": {weight: 1, capability: c.capability}})
			s.fill(s.ranked("low", 10, job("minor", "q", 1, c.held)))
			s.Create(t, s.ranked("high", 1000, job("urgent", "q", 4, 4)))
			s.holds(map[string]int{"urgent": 4, "minor": c.held - 4})
			s.evicted(map[string]int{"minor": 4}, 2*calm)
			if n := s.witness.wants("urgent"); n > 0 {
				t.Errorf("an autoscaler would have brought nodes for %d versions of pods that have others evicted", n)
			}
		})
	}
}

// TestNobodyGoesForAGangThatCannotStart checks that evictions which would let some members start and not all do not happen.
func TestNobodyGoesForAGangThatCannotStart(t *testing.T) {
	st := open(t, 4)
	for _, c := range []struct {
		name string
		last func(*corev1.Pod)
	}{
		{name: "a member asks for a node that does not exist", last: func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"disk": "none"} }},
		{name: "a member is larger than any node", last: func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("5")
		}},
		{name: "a member is as large as a node of which a pod stays", last: func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("4")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := st.play(t, byShares)
			s.queues(map[string]queueSpec{"a": {weight: 1}, "b": {weight: 1}})
			// On every node there is one pod that stays.
			s.fill(s.ranked("high", 1000, spread(job("stays", "a", 4, 4))))
			s.fill(s.ranked("low", 10, job("minor", "a", 1, 12)))
			gang := s.ranked("high", 1000, job("gang", "a", 3, 3))
			member := gang.Pod
			gang.Pod = func(i int, p *corev1.Pod) {
				if member(i, p); i == 2 {
					c.last(p)
				}
			}
			s.Create(t, gang)
			s.refused("gang", "preempt: ")
		})
	}
}

// spread has the pods of a job avoid each other's nodes.
func spread(g env.Gang) env.Gang {
	pod := g.Pod
	g.Pod = func(i int, p *corev1.Pod) {
		pod(i, p)
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{env.GroupLabel: g.Name}}, TopologyKey: corev1.LabelHostname,
			}},
		}}
	}
	return g
}
