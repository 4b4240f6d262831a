// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestLooksAreRememberedForAFewSetsOfLabels: however many labels pods select by, the memory is bounded, and what other pods go by is kept.
func TestLooksAreRememberedForAFewSetsOfLabels(t *testing.T) {
	const nodes = 3
	p := &Planner{}
	plain := p.looksTo(&corev1.Pod{}, nodes)
	for i := range 100 {
		pod := &corev1.Pod{Spec: corev1.PodSpec{NodeSelector: map[string]string{fmt.Sprint("label-", i): "a"}}}
		own := p.looksTo(pod, nodes)
		if again := p.looksTo(pod, nodes); again != own || own == plain {
			t.Fatalf("the looks to pods that select by label %d are not kept apart", i)
		}
		if len(p.looks) > mostMentioned+1 {
			t.Fatalf("looks are remembered for %d sets of labels, want %d at most", len(p.looks), mostMentioned+1)
		}
	}
	if p.looksTo(&corev1.Pod{}, nodes) != plain {
		t.Error("the looks to pods without selectors are forgotten")
	}
}
