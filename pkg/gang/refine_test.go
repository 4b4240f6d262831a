// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang_test

import (
	"context"
	"math"
	"testing"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/caldera-scheduler/caldera/pkg/gang"
)

// precise is a plugin whose scores are fractions. Where now has one for a node, that is what it says of it before rounding.
type precise struct {
	name   string
	scores map[string]float64
	now    map[string]float64
}

func (pl *precise) Name() string { return pl.name }

func (pl *precise) PreScore(_ context.Context, state fwk.CycleState, _ *corev1.Pod, _ []fwk.NodeInfo) *fwk.Status {
	gang.Refine(state, pl.name, func(node fwk.NodeInfo) float64 {
		if now, moved := pl.now[node.Node().Name]; moved {
			return now
		}
		return pl.scores[node.Node().Name]
	})
	return nil
}

func (pl *precise) Score(_ context.Context, _ fwk.CycleState, _ *corev1.Pod, info fwk.NodeInfo) (int64, *fwk.Status) {
	return int64(math.Round(pl.scores[info.Node().Name])), nil
}

func (pl *precise) ScoreExtensions() fwk.ScoreExtensions { return nil }

// TestPlansGoBySumsBeforeRounding: a pod goes to the node with the greatest sum of the scores that plugins have before these are rounded.
func TestPlansGoBySumsBeforeRounding(t *testing.T) {
	of := func(scores ...float64) map[string]float64 {
		byNode := map[string]float64{}
		for i, s := range scores {
			byNode[[]string{"node-0", "node-1", "node-2"}[i]] = s
		}
		return byNode
	}
	for name, c := range map[string]struct {
		one, other, now map[string]float64
		want            string
	}{
		"rounded they tie":                         {of(50.1, 50.2, 50.3), nil, nil, "node-2"},
		"the first of two nodes":                   {of(50.2, 50.1), nil, nil, "node-0"},
		"the second of two nodes":                  {of(50.1, 50.2), nil, nil, "node-1"},
		"rounded the sum of another is greater":    {of(50.49, 50.51, 0), of(50.49, 50.3, 0), nil, "node-0"},
		"a whole point counts more than fractions": {of(50.4, 51.4, 50.49), of(50.4, 50, 50.49), nil, "node-1"},
		// The load of a node has changed between the two questions.
		"what moves meanwhile counts little": {of(50, 52, 50), nil, of(100, 52, 100), "node-1"},
	} {
		t.Run(name, func(t *testing.T) {
			plugins := []fwk.Plugin{&precise{name: "One", scores: c.one, now: c.now}, &precise{name: "Other", scores: c.other}}
			w := newFixture(t, nodeShapes{{count: len(c.one), cpu: "8", memory: "32Gi"}}, nil, plugins...)
			placements := w.plan(t, w.job(gangOf("a", 1, 1, "1"))).Placements
			if len(placements) != 1 || placements[0].Node != c.want {
				t.Errorf("it is placed by %+v, want on %s", placements, c.want)
			}
		})
	}
}
