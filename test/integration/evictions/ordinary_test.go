// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package evictions_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/test/integration/env"
)

// ordinary creates a pod of the profile for ordinary pods that asks for so many cores, on a node if one is given, and for which others may
// go by the value of its class.
func (s *scene) ordinary(name, node, cores, class string, value int32) {
	s.t.Helper()
	if class != "" {
		s.PriorityClass(s.t, class, value)
	}
	p := env.Pod(name, cores)
	p.Spec.SchedulerName, p.Spec.PriorityClassName, p.Spec.NodeName = corev1.DefaultSchedulerName, class, node
	p.Labels = map[string]string{env.GroupLabel: name}
	s.CreatePods(s.t, p)
}

// node returns the name of the node that a scene has.
func (s *scene) node() string {
	s.t.Helper()
	nodes, err := s.Kube.CoreV1().Nodes().List(s.t.Context(), metav1.ListOptions{})
	if err != nil || len(nodes.Items) != 1 {
		s.t.Fatalf("want one node, got %d: %v", len(nodes.Items), err)
	}
	return nodes.Items[0].Name
}

// TestAnOrdinaryPodBreaksNoGang: on a node of four cores, by upstream's preemption with the rule of gangs.
func TestAnOrdinaryPodBreaksNoGang(t *testing.T) {
	st := open(t, 1)
	for _, c := range []struct {
		name  string
		begin func(*scene)
		class string
		value int32
		cores string
		want  map[string]int
	}{
		{
			name: "a dearer pod goes rather than a member of a whole gang", class: "urgent", value: 1000, cores: "1",
			begin: func(s *scene) {
				s.fill(job("whole", "", 3, 3))
				s.ordinary("plain", s.node(), "1", "dear", 5)
				s.holds(map[string]int{"whole": 3, "plain": 1})
			},
			want: map[string]int{"whole": 3, "plain": 0, "taker": 1},
		},
		{
			name: "what a gang has beyond its minimum goes, and no more", class: "urgent", value: 1000, cores: "1",
			begin: func(s *scene) {
				s.fill(job("spare", "", 3, 4))
				s.ordinary("first", "", "1", "urgent", 1000)
				s.holds(map[string]int{"first": 1, "spare": 3})
			},
			want: map[string]int{"first": 1, "spare": 3, "taker": 0},
		},
		{
			name: "a member of a half gang goes first", class: "urgent", value: 1000, cores: "1",
			begin: func(s *scene) {
				half := s.ranked("dear", 5, job("half", "", 3, 2))
				member := half.Pod
				half.Pod = func(i int, p *corev1.Pod) {
					member(i, p)
					p.Spec.NodeName = s.node()
				}
				s.fill(half)
				s.ordinary("plain", s.node(), "2", "", 0)
				s.holds(map[string]int{"plain": 1})
				// Nobody has been placed by it: that it runs, and knows the gang for half, its PodGroup says.
				env.Eventually(s.t, patience, func() string {
					if got := s.PodGroup(s.t, "half").Status.Phase; got != volcano.PodGroupUnknown {
						return fmt.Sprintf("the half gang's PodGroup is %q", got)
					}
					return ""
				})
			},
			want: map[string]int{"half": 1, "plain": 1, "taker": 1},
		},
		{
			name: "what the cluster cannot do without takes anybody", class: "system-node-critical", value: 2000001000, cores: "1",
			begin: func(s *scene) { s.fill(job("whole", "", 4, 4)) },
			want:  map[string]int{"whole": 3, "taker": 1},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := st.play(t, byShares)
			c.begin(s)
			s.ordinary("taker", "", c.cores, c.class, c.value)
			s.holds(c.want)
			env.Consistently(t, calm, func() string {
				for name, n := range c.want {
					if got := s.running()[name]; got != n {
						return fmt.Sprintf("%d pods of %s run, want %d", got, name, n)
					}
				}
				return ""
			})
		})
	}
}
