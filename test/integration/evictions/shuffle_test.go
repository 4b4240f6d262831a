// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package evictions_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/preemption/eviction"
	"github.com/caldera-scheduler/caldera/test/integration/env"
)

// lending has pods leave revocable nodes of the zone "night" every second, outside a window that begins in two hours.
func lending() string {
	begin := time.Now().Add(2 * time.Hour)
	return fmt.Sprintf(`
actions: "allocate, shuffle"
tiers:
- plugins: [{name: gang}, {name: conformance}, {name: pdb}, {name: tdm, arguments: {tdm.revocable-zone.night: "%s-%s", tdm.evict.period: 1s}}]
- plugins: [{name: predicates}]
`, begin.Format("15:04"), begin.Add(time.Hour).Format("15:04"))
}

// lend makes all nodes revocable.
func (s *scene) lend() {
	s.t.Helper()
	nodes, err := s.Kube.CoreV1().Nodes().List(s.t.Context(), metav1.ListOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	for i := range nodes.Items {
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]string{model.RevocableZoneKey: "night"}}})
		if err != nil {
			s.t.Fatal(err)
		}
		if _, err := s.Kube.CoreV1().Nodes().Patch(s.t.Context(), nodes.Items[i].Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			s.t.Fatal(err)
		}
	}
}

// saying gives the PodGroup of a job an annotation.
func saying(key, value string, g env.Gang) env.Gang {
	g.Group = func(group *volcano.PodGroup) { group.Annotations = map[string]string{key: value} }
	return g
}

// TestPodsLeaveNodesThatAreLent ends the time of nodes on which four jobs run: one keeps as many pods as its PodGroup says, one
// as many as its budget says, one cannot be evicted, and of one all go, a pod at a time.
func TestPodsLeaveNodesThatAreLent(t *testing.T) {
	s := single(t, 4, lending())
	s.queues(map[string]queueSpec{"a": {weight: 1}})
	s.fill(
		saying(model.MinAvailableAnnotation, "3", job("keeps", "a", 1, 5)),
		job("budgeted", "a", 1, 4, labelled("app", "web")),
		job("stays", "a", 1, 3, annotated(model.PreemptableKey, "false")),
		job("goes", "a", 2, 2, stubborn), // So that what is written on them after the API server agreed can be seen.
	)
	s.budget("web", &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, 3)
	s.lend()
	s.holds(map[string]int{"keeps": 3, "budgeted": 3, "stays": 3, "goes": 0})
	s.evicted(map[string]int{"keeps": 2, "budgeted": 1, "goes": 2}, calm)

	for _, d := range s.ledger() {
		if d.Action != eviction.Shuffle || d.Outcome != eviction.Done && d.Outcome != eviction.Cancelled || d.Beneficiary != (model.JobKey{}) {
			t.Errorf("decision %d is %s for %+v, and %s", d.ID, d.Action, d.Beneficiary, d.Outcome)
		}
	}
	if evicted := s.totals().Evicted; evicted != 5 {
		t.Errorf("the ledger knows of %d evicted pods, want 5", evicted)
	}
	const why = "because of shuffle: tdm: revocable zone night of node "
	for _, name := range []string{"goes-0", "goes-1"} {
		s.told("Pod", name, "Evict", why)
		s.told("PodGroup", "goes", "Evict", name, why)
		env.Eventually(t, patience, func() string {
			said := s.witness.conditions(name)
			if len(said) > 0 && said[len(said)-1].Status == corev1.ConditionTrue && strings.Contains(said[len(said)-1].Message, why) {
				return ""
			}
			return fmt.Sprintf("pod %s had the conditions %v", name, said)
		})
	}
}
