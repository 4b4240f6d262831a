// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Annotations on PodGroups and queues.
const (
	waitingTimeAnnotation       = "volcano.sh/sla-waiting-time"
	legacyWaitingTimeAnnotation = "sla-waiting-time"
	hierarchyAnnotation         = "volcano.sh/hierarchy"
	hierarchyWeightsAnnotation  = "volcano.sh/hierarchy-weights"
)

// waitingTime reads how long a job is to wait at most, and what is wrong with the annotation that should say it.
func waitingTime(annotations map[string]string) (limit time.Duration, problem string) {
	key := waitingTimeAnnotation
	said, ok := annotations[key]
	if !ok {
		key = legacyWaitingTimeAnnotation
		if said, ok = annotations[key]; !ok {
			return 0, ""
		}
	}
	limit, err := time.ParseDuration(said)
	if err != nil || limit <= 0 {
		return 0, fmt.Sprintf("annotation %s is %q: write a duration above zero, such as 30m; it is not used until then", key, said)
	}
	return limit, ""
}

// hierarchy reads a queue's path and weights for hierarchical DRF. Weights that are missing, no numbers or below 1 are
// 1, as in Volcano; what is wrong with the annotations is returned, and a path that does not match its weights is not
// used at all: Volcano's scheduler crashes on it.
func hierarchy(annotations map[string]string) (path []string, weights []float64, problem string) {
	said, ok := annotations[hierarchyAnnotation]
	if !ok || said == "" {
		return nil, nil, ""
	}
	path = strings.Split(said, "/")
	parts := strings.Split(annotations[hierarchyWeightsAnnotation], "/")
	if len(parts) != len(path) {
		return nil, nil, fmt.Sprintf("annotation %s is %q, which has not as many levels as %s, %q: give each level a weight; neither is used until then",
			hierarchyWeightsAnnotation, annotations[hierarchyWeightsAnnotation], hierarchyAnnotation, said)
	}
	for i, name := range path {
		if name == "" {
			return nil, nil, fmt.Sprintf("annotation %s is %q: level %d has no name; it is not used until then", hierarchyAnnotation, said, i+1)
		}
		weight, err := strconv.ParseFloat(parts[i], 64)
		if err != nil || !(weight >= 1) {
			problem = fmt.Sprintf("annotation %s is %q: the weight of level %d must be a number of at least 1; 1 is used until then",
				hierarchyWeightsAnnotation, annotations[hierarchyWeightsAnnotation], i+1)
			weight = 1
		}
		weights = append(weights, weight)
	}
	return path, weights, problem
}
