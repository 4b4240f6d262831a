// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/caldera-scheduler/caldera/pkg/model"
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

// readTerms reads how long a gang may be broken, and how long its pods run, and adds what is wrong with the annotations that say it to the group's problems. What
// cannot be used is as if it were not said.
func readTerms(group *model.Group, whose string, annotations map[string]string) {
	complain := func(annotation, advice, argument string) {
		group.Problem = model.Problems(group.Problem, fmt.Sprintf("annotation %s of %s is %.100q: %s; the scheduler's %s holds until then",
			annotation, whose, annotations[annotation], advice, argument))
	}
	lasting := func(annotation, argument string) (t model.Said[time.Duration]) {
		if said, ok := annotations[annotation]; ok {
			limit, err := time.ParseDuration(said)
			if err == nil && (limit == 0 || limit >= time.Second) {
				return model.Say(limit)
			}
			complain(annotation, "write a duration of at least 1s, such as 90s or 10m, or 0s, which is for ever", argument)
		}
		return t
	}
	if said, ok := annotations[model.ExpectedRuntimeAnnotation]; ok {
		var err error
		if group.ExpectedRuntime, err = model.ParseRuntime(said); err != nil {
			group.Problem = model.Problems(group.Problem, err.Error())
		}
	}
	if said, ok := annotations[model.PreemptionDelayAnnotation]; ok {
		var err error
		if group.PreemptionDelay, err = model.ParseDelay(said); err != nil {
			group.Problem = model.Problems(group.Problem, err.Error())
		}
	}
	t := &group.Terms
	t.HalfTimeout = lasting(model.HalfTimeoutAnnotation, "halfTimeout")
	t.BrokenTimeout = lasting(model.BrokenTimeoutAnnotation, "brokenTimeout")
	switch said, ok := annotations[model.ReleaseLostAnnotation]; {
	case !ok:
	case said != "true" && said != "false":
		complain(model.ReleaseLostAnnotation, "write true or false", "releaseLost")
	case said == "true" && t.BrokenTimeout == model.Say[time.Duration](0):
		complain(model.ReleaseLostAnnotation, "nothing is released while "+model.BrokenTimeoutAnnotation+" is 0s, which is for ever: change or remove one of them", "releaseLost")
	default:
		t.ReleaseLost = model.Say(said == "true")
	}
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
