// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/caldera-scheduler/caldera/pkg/simulate/memory"
)

// receipts tell whether all event handlers have handled all the news. Between the API and a handler news passes through
// several queues that cannot be looked into; what the handler has seen last is known only here.
type receipts struct {
	api *memory.API

	// mu guards handlers.
	mu       sync.Mutex
	handlers []*receipt
}

// receipt is one event handler.
type receipt struct {
	cache.ResourceEventHandler
	resource schema.GroupVersionResource
	// like is an object that the handler's informer watches.
	like runtime.Object
	// seen is the highest resource version that the handler has handled.
	seen atomic.Uint64
}

// undelivered names a handler that has not handled all the news of its kind; empty when there is none.
func (r *receipts) undelivered() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, h := range r.handlers {
		told, watched := r.api.Told(h.resource, h.like)
		switch {
		case !watched:
			return fmt.Sprintf("the informer of %s does not watch yet", h.resource.Resource)
		case h.seen.Load() < told:
			return fmt.Sprintf("an informer of %s has not delivered version %d", h.resource.Resource, told)
		}
	}
	return ""
}

// between has a handler leave receipts.
func (r *receipts) between(like runtime.Object, handler cache.ResourceEventHandler) (cache.ResourceEventHandler, error) {
	if pod, ok := like.(*corev1.Pod); ok {
		// The scheduler watches pods that have not finished.
		pod = pod.DeepCopy()
		pod.Status.Phase = corev1.PodPending
		like = pod
	}
	resource, err := r.api.ResourceOf(like)
	if err != nil {
		return nil, err
	}
	h := &receipt{ResourceEventHandler: handler, resource: resource, like: like}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.handlers = append(r.handlers, h)
	return h, nil
}

// OnAdd implements cache.ResourceEventHandler.
func (h *receipt) OnAdd(o any, initial bool) {
	h.ResourceEventHandler.OnAdd(o, initial)
	h.saw(o)
}

// OnUpdate implements cache.ResourceEventHandler.
func (h *receipt) OnUpdate(before, after any) {
	h.ResourceEventHandler.OnUpdate(before, after)
	h.saw(after)
}

// OnDelete implements cache.ResourceEventHandler.
func (h *receipt) OnDelete(o any) {
	h.ResourceEventHandler.OnDelete(o)
	h.saw(o)
}

// saw notes the version of an object that was handled; handlers are called one event at a time.
func (h *receipt) saw(o any) {
	meta, ok := o.(metav1.Object)
	if !ok {
		return
	}
	if version, err := strconv.ParseUint(meta.GetResourceVersion(), 10, 64); err == nil && version > h.seen.Load() {
		h.seen.Store(version)
	}
}
