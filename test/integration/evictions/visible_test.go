// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package evictions_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/caldera-scheduler/caldera/pkg/apis/visibility/v1alpha1"
	"github.com/caldera-scheduler/caldera/pkg/preemption/eviction"
	"github.com/caldera-scheduler/caldera/test/integration/env"
)

// told waits for an event on an object whose message contains all phrases.
func (s *scene) told(kind, name, reason string, phrases ...string) {
	s.t.Helper()
	env.Eventually(s.t, patience, func() string {
		list, err := s.Kube.CoreV1().Events(env.Namespace).List(s.t.Context(), metav1.ListOptions{
			FieldSelector: fmt.Sprintf("involvedObject.kind=%s,involvedObject.name=%s,reason=%s", kind, name, reason),
		})
		if err != nil {
			s.t.Fatal(err)
		}
		var said []string
		for i := range list.Items {
			said = append(said, list.Items[i].Message)
			if !slices.ContainsFunc(phrases, func(phrase string) bool { return !strings.Contains(list.Items[i].Message, phrase) }) {
				return ""
			}
		}
		return fmt.Sprintf("events %s on %s %s: %q, want one with %q", reason, kind, name, said, phrases)
	})
}

// TestEvictionsCanBeSeen follows one decision through everything by which users can learn of it.
func TestEvictionsCanBeSeen(t *testing.T) {
	s := single(t, 2, byShares)
	s.queues(map[string]queueSpec{"a": {weight: 1}, "b": {weight: 1}})
	s.fill(job("held", "a", 1, 8, stubborn))
	s.Create(t, job("gang", "b", 4, 4))
	s.awaits("held", 4, "gang")
	victims := s.ending("held")

	const beneficiary = "PodGroup default/gang in queue b"
	for _, v := range victims {
		env.Eventually(t, patience, func() string {
			said := s.witness.conditions(v.Name)
			if len(said) > 0 {
				if c := said[len(said)-1]; c.Status == corev1.ConditionTrue && c.Reason == corev1.PodReasonPreemptionByScheduler &&
					strings.Contains(c.Message, beneficiary) && strings.Contains(c.Message, "reclaim") {
					return ""
				}
			}
			return fmt.Sprintf("pod %s had the conditions %v", v.Name, said)
		})
		s.told("Pod", v.Name, "Evict", "because of reclaim", beneficiary)
		s.told("PodGroup", "held", "Evict", v.Name, beneficiary)
	}
	s.told("PodGroup", "gang", "Evicting", "evicting 4 pods of queue a to start (reclaim)")
	s.told("Queue", "b", "Evicting", "evicting 4 pods of queue a for PodGroup default/gang")
	s.told("Queue", "a", "Evict", "4 pods evicted, because of reclaim", beneficiary)
	env.Eventually(t, patience, func() string {
		if said := s.condition("gang"); !strings.HasPrefix(said, "WaitingForVictims: room is kept for 4 tasks; 4 pods have yet to leave it") {
			return "the PodGroup says " + said
		}
		return ""
	})
	s.recorded(victims, eviction.Pending, eviction.Leaving)

	s.release(victims...)
	s.holds(map[string]int{"gang": 4})
	env.Eventually(t, patience, func() string {
		if outcome := s.ledger()[0].Outcome; outcome != eviction.Started {
			return fmt.Sprintf("the decision is %s, want Started", outcome)
		}
		return ""
	})
	s.recorded(victims, eviction.Started, eviction.Gone)
}

// recorded checks the one decision of the ledger as it is served, and that the members wait for, or have, the nodes that
// it names.
func (s *scene) recorded(victims []*corev1.Pod, outcome eviction.Outcome, state eviction.VictimState) {
	s.t.Helper()
	decisions, totals := s.Views().Evictions(""), s.totals()
	if len(decisions) != 1 || totals.Decisions != 1 || totals.Evicted != 4 {
		s.t.Fatalf("want one decision by which 4 pods are evicted, got %+v, %+v", decisions, totals)
	}
	d := decisions[0].Status
	want := v1alpha1.JobReference{Kind: "PodGroup", Namespace: "default", Name: "gang", Queue: "b"}
	if d.Action != "reclaim" || d.Job == nil || *d.Job != want || d.Outcome != string(outcome) {
		s.t.Errorf("want a decision for %+v that is %s, got %+v", want, outcome, d)
	}
	var wanted, got []string
	for _, p := range victims {
		wanted = append(wanted, fmt.Sprintf("%s on %s %s true", p.UID, p.Spec.NodeName, state))
	}
	for _, v := range d.Victims {
		got = append(got, fmt.Sprintf("%s on %s %s %t", v.UID, v.Node, v.State, v.Evicted))
	}
	slices.Sort(wanted)
	slices.Sort(got)
	if !slices.Equal(got, wanted) {
		s.t.Errorf("victims in the ledger: %v, want %v", got, wanted)
	}
	nodes := map[string]string{}
	for _, m := range d.Members {
		nodes[m.Name] = m.Node
	}
	env.Eventually(s.t, patience, func() string {
		for _, p := range s.Members(s.t, "gang") {
			if node := p.Spec.NodeName + p.Status.NominatedNodeName; node != nodes[p.Name] && p.Spec.NodeName == "" {
				return fmt.Sprintf("pod %s waits for node %q, the ledger says %q", p.Name, p.Status.NominatedNodeName, nodes[p.Name])
			}
			if p.Spec.NodeName != "" && outcome == eviction.Pending {
				return fmt.Sprintf("pod %s has a node before the victims have gone", p.Name)
			}
		}
		return ""
	})
}
