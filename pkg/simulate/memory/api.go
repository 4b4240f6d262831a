// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package memory is a Kubernetes API without a server: objects in memory behind the clientsets a scheduler uses. It
// does what a scheduler relies on: resource versions, UIDs, lists and watches with selectors, patches with
// preconditions, the binding and eviction of pods, graceful deletion. It validates nothing, admits everything and runs
// no controllers.
package memory

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/testing"
	"k8s.io/utils/clock"

	"github.com/caldera-scheduler/caldera/pkg/simulate/scenario"
)

// API holds the objects. It implements the tracker behind client-go's fake clientsets.
type API struct {
	scheme *runtime.Scheme
	clock  clock.PassiveClock
	// fakes are the clientsets that it answers.
	fakes []*testing.Fake

	// mu guards everything below.
	mu sync.Mutex
	// version is the resource version of the last write, over all kinds as in etcd.
	version uint64
	// trimmed is the resource version before which the past is not known.
	trimmed uint64
	// created counts objects, for UIDs and generated names.
	created   uint64
	resources map[schema.GroupVersionResource]*resource
	// bound are the pods that clients bound.
	bound []types.UID
	// disruptions are the pods that clients deleted or evicted, as they were.
	disruptions []*corev1.Pod
	disrupted   map[types.UID]bool
	// touched are the places where something was written since a series last came to its end; nil where there is no series.
	touched map[place]bool
}

var _ testing.ObjectTracker = &API{}

// resource is the objects of one kind.
type resource struct {
	kind schema.GroupVersionResource
	// objects are never changed once stored.
	objects map[types.NamespacedName]object
	// sorted are the same by namespace and name, once somebody has asked for them; nil before.
	sorted []object
	// history is all writes, for watches that begin in the past.
	history  []change
	watchers map[*watcher]bool
}

// object is any object of the API.
type object = scenario.Object

// change is one write: before is nil for a new object, after for one that is gone.
type change struct {
	version       uint64
	before, after object
}

// New returns an empty API. The clock stamps what is created.
func New(c clock.PassiveClock) (*API, error) {
	scheme, err := scenario.NewScheme()
	if err != nil {
		return nil, err
	}
	return &API{scheme: scheme, clock: c, resources: map[schema.GroupVersionResource]*resource{}, disrupted: map[types.UID]bool{}}, nil
}

// Version is the resource version of the last write. It grows with every change.
func (a *API) Version() uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.version
}

// Bound returns the UIDs of the pods that clients have bound, in that order, without the first so many of them.
func (a *API) Bound(without int) []types.UID {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.bound[without:])
}

// Disruptions returns the pods that clients have deleted or evicted, as they were before, in that order, without the first so many of them.
// They are not to be changed.
func (a *API) Disruptions(without int) []*corev1.Pod {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.disruptions[without:])
}

// ResourceOf returns the resource of a kind of objects.
func (a *API) ResourceOf(o runtime.Object) (schema.GroupVersionResource, error) {
	kinds, _, err := a.scheme.ObjectKinds(o)
	if err != nil {
		return schema.GroupVersionResource{}, fmt.Errorf("looking up the resource of a %T: %w", o, err)
	}
	return scenario.ResourceOf(kinds[0]), nil
}

func (a *API) resource(gvr schema.GroupVersionResource) *resource {
	r := a.resources[gvr]
	if r == nil {
		r = &resource{kind: gvr, objects: map[types.NamespacedName]object{}, watchers: map[*watcher]bool{}}
		a.resources[gvr] = r
	}
	return r
}

// Add implements testing.ObjectTracker.
func (a *API) Add(obj runtime.Object) error {
	o, ok := obj.(object)
	if !ok {
		return fmt.Errorf("adding a %T: not an object of the API", obj)
	}
	gvr, err := a.ResourceOf(obj)
	if err != nil {
		return err
	}
	return a.Create(gvr, obj, o.GetNamespace())
}

// Create implements testing.ObjectTracker.
func (a *API) Create(gvr schema.GroupVersionResource, obj runtime.Object, ns string, _ ...metav1.CreateOptions) error {
	o, ok := obj.DeepCopyObject().(object)
	if !ok {
		return fmt.Errorf("creating a %T: not an object of the API", obj)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.created++
	if o.GetName() == "" && o.GetGenerateName() != "" {
		o.SetName(fmt.Sprintf("%s%05d", o.GetGenerateName(), a.created))
		// The caller looks the object up by the name it was given.
		obj.(object).SetName(o.GetName())
	}
	o.SetNamespace(ns)
	if _, ok := a.resource(gvr).objects[nameOf(o)]; ok {
		return apierrors.NewAlreadyExists(gvr.GroupResource(), o.GetName())
	}
	a.introduce(gvr, o)
	return nil
}

// introduce stores a new object, with what a server gives it. It is called with the lock held.
func (a *API) introduce(gvr schema.GroupVersionResource, o object) {
	if o.GetUID() == "" {
		o.SetUID(types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012x", a.created)))
	}
	if o.GetCreationTimestamp().Time.IsZero() {
		o.SetCreationTimestamp(metav1.NewTime(a.clock.Now()))
	}
	a.write(gvr, nil, o)
}

// Update implements testing.ObjectTracker. It fails for an object that is not the one stored under the name, or not in
// the version it has now.
func (a *API) Update(gvr schema.GroupVersionResource, obj runtime.Object, ns string, _ ...metav1.UpdateOptions) error {
	o, ok := obj.DeepCopyObject().(object)
	if !ok {
		return fmt.Errorf("updating a %T: not an object of the API", obj)
	}
	o.SetNamespace(ns)
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.replace(gvr, o)
}

// Patch implements testing.ObjectTracker. The object is the patched one, with the resource version it had when it was
// read and the UID the patch demands, if any.
func (a *API) Patch(gvr schema.GroupVersionResource, obj runtime.Object, ns string, _ ...metav1.PatchOptions) error {
	return a.Update(gvr, obj, ns)
}

// Apply implements testing.ObjectTracker. Nothing in a scheduler applies.
func (a *API) Apply(gvr schema.GroupVersionResource, _ runtime.Object, _ string, _ ...metav1.PatchOptions) error {
	return apierrors.NewMethodNotSupported(gvr.GroupResource(), "apply")
}

// replace stores a new version of an object. It is called with the lock held.
func (a *API) replace(gvr schema.GroupVersionResource, o object) error {
	before, ok := a.resource(gvr).objects[nameOf(o)]
	switch {
	case !ok:
		return apierrors.NewNotFound(gvr.GroupResource(), o.GetName())
	case o.GetUID() != "" && o.GetUID() != before.GetUID():
		return apierrors.NewConflict(gvr.GroupResource(), o.GetName(), fmt.Errorf("its UID is %s, not %s", before.GetUID(), o.GetUID()))
	case o.GetResourceVersion() != "" && o.GetResourceVersion() != before.GetResourceVersion():
		return apierrors.NewConflict(gvr.GroupResource(), o.GetName(),
			fmt.Errorf("its resource version is %s, not %s", before.GetResourceVersion(), o.GetResourceVersion()))
	}
	o.SetUID(before.GetUID())
	o.SetCreationTimestamp(before.GetCreationTimestamp())
	o.SetResourceVersion(before.GetResourceVersion())
	if !equality.Semantic.DeepEqual(before, o) {
		a.write(gvr, before, o)
	}
	return nil
}

// write records a change and tells the watchers. It is called with the lock held, and owns after.
func (a *API) write(gvr schema.GroupVersionResource, before, after object) {
	a.version++
	r := a.resource(gvr)
	if after != nil {
		after.SetResourceVersion(strconv.FormatUint(a.version, 10))
		r.objects[nameOf(after)] = after
	} else {
		delete(r.objects, nameOf(before))
	}
	r.keepSorted(cmp.Or(after, before), after == nil)
	if a.touched != nil {
		a.touched[place{r, nameOf(cmp.Or(after, before))}] = true
	}
	c := change{version: a.version, before: before, after: after}
	r.history = append(r.history, c)
	for w := range r.watchers {
		w.tell(c)
	}
}

// Get implements testing.ObjectTracker.
func (a *API) Get(gvr schema.GroupVersionResource, ns, name string, _ ...metav1.GetOptions) (runtime.Object, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	o, ok := a.resource(gvr).objects[types.NamespacedName{Namespace: ns, Name: name}]
	if !ok {
		return nil, apierrors.NewNotFound(gvr.GroupResource(), name)
	}
	return o.DeepCopyObject(), nil
}

// List implements testing.ObjectTracker.
func (a *API) List(gvr schema.GroupVersionResource, gvk schema.GroupVersionKind, ns string, opts ...metav1.ListOptions) (runtime.Object, error) {
	match, err := matcherOf(gvr, ns, opts)
	if err != nil {
		return nil, err
	}
	list, err := a.scheme.New(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", gvr.Resource, err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	var items []runtime.Object
	for _, o := range a.sorted(gvr) {
		if match.matches(o) {
			items = append(items, o.DeepCopyObject())
		}
	}
	if err := meta.SetList(list, items); err != nil {
		return nil, fmt.Errorf("listing %s: %w", gvr.Resource, err)
	}
	accessor, err := meta.ListAccessor(list)
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", gvr.Resource, err)
	}
	accessor.SetResourceVersion(strconv.FormatUint(a.version, 10))
	return list, nil
}

// Objects returns the objects of a kind by namespace and name, as they are stored. None of them ever changes, and nobody may change one: a
// write puts another one in its place.
func (a *API) Objects(gvr schema.GroupVersionResource) []scenario.Object {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.sorted(gvr))
}

// sorted returns the objects of a kind by namespace and name, as long as the lock is held.
func (a *API) sorted(gvr schema.GroupVersionResource) []object {
	r := a.resource(gvr)
	if r.sorted == nil {
		r.sorted = slices.SortedFunc(maps.Values(r.objects), byName)
	}
	return r.sorted
}

// keepSorted puts an object that was written in its place among the sorted ones, or takes it away. Who plays many changes asks for all objects after
// each of them.
func (r *resource) keepSorted(o object, gone bool) {
	if r.sorted == nil {
		return
	}
	at, there := slices.BinarySearchFunc(r.sorted, o, byName)
	switch {
	case gone:
		r.sorted = slices.Delete(r.sorted, at, at+1)
	case there:
		r.sorted[at] = o
	default:
		r.sorted = slices.Insert(r.sorted, at, o)
	}
}

// byName orders objects of a kind by namespace and name.
func byName(x, y object) int {
	return cmp.Or(cmp.Compare(x.GetNamespace(), y.GetNamespace()), cmp.Compare(x.GetName(), y.GetName()))
}

// Delete implements testing.ObjectTracker. A pod that is on a node is only marked, as by a real API server: it goes
// when its kubelet says so, see Remove.
func (a *API) Delete(gvr schema.GroupVersionResource, ns, name string, opts ...metav1.DeleteOptions) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	o, ok := a.resource(gvr).objects[types.NamespacedName{Namespace: ns, Name: name}]
	if !ok {
		return apierrors.NewNotFound(gvr.GroupResource(), name)
	}
	var options metav1.DeleteOptions
	if len(opts) > 0 {
		options = opts[0]
	}
	if err := precondition(gvr, o, options.Preconditions); err != nil {
		return err
	}
	if pod, ok := podOf(o); ok {
		a.deletePod(pod, options.GracePeriodSeconds)
		return nil
	}
	a.write(gvr, o, nil)
	return nil
}

// Remove deletes an object at once, whatever it is.
func (a *API) Remove(gvr schema.GroupVersionResource, ns, name string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	o, ok := a.resource(gvr).objects[types.NamespacedName{Namespace: ns, Name: name}]
	if !ok {
		return apierrors.NewNotFound(gvr.GroupResource(), name)
	}
	a.write(gvr, o, nil)
	return nil
}

// precondition checks what a client demands of the object it deletes.
func precondition(gvr schema.GroupVersionResource, o object, p *metav1.Preconditions) error {
	switch {
	case p == nil:
	case p.UID != nil && *p.UID != o.GetUID():
		return apierrors.NewConflict(gvr.GroupResource(), o.GetName(), fmt.Errorf("its UID is %s, not %s", o.GetUID(), *p.UID))
	case p.ResourceVersion != nil && *p.ResourceVersion != o.GetResourceVersion():
		return apierrors.NewConflict(gvr.GroupResource(), o.GetName(),
			fmt.Errorf("its resource version is %s, not %s", o.GetResourceVersion(), *p.ResourceVersion))
	}
	return nil
}

func nameOf(o metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}
