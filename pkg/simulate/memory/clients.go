// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	policyv1beta1 "k8s.io/api/policy/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/testing"
)

// Serve has a fake clientset answered by the API. All are made before the first of them is used.
func (a *API) Serve(f *testing.Fake) {
	a.fakes = append(a.fakes, f)
	tracked := testing.ObjectReaction(a)
	f.AddReactor("*", "*", func(action testing.Action) (bool, runtime.Object, error) {
		handled, o, err := a.act(action, tracked)
		if !handled && err == nil {
			err = fmt.Errorf("%s %s: not supported in memory", action.GetVerb(), action.GetResource().Resource)
		}
		return true, o, err
	})
	f.AddWatchReactor("*", func(action testing.Action) (bool, watch.Interface, error) {
		var opts []metav1.ListOptions
		if w, ok := action.(testing.WatchActionImpl); ok {
			opts = append(opts, w.ListOptions)
		}
		w, err := a.Watch(action.GetResource(), action.GetNamespace(), opts...)
		return true, w, err
	})
}

// Trim forgets what nobody will ask for any more: what the clients did, and the past of the objects. A watch that
// begins before it is refused as expired, so that its client lists again.
func (a *API) Trim() {
	for _, f := range a.fakes {
		f.ClearActions()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.trimmed = a.version
	for _, r := range a.resources {
		r.history = nil
	}
}

// act performs one call of a client.
func (a *API) act(action testing.Action, tracked testing.ReactionFunc) (bool, runtime.Object, error) {
	switch act := action.(type) {
	case testing.CreateActionImpl:
		switch o := act.Object.(type) {
		case *corev1.Binding:
			return true, o, a.bind(act.Namespace, o)
		case *policyv1.Eviction:
			return true, o, a.evict(act.Namespace, o.Name, o.DeleteOptions)
		case *policyv1beta1.Eviction:
			return true, o, a.evict(act.Namespace, o.Name, o.DeleteOptions)
		}
	case testing.DeleteCollectionActionImpl:
		return true, nil, a.deleteAll(act)
	}
	return tracked(action)
}

// deleteAll deletes the objects that match.
func (a *API) deleteAll(action testing.DeleteCollectionActionImpl) error {
	match, err := matcherOf(action.Resource, action.Namespace, []metav1.ListOptions{action.ListOptions})
	if err != nil {
		return err
	}
	a.mu.Lock()
	objects := slices.Clone(a.sorted(action.Resource))
	a.mu.Unlock()
	for _, o := range objects {
		if match.matches(o) {
			if err := a.Delete(action.Resource, o.GetNamespace(), o.GetName(), action.DeleteOptions); err != nil {
				return err
			}
		}
	}
	return nil
}
