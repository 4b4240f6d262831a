// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package rebalance_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/preemption/rebalance"
	"github.com/caldera-scheduler/caldera/pkg/volcano/arguments"
)

// TestWhoLeavesRevocableNodes has the numbers of Volcano's own test of how many may go (pkg/scheduler/plugins/tdm/tdm_test.go).
func TestWhoLeavesRevocableNodes(t *testing.T) {
	t.Parallel()
	zones := map[string]arguments.Window{
		"night": {Start: 22 * time.Hour, End: 6 * time.Hour}, "noon": {Start: 11 * time.Hour, End: 13 * time.Hour},
	}
	night, noon := labelled(model.RevocableZoneKey, "night"), labelled(model.RevocableZoneKey, "noon")
	five := func() *world { return newWorld().node("n", night).pods("web", "n", 5, 5) }
	for name, tc := range map[string]struct {
		world *world
		want  []string
	}{
		"one of a job that does not say how many, the last one":      {five(), []string{"web-pod-4"}},
		"nobody while the window is open":                            {newWorld().node("n", noon).pods("web", "n", 1, 5), nil},
		"nobody where no window is configured":                       {newWorld().node("n", labelled(model.RevocableZoneKey, "other")).pods("web", "n", 1, 5), nil},
		"nobody of an ordinary node":                                 {newWorld().node("n").pods("web", "n", 1, 5), nil},
		"one of each job":                                            {five().pods("etl", "n", 2, 2), []string{"etl-pod-1", "web-pod-4"}},
		"at most 50 percent missing, rounded up":                     {five().says("web", 5, model.MaxUnavailableAnnotation, "50%"), []string{"web-pod-2", "web-pod-3", "web-pod-4"}},
		"at most 3 missing":                                          {five().says("web", 5, model.MaxUnavailableAnnotation, "3"), []string{"web-pod-2", "web-pod-3", "web-pod-4"}},
		"at least 3 there":                                           {five().says("web", 5, model.MinAvailableAnnotation, "3"), []string{"web-pod-3", "web-pod-4"}},
		"at least 30 percent there, rounded up":                      {five().says("web", 5, model.MinAvailableAnnotation, "30%"), []string{"web-pod-2", "web-pod-3", "web-pod-4"}},
		"pods elsewhere count, too":                                  {newWorld().node("n", night).node("m").pods("web", "n", 5, 5, onlyTheFirstOn("n", "m")).says("web", 5, model.MinAvailableAnnotation, "5"), nil},
		"who is not to be evicted stays, and others go":              {newWorld().node("n", night).pods("web", "n", 1, 3, keeping("web-pod-2")), []string{"web-pod-1"}},
		"whom a budget protects stays":                               {five().budget("web", 0), nil},
		"of two jobs with one budget one, always the same":           {newWorld().node("n", night).pods("a", "n", 1, 1, jobLabel("x")).pods("b", "n", 1, 1, jobLabel("x")).budget("x", 1), []string{"a-pod-0"}},
		"the minimum of a gang is no reason to stay on a lent node":  {newWorld().node("n", night).pods("web", "n", 2, 2), []string{"web-pod-1"}},
		"pods that nobody would create again agreed to leave, so go": {newWorld().node("n", night).pods("web", "n", 1, 1, func(p *corev1.Pod) { p.OwnerReferences = nil }), []string{"web-pod-0"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := sorted(rebalance.Vacate(zones, now, tc.world.nodes(), tc.world.protection(guards()...)))
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("evicted (-want,+got)\n%s", diff)
			}
		})
	}
}

// onlyTheFirstOn has the first pod run on one node and the others on another.
func onlyTheFirstOn(node, others string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.NodeName = others
		if p.Name == "web-pod-0" {
			p.Spec.NodeName = node
		}
	}
}

// keeping protects one pod.
func keeping(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		if p.Name == name {
			p.Annotations[model.PreemptableKey] = "false"
		}
	}
}

func jobLabel(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels["job"] = name }
}

func TestWhyAPodLeaves(t *testing.T) {
	t.Parallel()
	w := newWorld().node("n", labelled(model.RevocableZoneKey, "night")).pods("web", "n", 1, 1)
	got := rebalance.Vacate(map[string]arguments.Window{"night": {Start: 22 * time.Hour, End: 6 * time.Hour}}, now, w.nodes(), w.protection())
	const want = "tdm: revocable zone night of node n is usable at 22:00-6:00 only"
	if len(got) != 1 || got[0].Why != want {
		t.Errorf("evicted %+v, want one because %q", got, want)
	}
}
