// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang_test

import (
	"context"
	"fmt"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
)

// crowding is a plugin that likes nodes with many pods. For pods with the label relative its scores are relative to those of the fullest node.
type crowding struct{}

func (crowding) Name() string { return "Crowding" }

func (crowding) Score(_ context.Context, _ fwk.CycleState, _ *corev1.Pod, info fwk.NodeInfo) (int64, *fwk.Status) {
	return int64(5 * len(info.GetPods())), nil
}

func (pl crowding) ScoreExtensions() fwk.ScoreExtensions { return pl }

func (crowding) NormalizeScore(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, scores fwk.NodeScoreList) *fwk.Status {
	most := int64(0)
	for _, s := range scores {
		most = max(most, s.Score)
	}
	if _, relative := pod.Labels["relative"]; !relative || most == 0 {
		return nil
	}
	for i := range scores {
		scores[i].Score = fwk.MaxScore * scores[i].Score / most
	}
	return nil
}

// TestWhoNormalisesIsAskedForEachClass: a plugin that nobody knows may normalise its scores for some pods only.
func TestWhoNormalisesIsAskedForEachClass(t *testing.T) {
	t.Parallel()
	w := newFixture(t, nodeShapes{{count: 4, cpu: "8", memory: "32Gi"}}, nil, crowding{})
	for _, relative := range []bool{false, true, false} {
		g := gangOf("a", 6, 6, "1", labelledAlike, func(_ int, p *corev1.Pod) {
			if relative {
				p.Labels["relative"] = ""
			}
		})
		got := map[string]string{}
		for _, p := range w.plan(t, w.job(g)).Placements {
			got[p.Task.Pod.Name] = p.Node
		}
		want, err := straightforward(t.Context(), w, g.pods)
		if err != nil {
			t.Fatal(err)
		}
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Errorf("with relative scores: %t, the placements differ (-straightforward +plan):\n%s", relative, diff)
		}
	}
}

// TestScoresThatPodsDoNotChange: a small pod does not change the rounded score of its node, several do. What becomes of one node says nothing of those that were like it.
func TestScoresThatPodsDoNotChange(t *testing.T) {
	t.Parallel()
	for _, cpu := range []string{"100m", "300m", "700m", "1"} {
		w := newFixture(t, nodeShapes{{count: 4, cpu: "64", memory: "256Gi"}}, nil)
		g := gangOf("a", 40, 40, cpu, func(i int, p *corev1.Pod) { p.UID = types.UID(fmt.Sprintf("%03d", i)) })
		want, err := straightforward(t.Context(), w, g.pods)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, p := range w.plan(t, w.job(g)).Placements {
			got[p.Task.Pod.Name] = p.Node
		}
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Errorf("pods of %s: the placements differ (-straightforward +plan):\n%s", cpu, diff)
		}
	}
}
