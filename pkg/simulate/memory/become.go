// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	native "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	coscheduling "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/pkg/simulate/scenario"
)

// Series brings an API from one set of objects to another, again and again. Nobody else may write meanwhile. What is the same as the time before costs
// little: with thousands of objects of which some are others, that is most of them.
type Series struct {
	api *API
	// number is that of the current set, from 1.
	number int
	// given are the objects of the last set, and stored the same by where they are.
	given  map[scenario.Object]*given
	stored map[place]*given
}

// place is where an object is stored.
type place struct {
	in   *resource
	name types.NamespacedName
}

// given is an object that was given.
type given struct {
	object scenario.Object
	at     place
	waits  bool
	// version is the resource version with which it was stored.
	version string
	// wanted is the last set in which it was, looked the last one for which it was looked at how it is stored.
	wanted, looked int
}

// NewSeries returns the series that begins with what the API holds. An API has one at a time.
func NewSeries(a *API) *Series {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.touched = map[place]bool{}
	for _, r := range a.resources {
		for name := range r.objects {
			a.touched[place{r, name}] = true
		}
	}
	return &Series{api: a, given: map[scenario.Object]*given{}, stored: map[place]*given{}}
}

// Become has the API hold these objects, and no others. What is as it was put there before is left alone, unless it waits. What waits is gone, and there
// is another one of its name, of which nobody remembers anything. So it is with pods and PodGroups of which somebody else has written something. The
// function has clients told of all that is gone before anything is new.
func (s *Series) Become(objects []scenario.Object, gone func() error) error {
	set, err := s.next(objects)
	if err != nil {
		return err
	}
	places := s.toLookAt(set)
	if s.clear(places) {
		if err := gone(); err != nil {
			return err
		}
	}
	return s.fill(set, places)
}

// next is the next set, in the order of the objects.
func (s *Series) next(objects []scenario.Object) ([]*given, error) {
	s.number++
	set := make([]*given, len(objects))
	var fresh []*given
	var others []scenario.Object
	for i, o := range objects {
		g := s.given[o]
		if g == nil {
			g = &given{object: o, waits: waits(o)}
			fresh, others = append(fresh, g), append(others, o)
		}
		g.wanted, set[i] = s.number, g
	}
	places, err := s.api.placesOf(others)
	if err != nil {
		return nil, err
	}
	for i, g := range fresh {
		g.at, s.given[g.object] = places[i], g
	}
	return set, nil
}

// toLookAt are the places where something may have to be done, with what is wanted there; nil for nothing. Elsewhere is what was put there before, and is
// wanted still.
func (s *Series) toLookAt(set []*given) map[place]*given {
	places := map[place]*given{}
	s.api.mu.Lock()
	for at := range s.api.touched {
		places[at] = nil
	}
	s.api.mu.Unlock()
	for o, g := range s.given {
		if g.wanted != s.number {
			delete(s.given, o)
			places[g.at] = nil
		}
	}
	for at := range places {
		if g := s.stored[at]; g != nil && g.wanted == s.number {
			places[at] = g
		}
	}
	for _, g := range set {
		if g.waits || s.isNew(g) {
			places[g.at] = g
		}
	}
	for _, g := range places {
		if g != nil {
			g.looked = s.number
		}
	}
	return places
}

// isNew reports whether an object was not in the set before.
func (s *Series) isNew(g *given) bool { return g.version == "" }

// clear takes away what is not wanted, or not in this form. It reports whether anything was.
func (s *Series) clear(places map[place]*given) (cleared bool) {
	a := s.api
	a.mu.Lock()
	defer a.mu.Unlock()
	for at, want := range places {
		o := at.in.objects[at.name]
		if o == nil {
			continue
		}
		if want == nil || want.waits || makesJobs(o) && !s.as(want, o) {
			a.write(at.in.kind, o, nil)
			cleared = true
		}
	}
	return cleared
}

// waits reports whether a pod waits for a node, or a PodGroup for its pods to get some: the scheduler has tried to place them since.
func waits(o object) bool {
	switch o := o.(type) {
	case *corev1.Pod:
		return o.Spec.NodeName == ""
	case *volcano.PodGroup:
		return o.Status.Phase == "" || o.Status.Phase == volcano.PodGroupPending || o.Status.Phase == volcano.PodGroupInqueue
	}
	return false
}

// makesJobs reports whether the scheduler remembers things of an object that nobody can take back.
func makesJobs(o object) bool {
	switch o.(type) {
	case *corev1.Pod, *volcano.PodGroup, *coscheduling.PodGroup, *native.PodGroup:
		return true
	}
	return false
}

// as reports whether an object is stored as it was given.
func (s *Series) as(g *given, stored object) bool {
	return stored == object(g.object) || s.stored[g.at] == g && g.version == stored.GetResourceVersion()
}

// fill puts there what is not there, or not in this form.
func (s *Series) fill(set []*given, places map[place]*given) error {
	a := s.api
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, g := range set {
		if g.looked != s.number {
			continue
		}
		stored, there := g.at.in.objects[g.at.name]
		if !there || !s.as(g, stored) {
			if err := a.store(g.at, g.object, s.stored[g.at] != nil); err != nil {
				return err
			}
			stored = g.at.in.objects[g.at.name]
		}
		g.version, s.stored[g.at] = stored.GetResourceVersion(), g
	}
	for at, g := range places {
		if g == nil {
			delete(s.stored, at)
		}
	}
	clear(a.touched)
	return nil
}

// Alter makes of objects, as they are stored, others: what is in both lists stays, what is not in the second is gone, what is new of a name takes the
// place of what had it.
func (a *API) Alter(before, after []scenario.Object) error {
	before, after = apart(before, after)
	gone, err := a.placesOf(without(before, after))
	if err != nil {
		return err
	}
	fresh := without(after, before)
	places, err := a.placesOf(fresh)
	if err != nil {
		return err
	}
	taken := sets.New(places...)
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, at := range gone {
		if stored := at.in.objects[at.name]; stored != nil && !taken.Has(at) {
			a.write(at.in.kind, stored, nil)
		}
	}
	for i, o := range fresh {
		if err := a.store(places[i], o, false); err != nil {
			return err
		}
	}
	return nil
}

// apart leaves out with what two lists begin and end alike. Most changes are of few objects that lie together.
func apart(x, y []scenario.Object) (left, right []scenario.Object) {
	for len(x) > 0 && len(y) > 0 && x[0] == y[0] {
		x, y = x[1:], y[1:]
	}
	for len(x) > 0 && len(y) > 0 && x[len(x)-1] == y[len(y)-1] {
		x, y = x[:len(x)-1], y[:len(y)-1]
	}
	return x, y
}

// without are the objects that are not among others.
func without(objects, others []scenario.Object) []scenario.Object {
	among := sets.New(others...)
	return slices.DeleteFunc(slices.Clone(objects), among.Has)
}

// store puts a copy of an object in a place, whatever is there. Another one takes the UID of what is there, or gets a new one. It is called with the
// lock held.
func (a *API) store(at place, o scenario.Object, another bool) error {
	copied, ok := o.DeepCopyObject().(object)
	if !ok {
		return fmt.Errorf("putting a %T: not an object of the API", o)
	}
	copied.SetResourceVersion("")
	if _, there := at.in.objects[at.name]; there {
		if another {
			copied.SetUID("")
		}
		return a.replace(at.in.kind, copied)
	}
	a.created++
	if another && o.GetUID() != "" {
		copied.SetUID(inPlaceOf(o.GetUID(), a.created))
	}
	a.introduce(at.in.kind, copied)
	return nil
}

// inPlaceOf is a new UID that compares to others as the given one does. The number tells it from those before. Of jobs that were created in the same second, the one
// with the smaller UID goes first.
func inPlaceOf(uid types.UID, number uint64) types.UID {
	first, _, _ := strings.Cut(string(uid), "!")
	return types.UID(fmt.Sprintf("%s!%012x", first, number))
}

// placesOf are where objects are stored.
func (a *API) placesOf(objects []scenario.Object) ([]place, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	// To look a kind up takes longer than all the rest.
	in := map[reflect.Type]*resource{}
	places := make([]place, len(objects))
	for i, o := range objects {
		kind := reflect.TypeOf(o)
		if in[kind] == nil {
			gvr, err := a.ResourceOf(o)
			if err != nil {
				return nil, err
			}
			in[kind] = a.resource(gvr)
		}
		places[i] = place{in[kind], nameOf(o)}
	}
	return places, nil
}
