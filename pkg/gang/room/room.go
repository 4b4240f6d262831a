// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package room counts how many places the nodes have for each shape of task that waits. It tells which of the jobs that wait a change
// of a node can help at all, so that one pod that ends does not have all of them planned again.
//
// A count is an upper bound of what a plan finds. For shape s it is
//
//	places(s) = sum over nodes of min over resources floor(idle / request)
//
// over the nodes that s admits by its node selector, required node affinity and tolerations, less those that a plan's filters refused
// though the sums allow them (vetoes). It never leaves out what a plan would place, as long as the profile has the filters that are
// counted on (see Checks).
package room

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// mostPlaces is the greatest number of places that one node counts for: a shape that asks for nothing has no end of them.
const mostPlaces = 1 << 20

// Index counts places. It is not safe for concurrent use.
type Index struct {
	// checks says which filters a profile has, by scheduler name. Known are its answers.
	checks func(scheduler string) Checks
	known  map[string]Checks
	shapes map[model.Class]*Shape
	// slots are the nodes, numbers where to find each; free are the numbers of nodes that are gone.
	slots   []model.Room
	numbers map[string]int
	free    []int
	// gained are the shapes for which there was room since Gained was last called, and whether they gained places.
	gained map[*Shape]bool
}

// Shape is what a task asks of a node. It counts the places that the nodes have for such tasks.
type Shape struct {
	key     model.Class
	request resource.Vector
	admission
	// uses counts those who wait for it; listens: any news of room count for one of them.
	uses    int
	listens bool
	// admits are the nodes that take it, vetoed those of them that filters refuse all the same.
	admits, vetoed bitset
	places         int
}

// New returns an index without nodes.
func New(checks func(scheduler string) Checks) *Index {
	return &Index{checks: checks, known: map[string]Checks{}, shapes: map[model.Class]*Shape{}, numbers: map[string]int{}, gained: map[*Shape]bool{}}
}

// Len is the number of shapes that are counted. Without any, nodes need not be told.
func (x *Index) Len() int { return len(x.shapes) }

// Reset has the index take in all nodes, and forget those it had. Vetoes fall.
func (x *Index) Reset(rooms map[string]model.Room) {
	x.slots, x.free = x.slots[:0], x.free[:0]
	clear(x.numbers)
	for _, name := range slices.Sorted(maps.Keys(rooms)) {
		x.numbers[name] = len(x.slots)
		x.slots = append(x.slots, rooms[name])
	}
	for _, s := range x.shapes {
		x.count(s)
	}
}

// Follow counts a shape from now on, and must be taken back by Unfollow. The pod is any of the shape.
func (x *Index) Follow(shape model.Class, pod *corev1.Pod, request resource.Vector) *Shape {
	s := x.shapes[shape]
	if s == nil {
		s = &Shape{key: shape, request: request, admission: newAdmission(pod, x.checksOf(pod.Spec.SchedulerName))}
		x.shapes[shape] = s
		x.count(s)
	}
	s.uses++
	return s
}

func (x *Index) checksOf(scheduler string) Checks {
	c, ok := x.known[scheduler]
	if !ok {
		c = x.checks(scheduler)
		x.known[scheduler] = c
	}
	return c
}

// Unfollow ends a Follow.
func (x *Index) Unfollow(s *Shape) {
	if s.uses--; s.uses == 0 {
		delete(x.shapes, s.key)
		delete(x.gained, s)
	}
}

// Places is how many tasks of the shape the nodes have room for at most.
func (s *Shape) Places() int { return s.places }

// Set records the room of a node; a zero Room has it forgotten. What was vetoed there may be looked at again. Made: there were news of room on it, be it
// that it has no more than when it was last set.
func (x *Index) Set(name string, room model.Room, made bool) {
	i, known := x.numbers[name]
	switch {
	case !known && room.Node == nil:
		return
	case !known:
		i = x.newSlot(name)
	}
	before := x.slots[i]
	x.slots[i] = room
	if room.Node == nil {
		delete(x.numbers, name)
		x.free = append(x.free, i)
	}
	changed := admissionChanged(before.Node, room.Node)
	for _, s := range x.shapes {
		x.adjust(s, i, before, changed, made)
	}
}

// newSlot returns the number of a new node.
func (x *Index) newSlot(name string) int {
	i := len(x.slots)
	if last := len(x.free) - 1; last >= 0 {
		i, x.free = x.free[last], x.free[:last]
	} else {
		x.slots = append(x.slots, model.Room{})
	}
	x.numbers[name] = i
	return i
}

// adjust brings the count of a shape up to date with what became of a node.
func (x *Index) adjust(s *Shape, i int, before model.Room, changed, made bool) {
	was := 0
	if s.admits.has(i) && !s.vetoed.has(i) {
		was = s.on(before)
	}
	s.vetoed.clear(i)
	if changed {
		s.admits.set(i, x.slots[i].Node != nil && s.admit(x.slots[i].Node))
	}
	if !s.admits.has(i) {
		s.places -= was
		return
	}
	is := s.on(x.slots[i])
	s.places += is - was
	if is > was || made && is > 0 && s.listens {
		x.gained[s] = x.gained[s] || is > was
	}
}

// count counts the places of a shape on all nodes.
func (x *Index) count(s *Shape) {
	s.admits, s.vetoed, s.places = newBitset(len(x.slots)), bitset{}, 0
	for i, room := range x.slots {
		if room.Node != nil && s.admit(room.Node) {
			s.admits.set(i, true)
			s.places += s.on(room)
		}
	}
}

// on is how many tasks of the shape the idle resources of a node hold.
func (s *Shape) on(room model.Room) int {
	if !s.checks.Resources {
		return mostPlaces
	}
	places := int64(mostPlaces)
	for _, a := range s.request {
		if a.Value <= 0 {
			continue
		}
		if left, known := idle(room.Idle, a.Name); known {
			places = min(places, max(0, left)/a.Value)
		}
	}
	return int(places)
}

// idle returns what is left of a resource, and whether that is known. A device that the node does not list may come from a claim.
func idle(v resource.Vector, name corev1.ResourceName) (left int64, known bool) {
	for i := range v {
		if v[i].Name == name {
			return v[i].Value, true
		}
	}
	switch name {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, corev1.ResourcePods:
		return 0, true
	}
	return 0, false
}

// Veto records that filters refuse a shape on nodes which the sums allow. It falls when the node changes.
func (x *Index) Veto(s *Shape, nodes []string) {
	for _, name := range nodes {
		i, known := x.numbers[name]
		if !known || !s.admits.has(i) || s.vetoed.has(i) {
			continue
		}
		s.places -= s.on(x.slots[i])
		s.vetoed.set(i, true)
	}
}

// Reconsider has all vetoes fall.
func (x *Index) Reconsider() {
	for _, s := range x.shapes {
		before := s.places
		for i := range s.vetoed.all {
			s.places += s.on(x.slots[i])
		}
		s.vetoed = bitset{}
		if s.places > before {
			x.gained[s] = true
		}
	}
}

// Listen has the shape yielded once there are news of room on a node that has places for it, be it no more than before.
func (s *Shape) Listen() { s.listens = true }

// Gained yields each shape that gained places since the last call, with true, and each that was to listen, with false if it gained none.
func (x *Index) Gained(yield func(s *Shape, more bool) bool) {
	for s, more := range x.gained {
		delete(x.gained, s)
		s.listens = false
		if !yield(s, more) {
			return
		}
	}
}

// Key is what names the shape.
func (s *Shape) Key() model.Class { return s.key }

// Admits reports whether a node takes the shape, whatever room it has.
func (x *Index) Admits(s *Shape, node string) bool {
	i, known := x.numbers[node]
	return known && s.admits.has(i)
}
