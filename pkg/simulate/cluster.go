// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/simulate/change"
	"github.com/caldera-scheduler/caldera/pkg/simulate/memory"
	"github.com/caldera-scheduler/caldera/pkg/simulate/sandbox"
	"github.com/caldera-scheduler/caldera/pkg/simulate/scenario"
)

// cluster is a scheduler in memory, and what happened in it.
type cluster struct {
	box     *sandbox.Sandbox
	options Options
	// silent: status is not written. Nothing is decided by it while a scheduler lives.
	silent bool

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

// pods returns all pods, by namespace and name. They are not to be changed.
func (c *cluster) pods() []*corev1.Pod {
	objects := c.box.API.Objects(memory.Pods)
	pods := make([]*corev1.Pod, len(objects))
	for i, o := range objects {
		pods[i] = o.(*corev1.Pod)
	}
	return pods
}

// nodes returns the names of all nodes, sorted.
func (c *cluster) nodes() []string {
	names := []string{}
	for _, o := range c.box.API.Objects(corev1.SchemeGroupVersion.WithResource("nodes")) {
		names = append(names, o.(*corev1.Node).Name)
	}
	return names
}

// objects are all objects. They are not to be changed.
func (c *cluster) objects() []scenario.Object {
	kinds := scenario.Kinds()
	objects := make([][]scenario.Object, len(kinds))
	for i, kind := range kinds {
		objects[i] = c.box.API.Objects(scenario.ResourceOf(kind))
	}
	return slices.Concat(objects...)
}

// change makes the next step of the changes that are left, and returns those that are left then.
func (c *cluster) change(left []change.Change) ([]change.Change, error) {
	before := c.objects()
	left = append(change.Steps(before, left[0]), left[1:]...)
	if len(left) == 0 {
		// It was a change of nothing.
		return nil, nil
	}
	after, err := change.Apply(before, left[0])
	if err != nil {
		return nil, err
	}
	if err := c.box.API.Alter(before, after); err != nil {
		return nil, err
	}
	return left[1:], c.box.Deliver()
}
