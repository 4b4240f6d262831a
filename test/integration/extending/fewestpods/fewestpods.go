// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fewestpods is an example of a plugin from outside: pods go to the node with the fewest pods.
package fewestpods

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

// Name is the plugin's name in a KubeSchedulerConfiguration.
const Name = "FewestPods"

// args are the arguments of the plugin.
type args struct {
	// Slots is how many pods make a node score 0; at least 1, default 110.
	Slots int64 `json:"slots"`
}

// FewestPods scores nodes by how few pods they have.
type FewestPods struct {
	slots int64
}

var (
	_ fwk.ScorePlugin = &FewestPods{}
	_ fwk.SignPlugin  = &FewestPods{}
)

// New is the factory of the plugin.
func New(_ context.Context, obj runtime.Object, _ fwk.Handle) (fwk.Plugin, error) {
	a := args{Slots: 110}
	if err := frameworkruntime.DecodeInto(obj, &a); err != nil {
		return nil, fmt.Errorf("reading the arguments of %s: %w", Name, err)
	}
	if a.Slots < 1 {
		return nil, fmt.Errorf("slots of %s is %d: it must be at least 1", Name, a.Slots)
	}
	return &FewestPods{slots: a.Slots}, nil
}

// Name returns the plugin's name.
func (pl *FewestPods) Name() string { return Name }

// Score is 100 for an empty node, and 0 for one that has as many pods as there are slots. Members of a gang that are planned on
// the node are among its pods.
func (pl *FewestPods) Score(_ context.Context, _ fwk.CycleState, _ *corev1.Pod, node fwk.NodeInfo) (int64, *fwk.Status) {
	return max(0, fwk.MaxScore*(pl.slots-int64(len(node.GetPods())))/pl.slots), nil
}

// ScoreExtensions returns nil: the scores are 0 to 100 as they are.
func (pl *FewestPods) ScoreExtensions() fwk.ScoreExtensions { return nil }

// SignPod says that all pods are alike as far as this plugin goes.
func (pl *FewestPods) SignPod(context.Context, *corev1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	return nil, nil
}
