// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package evictions_test

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"time"

	registrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/caldera-scheduler/caldera/test/integration/env"
)

// unanswered is how long nobody answers a request for an eviction: longer than it takes to see one that was answered.
const unanswered = 12 * time.Second

// closeGate has the API server keep all requests to delete pods. A pod that exists is needed to see that it does.
func (s *scene) closeGate(pod string) *env.Gate {
	s.t.Helper()
	rule := registrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}}
	return s.CloseGate(s.t, env.Namespace, registrationv1.Delete, rule, func(ctx context.Context) error {
		return s.Kube.CoreV1().Pods(env.Namespace).Delete(ctx, pod, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
	})
}

// TestAGangIsNotTakenApartWhileEvictionsAreOnTheirWay: upstream asks the API server for victims while the next pods are scheduled. What a gang
// has beyond its minimum is one pod here, on a node or the other, and that is for the first of three pods, however long it takes.
func TestAGangIsNotTakenApartWhileEvictionsAreOnTheirWay(t *testing.T) {
	s := single(t, 2, byShares)
	s.fill(job("whole", "", 7, 8))
	gate := s.closeGate(s.Members(t, "whole")[0].Name)
	s.ordinary("first", "", "1", "urgent", 1000)
	env.Eventually(t, patience, func() string {
		if n := gate.Held(); n != 1 {
			return fmt.Sprintf("%d pods are to go for the first one, want 1", n)
		}
		return ""
	})
	one := func() string {
		if n := gate.Held(); n != 1 {
			return fmt.Sprintf("%d pods of the gang are to go, and it has one beyond its minimum", n)
		}
		return ""
	}
	s.ordinary("second", "", "1", "urgent", 1000)
	env.Eventually(t, patience, func() string { return s.tried("second") })
	env.Consistently(t, unanswered, one)
	s.ordinary("third", "", "1", "urgent", 1000)
	env.Eventually(t, patience, func() string { return s.tried("third") })
	env.Consistently(t, calm, one)
	gate.Open()
	want := map[string]int{"whole": 7, "first": 1}
	s.holds(want)
	env.Consistently(t, calm, func() string {
		if got := s.running(); !maps.Equal(got, want) {
			return fmt.Sprintf("%v run, want %v", got, want)
		}
		return ""
	})
}

// tried returns what is amiss unless a pod was told that nothing can be done for it.
func (s *scene) tried(name string) string {
	s.t.Helper()
	pod, err := s.Kube.CoreV1().Pods(env.Namespace).Get(s.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return ""
		}
	}
	return fmt.Sprintf("pod %s was not tried yet", name)
}
