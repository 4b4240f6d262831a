// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// TestAGangOnNodesWithOneValueOfALabel: of the zones with room for all of a gang the one with the least room is taken. Where some of its
// pods are on nodes already, the others follow.
func TestAGangOnNodesWithOneValueOfALabel(t *testing.T) {
	zone := func(prefix, value string, count int) nodeShape {
		return nodeShape{count: count, cpu: "8", memory: "64Gi", prefix: prefix, labels: map[string]string{"zone": value}}
	}
	shapes := nodeShapes{zone("large", "a", 4), zone("small", "b", 2), {count: 4, cpu: "8", memory: "64Gi", prefix: "none"}}
	for name, tc := range map[string]struct {
		key  string
		size int
		// on are the nodes of pods that run, which are of the gang.
		on []string
		// want is the prefix of the nodes, empty when the gang is refused for a reason.
		want, reason string
	}{
		"in the smallest that suffices":       {"zone", 16, nil, "small", ""},
		"in the only one that suffices":       {"zone", 17, nil, "large", ""},
		"in none that suffices":               {"zone", 33, nil, "", "in topology domain zone=a: 32/33 tasks in gang schedulable: insufficient cpu, short by 1"},
		"where it is already":                 {"zone", 9, []string{"large-0"}, "large", ""},
		"not elsewhere, though there is room": {"zone", 20, []string{"small-0"}, "", "in topology domain zone=b: "},
		"in two at once":                      {"zone", 4, []string{"small-0", "large-0"}, "", "its pods are to have one value of the node label zone in common, and those on nodes have a, b: restart the job"},
		"by a label that no node has":         {"rack", 1, nil, "", "its pods are to have one value of the node label rack in common, and no node has that label"},
		"by the label of one node":            {corev1.LabelHostname, 8, nil, "", ""},
		"not on two nodes":                    {corev1.LabelHostname, 9, nil, "", "in topology domain kubernetes.io/hostname="},
	} {
		t.Run(name, func(t *testing.T) {
			gang := gangOf("g", tc.size, tc.size, "1")
			gang.group.TopologyKey = tc.key
			var running []*corev1.Pod
			for i, node := range tc.on {
				running = append(running, onNode(gang.pods[i], node))
			}
			w := newFixture(t, shapes, running)
			plan := w.plan(t, w.job(gang))
			if !strings.HasPrefix(plan.Reason.Message, tc.reason) || tc.reason == "" && plan.Reason.Message != "" {
				t.Fatalf("the reason is %q, want %q", plan.Reason.Message, tc.reason)
			}
			if want := tc.size - len(tc.on); tc.reason == "" && len(plan.Placements) != want {
				t.Errorf("%d tasks are placed, want %d", len(plan.Placements), want)
			}
			values := map[string]bool{}
			for _, p := range plan.Placements {
				if !strings.HasPrefix(p.Node, tc.want) {
					t.Errorf("one is on %s, want it on one of %s", p.Node, tc.want)
				}
				values[w.label(p.Node, tc.key)] = true
			}
			if len(values) > 1 {
				t.Errorf("they are on nodes with the values %v of %s, want one", values, tc.key)
			}
		})
	}
}

// label is the value of a label of a node.
func (w *fixture) label(node, key string) string {
	info, err := w.snapshot.NodeInfos().Get(node)
	if err != nil {
		return ""
	}
	return info.Node().Labels[key]
}

// TestAGangOfTwoKindsOnNodesWithOneValueOfALabel: the zone that it fills to the last core has room for it, whichever kind has more tasks.
func TestAGangOfTwoKindsOnNodesWithOneValueOfALabel(t *testing.T) {
	for large := range 8 {
		shapes := nodeShapes{
			{count: 2, cpu: "8", memory: "64Gi", prefix: "exact", labels: map[string]string{"zone": "a"}},
			{count: 1, cpu: "8", memory: "64Gi", prefix: "small", labels: map[string]string{"zone": "b"}},
		}
		size := 16 - large
		gang := gangOf("g", size, size, "1", func(i int, p *corev1.Pod) {
			if i < large {
				p.Spec.Containers[0].Resources.Requests["cpu"] = resource.MustParse("2")
			}
		})
		gang.group.TopologyKey = "zone"
		w := newFixture(t, shapes, nil)
		if plan := w.plan(t, w.job(gang)); len(plan.Placements) != size {
			t.Errorf("of %d tasks with 2 cores and %d with one %d are placed: %s", large, size-large, len(plan.Placements), plan.Reason.Message)
		}
	}
}
