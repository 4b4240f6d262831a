// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"fmt"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/caldera-scheduler/caldera/pkg/simulate/scenario"
)

// matcher is what a client asked to see.
type matcher struct {
	namespace string
	labels    labels.Selector
	fields    fields.Selector
}

// matcherOf reads the selectors of a list or watch. A field that the real API server does not select by is refused, as
// it does.
func matcherOf(gvr schema.GroupVersionResource, ns string, opts []metav1.ListOptions) (matcher, error) {
	m := matcher{namespace: ns, labels: labels.Everything(), fields: fields.Everything()}
	if len(opts) == 0 {
		return m, nil
	}
	var err error
	if m.labels, err = labels.Parse(opts[0].LabelSelector); err != nil {
		return m, apierrors.NewBadRequest(fmt.Sprintf("reading label selector %q: %v", opts[0].LabelSelector, err))
	}
	if m.fields, err = fields.ParseSelector(opts[0].FieldSelector); err != nil {
		return m, apierrors.NewBadRequest(fmt.Sprintf("reading field selector %q: %v", opts[0].FieldSelector, err))
	}
	for _, r := range m.fields.Requirements() {
		if r.Field == "metadata.name" || r.Field == "metadata.namespace" {
			continue
		}
		if _, ok := podFields(&corev1.Pod{})[r.Field]; !ok || gvr != Pods {
			return m, apierrors.NewBadRequest(fmt.Sprintf("field label not supported for %s: %s", gvr.Resource, r.Field))
		}
	}
	return m, nil
}

// matches reports whether an object, nil for none, is one to see.
func (m matcher) matches(o object) bool {
	if o == nil || m.namespace != "" && m.namespace != o.GetNamespace() || !m.labels.Matches(labels.Set(o.GetLabels())) {
		return false
	}
	if m.fields.Empty() {
		return true
	}
	set := fields.Set{}
	if pod, ok := podOf(o); ok {
		set = podFields(pod)
	}
	set["metadata.name"], set["metadata.namespace"] = o.GetName(), o.GetNamespace()
	return m.fields.Matches(set)
}

// podFields are what pods can be selected by (k8s.io/kubernetes pkg/registry/core/pod, ToSelectableFields).
func podFields(pod *corev1.Pod) fields.Set {
	return fields.Set{
		"spec.nodeName":            pod.Spec.NodeName,
		"spec.restartPolicy":       string(pod.Spec.RestartPolicy),
		"spec.schedulerName":       pod.Spec.SchedulerName,
		"spec.serviceAccountName":  pod.Spec.ServiceAccountName,
		"spec.hostNetwork":         strconv.FormatBool(pod.Spec.HostNetwork),
		"status.phase":             string(pod.Status.Phase),
		"status.podIP":             pod.Status.PodIP,
		"status.nominatedNodeName": pod.Status.NominatedNodeName,
	}
}

// watcher is one watch. What it has to tell waits in a queue without bound, so that no write waits for a reader.
type watcher struct {
	match  matcher
	result chan watch.Event
	stop   chan struct{}
	remove func()
	// likes are the objects that Told was asked for, and whether the watch is for them; API.mu guards them.
	likes map[object]bool

	// mu guards everything below.
	mu      sync.Mutex
	pending []watch.Event
	signal  chan struct{}
	// last is the resource version of the last change this watch was told of.
	last    uint64
	stopped bool
}

// Watch implements testing.ObjectTracker: it begins after the given resource version; without one, and when asked for
// the initial events, with all there is.
func (a *API) Watch(gvr schema.GroupVersionResource, ns string, opts ...metav1.ListOptions) (watch.Interface, error) {
	match, err := matcherOf(gvr, ns, opts)
	if err != nil {
		return nil, err
	}
	var options metav1.ListOptions
	if len(opts) > 0 {
		options = opts[0]
	}
	var since uint64
	if options.ResourceVersion != "" {
		if since, err = strconv.ParseUint(options.ResourceVersion, 10, 64); err != nil {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("resource version %q is not a number", options.ResourceVersion))
		}
	}
	w := &watcher{match: match, result: make(chan watch.Event), stop: make(chan struct{}), signal: make(chan struct{}, 1), likes: map[object]bool{}}
	if options.SendInitialEvents != nil && *options.SendInitialEvents {
		since = 0
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.begin(w, gvr, since); err != nil {
		return nil, err
	}
	if options.SendInitialEvents != nil && *options.SendInitialEvents {
		if err := w.bookmark(a, gvr); err != nil {
			return nil, err
		}
	}
	go w.run()
	return w, nil
}

// begin enters a watcher and tells it what happened since a version, or all there is since 0. It is called with the
// lock held.
func (a *API) begin(w *watcher, gvr schema.GroupVersionResource, since uint64) error {
	r := a.resource(gvr)
	switch {
	case since == 0:
		for _, o := range a.sorted(gvr) {
			w.tell(change{after: o})
		}
	case since < a.trimmed:
		return apierrors.NewResourceExpired(fmt.Sprintf("resource version %d is too old: the past begins at %d", since, a.trimmed))
	default:
		for _, c := range r.history {
			if c.version > since {
				w.tell(c)
			}
		}
	}
	r.watchers[w] = true
	w.remove = func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(r.watchers, w)
	}
	return nil
}

// bookmark marks the end of the initial events. It is called with the API's lock held.
func (w *watcher) bookmark(a *API, gvr schema.GroupVersionResource) error {
	var mark object = &metav1.PartialObjectMetadata{}
	for gvk := range a.scheme.AllKnownTypes() {
		if gvk.GroupVersion() != gvr.GroupVersion() || scenario.ResourceOf(gvk) != gvr {
			continue
		}
		o, err := a.scheme.New(gvk)
		if err != nil {
			return fmt.Errorf("watching %s: %w", gvr.Resource, err)
		}
		mark = o.(object)
	}
	mark.SetResourceVersion(strconv.FormatUint(a.version, 10))
	mark.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	w.put(watch.Event{Type: watch.Bookmark, Object: mark}, 0)
	return nil
}

// tell turns a change into what this watch shows of it.
func (w *watcher) tell(c change) {
	before, after := w.match.matches(c.before), w.match.matches(c.after)
	switch {
	case before && after:
		w.put(watch.Event{Type: watch.Modified, Object: c.after}, c.version)
	case after:
		w.put(watch.Event{Type: watch.Added, Object: c.after}, c.version)
	case before:
		gone := c.before.DeepCopyObject().(object)
		gone.SetResourceVersion(strconv.FormatUint(c.version, 10))
		w.put(watch.Event{Type: watch.Deleted, Object: gone}, c.version)
	}
}

func (w *watcher) put(event watch.Event, version uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pending = append(w.pending, event)
	w.last = max(w.last, version)
	select {
	case w.signal <- struct{}{}:
	default:
	}
}

func (w *watcher) run() {
	defer close(w.result)
	for {
		w.mu.Lock()
		events := w.pending
		w.pending = nil
		w.mu.Unlock()
		for _, event := range events {
			// Readers may change what they get.
			event.Object = event.Object.DeepCopyObject()
			select {
			case w.result <- event:
			case <-w.stop:
				return
			}
		}
		select {
		case <-w.signal:
		case <-w.stop:
			return
		}
	}
}

// ResultChan implements watch.Interface.
func (w *watcher) ResultChan() <-chan watch.Event { return w.result }

// Stop implements watch.Interface.
func (w *watcher) Stop() {
	w.mu.Lock()
	stopped := w.stopped
	w.stopped = true
	w.mu.Unlock()
	if !stopped {
		w.remove()
		close(w.stop)
	}
}

// isFor reports whether a watch is for an object. It is asked for the same ones again and again.
func (w *watcher) isFor(o object) bool {
	is, known := w.likes[o]
	if !known {
		is = w.match.matches(o)
		w.likes[o] = is
	}
	return is
}

// Told returns the resource version of the last change that watches of an object were told of: those whose selectors
// match it as it is given, which is not to be changed later. Zero: none since they began; watched is false when there is no such watch.
func (a *API) Told(gvr schema.GroupVersionResource, like runtime.Object) (last uint64, watched bool) {
	o, ok := like.(object)
	if !ok {
		return 0, false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for w := range a.resource(gvr).watchers {
		if w.isFor(o) {
			w.mu.Lock()
			last, watched = max(last, w.last), true
			w.mu.Unlock()
		}
	}
	return last, watched
}
