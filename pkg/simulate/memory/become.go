// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	native "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
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
	resource schema.GroupVersionResource
	name     types.NamespacedName
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
	wanted := make(map[place]scenario.Object, len(objects))
	kinds := map[string]schema.GroupVersionResource{}
	for _, o := range objects {
		kind := fmt.Sprintf("%T", o)
		resource, known := kinds[kind]
		if !known {
			var err error
			if resource, err = s.api.ResourceOf(o); err != nil {
				return err
			}
			kinds[kind] = resource
		}
		wanted[place{resource, nameOf(o)}] = o
	}
	if s.clear(wanted) {
		if err := gone(); err != nil {
			return err
		}
	}
	return s.fill(objects, kinds)
}

// clear takes away what is not wanted, or not in this form. It reports whether anything was.
func (s *Series) clear(wanted map[place]scenario.Object) (cleared bool) {
	a := s.api
	a.mu.Lock()
	defer a.mu.Unlock()
	for resource, r := range a.resources {
		for name, o := range r.objects {
			at := place{resource, name}
			if want := wanted[at]; want == nil || waits(want) || makesJobs(o) && !s.as(at, want, o) {
				a.write(resource, o, nil)
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
func (s *Series) fill(objects []scenario.Object, kinds map[string]schema.GroupVersionResource) error {
	a := s.api
	a.mu.Lock()
	defer a.mu.Unlock()
	now := make(map[place]put, len(objects))
	for _, o := range objects {
		at := place{kinds[fmt.Sprintf("%T", o)], nameOf(o)}
		stored, there := a.resource(at.resource).objects[at.name]
		if !there || !s.as(at, o, stored) {
			_, was := s.put[at]
			if err := a.store(at, o, was); err != nil {
				return err
			}
			stored = a.resource(at.resource).objects[at.name]
		}
		now[at] = put{o, stored.GetResourceVersion()}
	}
	s.put = now
	return nil
}

// Alter makes of objects, as they are stored, others: what is in both lists stays, what is not in the second is gone, what is new of a name takes the
// place of what had it.
func (a *API) Alter(before, after []scenario.Object) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	stays := make(map[scenario.Object]bool, len(after))
	names := make(map[place]bool, len(after))
	var fresh []scenario.Object
	had := make(map[scenario.Object]bool, len(before))
	for _, o := range before {
		had[o] = true
	}
	for _, o := range after {
		if had[o] {
			stays[o] = true
			continue
		}
		fresh = append(fresh, o)
		at, err := a.placeOf(o)
		if err != nil {
			return err
		}
		names[at] = true
	}
	for _, o := range before {
		at, err := a.placeOf(o)
		if err != nil {
			return err
		}
		if stored := a.resource(at.resource).objects[at.name]; stored != nil && !stays[o] && !names[at] {
			a.write(at.resource, stored, nil)
		}
	}
	for _, o := range fresh {
		at, err := a.placeOf(o)
		if err != nil {
			return err
		}
		if err := a.store(at, o, false); err != nil {
			return err
		}
	}
	return nil
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
	if _, there := a.resource(at.resource).objects[at.name]; there {
		return a.replace(at.resource, copied)
	}
	a.created++
	a.introduce(at.resource, copied)
	return nil
}

// placeOf is where an object is stored.
func (a *API) placeOf(o scenario.Object) (place, error) {
	resource, err := a.ResourceOf(o)
	return place{resource, nameOf(o)}, err
}
