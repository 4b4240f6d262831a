// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/simulate/memory"
	"github.com/caldera-scheduler/caldera/pkg/simulate/sandbox"
	"github.com/caldera-scheduler/caldera/pkg/simulate/scenario"
)

// cluster is a scheduler in memory, and what happened in it.
type cluster struct {
	box     *sandbox.Sandbox
	options Options

	initial Figures
	// boundIn is the round in which each pod was bound.
	boundIn map[types.UID]int
	// disrupted is how many disruptions happened by the end of the last round.
	disrupted int
	// recreated is how many of the disrupted pods have come back, if they are to.
	recreated int
}

// newCluster builds everything and starts nothing.
func newCluster(ctx context.Context, objects []scenario.Object, o Options) (*cluster, error) {
	box, err := sandbox.New(ctx, objects, sandbox.Options{Config: o.Config, Extensions: o.Extensions, Now: o.Now, Patience: o.Patience})
	if err != nil {
		return nil, fmt.Errorf("simulating: %w", err)
	}
	return &cluster{box: box, options: o, boundIn: map[types.UID]int{}}, nil
}

// start begins to watch, takes the figures of the start, and lets the scheduler run.
func (c *cluster) start() error {
	if err := c.box.Start(); err != nil {
		return err
	}
	c.initial = figuresOf(c.box.Core)
	c.box.Run()
	return nil
}

// pods returns all pods, by namespace and name.
func (c *cluster) pods() ([]*corev1.Pod, error) {
	list, err := c.box.API.List(memory.Pods, corev1.SchemeGroupVersion.WithKind("Pod"), "")
	if err != nil {
		return nil, fmt.Errorf("listing pods: %w", err)
	}
	items := list.(*corev1.PodList).Items
	pods := make([]*corev1.Pod, len(items))
	for i := range items {
		pods[i] = &items[i]
	}
	return pods, nil
}

// nodes returns the names of all nodes, sorted.
func (c *cluster) nodes() ([]string, error) {
	list, err := c.box.API.List(corev1.SchemeGroupVersion.WithResource("nodes"), corev1.SchemeGroupVersion.WithKind("Node"), "")
	if err != nil {
		return nil, fmt.Errorf("listing nodes: %w", err)
	}
	names := []string{}
	for i := range list.(*corev1.NodeList).Items {
		names = append(names, list.(*corev1.NodeList).Items[i].Name)
	}
	return names, nil
}
