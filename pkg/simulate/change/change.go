// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package change changes the objects of a cluster for a simulation: what would be if a node were drained, a limit were another, a job were gone.
package change

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/simulate/scenario"
	"github.com/caldera-scheduler/caldera/pkg/suggest"
)

// Change is something that is done to the objects of a cluster.
type Change interface {
	// apply does it. An error says what of it cannot be done, and why.
	apply(c *cluster) error
}

// Apply returns the objects after some changes, one after the other. The objects given are left as they are: those that change are copied.
func Apply(objects []scenario.Object, changes ...Change) ([]scenario.Object, error) {
	c := &cluster{objects: slices.Clone(objects), own: map[int]bool{}}
	for _, change := range changes {
		if err := change.apply(c); err != nil {
			return nil, err
		}
	}
	return slices.DeleteFunc(c.objects, func(o scenario.Object) bool { return o == nil }), nil
}

// Steps are the changes that a change consists of, as far as they are made one after the other.
func Steps(objects []scenario.Object, c Change) []Change {
	if s, ok := c.(stepwise); ok {
		return s.steps(objects)
	}
	return []Change{c}
}

// stepwise is a change that is not made at once.
type stepwise interface {
	steps(objects []scenario.Object) []Change
}

// Together are changes that are made at once, as far as each of them is.
type Together []Change

func (t Together) apply(c *cluster) error {
	for _, change := range t {
		if err := change.apply(c); err != nil {
			return err
		}
	}
	return nil
}

// steps are first those that are made at once, and then the others.
func (t Together) steps(objects []scenario.Object) []Change {
	var first Together
	var then []Change
	for _, change := range t {
		if s, ok := change.(stepwise); ok {
			then = append(then, s.steps(objects)...)
		} else {
			first = append(first, change)
		}
	}
	if len(first) == 0 {
		return then
	}
	return append([]Change{first}, then...)
}

// cluster is the objects while they are being changed. Those that are gone are nil.
type cluster struct {
	objects []scenario.Object
	// own are the places of the objects that are copies already.
	own map[int]bool
}

// all yields the objects of a type with their places.
func all[T scenario.Object](c *cluster) func(yield func(int, T) bool) {
	return func(yield func(int, T) bool) {
		for i, o := range c.objects {
			if t, ok := o.(T); ok && !yield(i, t) {
				return
			}
		}
	}
}

// edit returns the object at a place, to be changed.
func edit[T scenario.Object](c *cluster, place int) T {
	if !c.own[place] {
		c.objects[place], c.own[place] = c.objects[place].DeepCopyObject().(scenario.Object), true
	}
	return c.objects[place].(T)
}

// remove takes an object away.
func (c *cluster) remove(place int) { c.objects[place] = nil }

// add adds an object.
func (c *cluster) add(o scenario.Object) {
	c.own[len(c.objects)] = true
	c.objects = append(c.objects, o)
}

// find returns the place of the object with a name. What names the kind in the error that there is none.
func find[T scenario.Object](c *cluster, what string, name types.NamespacedName) (int, error) {
	for i, o := range all[T](c) {
		if o.GetName() == name.Name && o.GetNamespace() == name.Namespace {
			return i, nil
		}
	}
	var names []string
	for _, o := range all[T](c) {
		names = append(names, text(types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}))
	}
	return 0, fmt.Errorf("there is no %s %s%s", what, text(name), meant(text(name), names))
}

// meant asks whether something else was meant; it is empty if nothing is near.
func meant(given string, known []string) string {
	if near, ok := suggest.Nearest(given, known); ok {
		return fmt.Sprintf(": did you mean %s?", near)
	}
	return ""
}

// text is NAMESPACE/NAME, or NAME for what has no namespace.
func text(n types.NamespacedName) string {
	if n.Namespace == "" {
		return n.Name
	}
	return n.String()
}

// named reads NAMESPACE/NAME, or NAME in a namespace.
func named(given, namespace string) types.NamespacedName {
	if ns, name, ok := strings.Cut(given, "/"); ok {
		return types.NamespacedName{Namespace: ns, Name: name}
	}
	return types.NamespacedName{Namespace: namespace, Name: given}
}
