// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// The annotations by which a pod says how nodes are scored for it (Volcano pkg/scheduler/plugins/resource-strategy-fit).
const (
	// ScoringTypeAnnotation is LeastAllocated or MostAllocated.
	ScoringTypeAnnotation = "volcano.sh/resource-strategy-scoring-type"
	// ScoringWeightAnnotation are weights by resource, in JSON.
	ScoringWeightAnnotation = "volcano.sh/resource-strategy-weight"
)

// Scoring is how a pod wants nodes to be scored.
type Scoring struct {
	// Most: nodes that are used much are better, else those that are used little.
	Most bool
	// Weights are how much resources count; at least 1. Resources without one do not count.
	Weights map[string]int64
}

// ScoringOf reads how a pod wants nodes to be scored; nil when it does not say. An error says what is wrong with the
// annotations and what to write instead.
func ScoringOf(pod *corev1.Pod) (*Scoring, error) {
	given := pod.Annotations[ScoringTypeAnnotation]
	if given == "" {
		return nil, nil
	}
	if given != "MostAllocated" && given != "LeastAllocated" {
		return nil, fmt.Errorf("annotation %s is %q: use LeastAllocated or MostAllocated", ScoringTypeAnnotation, given)
	}
	s := &Scoring{Most: given == "MostAllocated"}
	text := pod.Annotations[ScoringWeightAnnotation]
	if err := json.Unmarshal([]byte(text), &s.Weights); err != nil {
		return nil, fmt.Errorf(`annotation %s is %q: use whole numbers by resource, such as {"cpu": 2, "memory": 1}`, ScoringWeightAnnotation, text)
	}
	for name, weight := range s.Weights {
		if weight < 1 {
			return nil, fmt.Errorf("annotation %s gives %s the weight %d: use 1 or more", ScoringWeightAnnotation, name, weight)
		}
	}
	return s, nil
}
