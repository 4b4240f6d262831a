// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelets

import (
	_ "embed"
	"fmt"

	nodefast "sigs.k8s.io/kwok/kustomize/stage/node/fast"
	podfast "sigs.k8s.io/kwok/kustomize/stage/pod/fast"
	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	"sigs.k8s.io/kwok/pkg/config"
	"sigs.k8s.io/kwok/pkg/config/resources"
	"sigs.k8s.io/kwok/pkg/utils/lifecycle"
)

// Annotations with which a test drives the simulated kubelet. The stages name them too.
const (
	// RunFor is how long a pod runs before it succeeds, as a Go duration.
	RunFor = "localcluster.caldera.dev/run-for"
	// Fail makes the pod end Failed instead of Succeeded when it is "true".
	Fail = "localcluster.caldera.dev/fail"
	// TerminateAfter is how long a deleted pod takes to stop, as a Go duration.
	TerminateAfter = "localcluster.caldera.dev/terminate-after"
)

var (
	//go:embed stages/pod-complete.yaml
	podComplete string
	//go:embed stages/pod-delete.yaml
	podDelete string
)

// podStages is the life of a bound pod: ready at once (KWOK's stage), complete, delete (ours, for the annotations).
func podStages() (resources.Getter[lifecycle.Lifecycle], error) {
	return compile(podfast.DefaultPodReady, podComplete, podDelete)
}

// nodeStages makes nodes that others create Ready, once. KWOK's own selector would also turn a node that a test made
// NotReady back to Ready at once, so ours asks whether the condition exists.
func nodeStages() (resources.Getter[lifecycle.Lifecycle], error) {
	stage, err := parse(nodefast.DefaultNodeInit)
	if err != nil {
		return nil, err
	}
	stage.Spec.Selector = &internalversion.StageSelector{
		MatchExpressions: []internalversion.MatchExpression{{JQ: &internalversion.SelectorJQ{
			Key:      `.status.conditions.[] | select( .type == "Ready" ) | .status`,
			Operator: internalversion.SelectorOpDoesNotExist,
		}}},
	}
	return static(stage)
}

func compile(manifests ...string) (resources.Getter[lifecycle.Lifecycle], error) {
	stages := make([]*internalversion.Stage, 0, len(manifests))
	for _, manifest := range manifests {
		stage, err := parse(manifest)
		if err != nil {
			return nil, err
		}
		stages = append(stages, stage)
	}
	return static(stages...)
}

func parse(manifest string) (*internalversion.Stage, error) {
	stage, err := config.UnmarshalWithType[*internalversion.Stage](manifest)
	if err != nil {
		return nil, fmt.Errorf("parsing stage: %w", err)
	}
	return stage, nil
}

func static(stages ...*internalversion.Stage) (resources.Getter[lifecycle.Lifecycle], error) {
	compiled, err := lifecycle.NewLifecycle(stages)
	if err != nil {
		return nil, fmt.Errorf("compiling stages: %w", err)
	}
	return resources.NewStaticGetter(compiled), nil
}
