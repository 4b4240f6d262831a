// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/caldera-scheduler/caldera/pkg/simulate/memory"
	"github.com/caldera-scheduler/caldera/pkg/simulate/scenario"
)

// betweenRounds does what kubelets, and controllers if pods are to come back, do between two rounds. The dispatcher sees
// all of it at once.
func (c *cluster) betweenRounds() error {
	for _, p := range c.pods() {
		var err error
		switch {
		case p.DeletionTimestamp != nil:
			err = c.box.API.Remove(memory.Pods, p.Namespace, p.Name)
		case starts(p):
			p = p.DeepCopy()
			scenario.Started(p, metav1.NewTime(c.box.Clock.Now()))
			err = c.box.API.Update(memory.Pods, p, p.Namespace)
		}
		if err != nil {
			return fmt.Errorf("playing the kubelet of pod %s/%s: %w", p.Namespace, p.Name, err)
		}
	}
	if c.options.Recreate {
		if err := c.recreate(); err != nil {
			return err
		}
	}
	return c.box.Deliver()
}

// starts reports whether a pod is on a node and does not run yet.
func starts(p *corev1.Pod) bool { return p.Spec.NodeName != "" && p.Status.Phase == corev1.PodPending }

// idle reports whether kubelets have nothing to do.
func (c *cluster) idle() bool {
	return !slices.ContainsFunc(c.pods(), func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil || starts(p) })
}

// recreate brings back the pods that were evicted and are gone.
func (c *cluster) recreate() error {
	victims := c.box.API.Disruptions(c.recreated)
	for _, victim := range victims {
		p := scenario.Again(victim, metav1.NewTime(c.box.Clock.Now()))
		if err := c.box.API.Create(memory.Pods, p, p.Namespace); err != nil {
			return fmt.Errorf("creating evicted pod %s/%s again: %w", p.Namespace, p.Name, err)
		}
	}
	c.recreated += len(victims)
	return nil
}

// finished reports whether a pod has ended, well or badly.
func finished(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}
