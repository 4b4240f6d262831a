// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/simulate/scenario"
)

// Drain does to a node what "kubectl drain --ignore-daemonsets --force" does. Nothing new is placed there, and its pods are evicted. Controllers create
// others in their place, at a time. A pod without a controller is gone. Budgets are taken to allow all of it in the end.
type Drain struct {
	Node string
	Now  metav1.Time
}

// apply does all of it at once.
func (d Drain) apply(c *cluster) error {
	for _, step := range d.steps(c.objects) {
		if err := step.apply(c); err != nil {
			return err
		}
	}
	return nil
}

// steps are what happens one after the other: controllers create other pods as soon as pods are to leave, and then these leave at times of their own.
func (d Drain) steps(objects []scenario.Object) []Change {
	steps := []Change{vacate(d)}
	for _, o := range objects {
		if p, ok := o.(*corev1.Pod); ok && d.evicts(p) {
			steps = append(steps, Gone{nameOf(p)})
		}
	}
	return steps
}

// evicts reports whether a pod is evicted.
func (d Drain) evicts(p *corev1.Pod) bool {
	if p.Spec.NodeName != d.Node || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		return false
	}
	owner := metav1.GetControllerOf(p)
	return owner == nil || owner.Kind != "DaemonSet" && owner.Kind != "Node"
}

// vacate closes a node, and has its pods created once more.
type vacate Drain

func (v vacate) apply(c *cluster) error {
	place, err := find[*corev1.Node](c, "node", types.NamespacedName{Name: v.Node})
	if err != nil {
		return err
	}
	edit[*corev1.Node](c, place).Spec.Unschedulable = true
	var again []*corev1.Pod
	for _, p := range all[*corev1.Pod](c) {
		if Drain(v).evicts(p) && p.DeletionTimestamp == nil && metav1.GetControllerOf(p) != nil {
			twin := scenario.Again(p, v.Now)
			twin.Name += "-again"
			again = append(again, twin)
		}
	}
	for _, p := range again {
		c.add(p)
	}
	return nil
}

// Gone is the end of some pods. Those that are not there have ended before.
type Gone []types.NamespacedName

func (g Gone) apply(c *cluster) error {
	left := len(g)
	for i, p := range all[*corev1.Pod](c) {
		if slices.Contains(g, nameOf(p)) {
			c.remove(i)
			left--
		}
	}
	if left < 0 {
		return fmt.Errorf("%d pods have names that others have", -left)
	}
	return nil
}

func nameOf(p *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: p.Namespace, Name: p.Name}
}

// Ends is the end of a job: its pods on nodes are gone, as if they had finished.
type Ends struct {
	// Job is its name, for errors.
	Job string
	// Of reports whether a pod is one of it.
	Of func(*corev1.Pod) bool
}

func (e Ends) apply(c *cluster) error {
	found := false
	for i, p := range all[*corev1.Pod](c) {
		if p.Spec.NodeName != "" && e.Of(p) {
			c.remove(i)
			found = true
		}
	}
	if !found {
		return fmt.Errorf("job %s has no pod on a node that could end", e.Job)
	}
	return nil
}

// mostSteps is in how many steps many things happen at most.
const mostSteps = 8

// inSteps are things of which some happen at a time.
func inSteps[T any](things []T, step func([]T) Change) []Change {
	var steps []Change
	for some := range slices.Chunk(things, max(1, (len(things)+mostSteps-1)/mostSteps)) {
		steps = append(steps, step(some))
	}
	return steps
}

// steps are the ends of its pods, some at a time: they do not end at once.
func (e Ends) steps(objects []scenario.Object) []Change {
	var names []types.NamespacedName
	for _, o := range objects {
		if p, ok := o.(*corev1.Pod); ok && p.Spec.NodeName != "" && e.Of(p) {
			names = append(names, nameOf(p))
		}
	}
	return inSteps(names, func(some []types.NamespacedName) Change { return Gone(some) })
}

// Join has nodes join the cluster, some at a time.
type Join []scenario.Object

func (j Join) apply(c *cluster) error { return Add{j}.apply(c) }

func (j Join) steps([]scenario.Object) []Change {
	return inSteps(j, func(some []scenario.Object) Change { return Add{some} })
}

// Add adds objects. They are complete.
type Add struct {
	Objects []scenario.Object
}

func (a Add) apply(c *cluster) error {
	type identity struct {
		kind string
		name types.NamespacedName
	}
	names, there := map[string]bool{}, map[identity]bool{}
	of := func(o scenario.Object) identity {
		return identity{fmt.Sprintf("%T", o), types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}}
	}
	for _, o := range a.Objects {
		names[o.GetName()] = true
	}
	for _, o := range c.objects {
		// Few are added to many.
		if o != nil && names[o.GetName()] {
			there[of(o)] = true
		}
	}
	for _, o := range a.Objects {
		if there[of(o)] {
			return fmt.Errorf("%s %s is there already: rename it", scenario.KindOf(o).Kind, text(of(o).name))
		}
		there[of(o)] = true
		c.add(o)
	}
	return nil
}

// Uncordon has a node take new pods again.
type Uncordon struct{ Node string }

func (u Uncordon) apply(c *cluster) error {
	place, err := find[*corev1.Node](c, "node", types.NamespacedName{Name: u.Node})
	if err != nil {
		return err
	}
	n := edit[*corev1.Node](c, place)
	n.Spec.Unschedulable = false
	n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeUnschedulable })
	return nil
}

// Untaint takes a taint off a node.
type Untaint struct {
	Node  string
	Taint corev1.Taint
}

func (u Untaint) apply(c *cluster) error {
	place, err := find[*corev1.Node](c, "node", types.NamespacedName{Name: u.Node})
	if err != nil {
		return err
	}
	n := edit[*corev1.Node](c, place)
	n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(t corev1.Taint) bool {
		return t.Key == u.Taint.Key && t.Value == u.Taint.Value && t.Effect == u.Taint.Effect
	})
	return nil
}
