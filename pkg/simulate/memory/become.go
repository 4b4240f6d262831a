// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"fmt"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	native "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	coscheduling "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/pkg/simulate/scenario"
)

// Series brings an API from one set of objects to another, again and again. Nobody else may write meanwhile.
type Series struct {
	api *API
	// put is what was put there last, by place.
	put map[place]put
}

// place is where an object is stored.
type place struct {
	in   *resource
	name types.NamespacedName
}

// put is an object that was given, and the resource version with which it was stored.
type put struct {
	object  scenario.Object
	version string
}

// NewSeries returns the series that begins with what the API holds.
func NewSeries(a *API) *Series { return &Series{api: a, put: map[place]put{}} }

// Become has the API hold these objects, and no others. What is as it was put there before is left alone, unless it waits. What waits is gone, and there
// is another one of its name, of which nobody remembers anything. So it is with pods and PodGroups of which somebody else has written something. The
// function has clients told of all that is gone before anything is new.
func (s *Series) Become(objects []scenario.Object, gone func() error) error {
	places, err := s.api.placesOf(objects)
	if err != nil {
		return err
	}
	if s.clear(objects, places) {
		if err := gone(); err != nil {
			return err
		}
	}
	return s.fill(objects, places)
}

// clear takes away what is not wanted, or not in this form. It reports whether anything was.
func (s *Series) clear(objects []scenario.Object, places []place) (cleared bool) {
	wanted := make(map[place]scenario.Object, len(objects))
	for i, at := range places {
		wanted[at] = objects[i]
	}
	a := s.api
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range a.resources {
		for name, o := range r.objects {
			at := place{r, name}
			if want := wanted[at]; want == nil || waits(want) || makesJobs(o) && !s.as(at, want, o) {
				a.write(r.kind, o, nil)
				cleared = true
			}
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
func (s *Series) as(at place, given scenario.Object, stored object) bool {
	if stored == object(given) {
		return true
	}
	before, known := s.put[at]
	return known && before.object == given && before.version == stored.GetResourceVersion()
}

// fill puts there what is not there, or not in this form.
func (s *Series) fill(objects []scenario.Object, places []place) error {
	a := s.api
	a.mu.Lock()
	defer a.mu.Unlock()
	now := make(map[place]put, len(objects))
	for i, o := range objects {
		at := places[i]
		stored, there := at.in.objects[at.name]
		if !there || !s.as(at, o, stored) {
			_, was := s.put[at]
			if err := a.store(at, o, was); err != nil {
				return err
			}
			stored = at.in.objects[at.name]
		}
		now[at] = put{o, stored.GetResourceVersion()}
	}
	s.put = now
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
	if another {
		copied.SetUID("")
	}
	if _, there := at.in.objects[at.name]; there {
		return a.replace(at.in.kind, copied)
	}
	a.created++
	a.introduce(at.in.kind, copied)
	return nil
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
