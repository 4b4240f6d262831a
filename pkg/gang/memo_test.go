// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"github.com/caldera-scheduler/caldera/pkg/gang"
)

// weather is a plugin that keeps pods off all nodes but one, which is another one every day.
type weather struct {
	day    int
	filter atomic.Int64 // Nodes are filtered side by side.
}

func (*weather) Name() string { return "Weather" }

func (w *weather) PreFilter(_ context.Context, state fwk.CycleState, _ *corev1.Pod, _ []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	gang.See(state, int64(w.day))
	return nil, nil
}

func (*weather) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

func (w *weather) Filter(_ context.Context, _ fwk.CycleState, _ *corev1.Pod, info fwk.NodeInfo) *fwk.Status {
	w.filter.Add(1)
	if info.Node().Name == fmt.Sprintf("node-%d", w.day) {
		return nil
	}
	return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "it rains")
}

func TestCandidatesAreRememberedWhileWhatPluginsSeeOutsideIsTheSame(t *testing.T) {
	w := &weather{day: 1}
	fixture := newFixture(t, nodeShapes{{count: 3, cpu: "16", memory: "64Gi"}}, nil, w)
	for i, day := range []int{1, 1, 2, 2} {
		w.day = day
		w.filter.Store(0)
		plan := fixture.plan(t, fixture.job(gangOf(fmt.Sprintf("g%d", i), 1, 1, "1", labelledAlike)))
		if len(plan.Placements) != 1 || plan.Placements[0].Node != fmt.Sprintf("node-%d", day) {
			t.Errorf("gang %d on day %d: placements %v, want one on node-%d: %s", i, day, plan.Placements, day, plan.Reason.Message)
		}
		if same, filtered := i%2 == 1, w.filter.Load(); same != (filtered < 3) {
			t.Errorf("gang %d on day %d: %d nodes filtered of 3, while the day was another one: %t", i, day, filtered, !same)
		}
	}
}

// extended is a profile with an extender.
type extended struct {
	gang.Framework
	extender fwk.Extender
}

func (e extended) Extenders() []fwk.Extender { return []fwk.Extender{e.extender} }

// newHomes returns upstream's client of an extender that keeps a pod on the node that its label home names.
func newHomes(t *testing.T) fwk.Extender {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked extenderv1.ExtenderArgs
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		kept := slices.DeleteFunc(*asked.NodeNames, func(name string) bool { return name != asked.Pod.Labels["home"] })
		if err := json.NewEncoder(w).Encode(extenderv1.ExtenderFilterResult{NodeNames: &kept}); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	extender, err := scheduler.NewHTTPExtender(&schedulerconfig.Extender{URLPrefix: server.URL, FilterVerb: "filter", NodeCacheCapable: true})
	if err != nil {
		t.Fatal(err)
	}
	return extender
}

// TestAnExtenderIsAskedAboutEachClass: it sees the whole pod, with labels and annotations, of which the planner does not know which matter.
func TestAnExtenderIsAskedAboutEachClass(t *testing.T) {
	w := newFixture(t, nodeShapes{{count: 3, cpu: "16", memory: "64Gi"}}, nil)
	w.planner.Framework = extended{w.planner.Framework, newHomes(t)}
	home := func(i int) string { return fmt.Sprintf("node-%d", 2-i%3) }
	labelled := func(i int, p *corev1.Pod) { p.Labels["home"] = home(i) }
	t.Run("from plan to plan", func(t *testing.T) {
		for i := range 4 {
			plan := w.plan(t, w.job(gangOf(fmt.Sprintf("g%d", i), 1, 1, "1", func(_ int, p *corev1.Pod) { labelled(i, p) })))
			if diff := cmp.Diff([]string{home(i)}, nodesOf(plan)); diff != "" {
				t.Errorf("nodes of gang %d (-want,+got)\n%s%s", i, diff, plan.Reason.Message)
			}
		}
	})
	t.Run("inside of a plan", func(t *testing.T) {
		plan := w.plan(t, w.job(gangOf("gang", 3, 3, "1", labelled)))
		if diff := cmp.Diff([]string{home(0), home(1), home(2)}, nodesOf(plan)); diff != "" {
			t.Errorf("nodes (-want,+got)\n%s%s", diff, plan.Reason.Message)
		}
	})
}

// TestRememberedCandidatesHeedPlannedAntiAffinity: a pod whose like was placed before goes to the zone that a member planned before it, which
// wants none of its like around, leaves to it, though the nodes of the other zone are larger.
func TestRememberedCandidatesHeedPlannedAntiAffinity(t *testing.T) {
	zone := func(name string) map[string]string { return map[string]string{corev1.LabelTopologyZone: name} }
	w := newFixture(t, nodeShapes{
		{prefix: "large", count: 2, cpu: "16", memory: "64Gi", labels: zone("a")},
		{prefix: "small", count: 1, cpu: "4", memory: "16Gi", labels: zone("b")},
	}, nil)
	w.plan(t, w.job(gangOf("before", 1, 1, "1")))
	first := int32(1)
	plan := w.plan(t, w.job(gangOf("gang", 2, 2, "1", func(i int, p *corev1.Pod) {
		if i == 1 {
			return
		}
		p.Labels["gang"] = "other"
		p.Spec.Priority = &first
		p.Spec.NodeSelector = zone("a")
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				TopologyKey: corev1.LabelTopologyZone, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"gang": "gang"}},
			}},
		}}
	})))
	// The two large nodes are equal: it may be either.
	if got := nodesOf(plan); len(got) != 2 || !strings.HasPrefix(got[0], "large-") || got[1] != "small-0" {
		t.Errorf("nodes are %v, want a large one and small-0: %s", got, plan.Reason.Message)
	}
}
