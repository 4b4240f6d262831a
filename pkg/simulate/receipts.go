// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/informers/core"
	"k8s.io/client-go/informers/internalinterfaces"
	"k8s.io/client-go/tools/cache"
	volcanoinformers "volcano.sh/apis/pkg/client/informers/externalversions"
	volcanointernal "volcano.sh/apis/pkg/client/informers/externalversions/internalinterfaces"
	volcanoscheduling "volcano.sh/apis/pkg/client/informers/externalversions/scheduling"

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

// informer returns an informer whose handlers leave receipts.
func (r *receipts) informer(like runtime.Object, informer cache.SharedIndexInformer) cache.SharedIndexInformer {
	if pod, ok := like.(*corev1.Pod); ok {
		// The scheduler watches pods that have not finished.
		pod = pod.DeepCopy()
		pod.Status.Phase = corev1.PodPending
		like = pod
	}
	return countedInformer{SharedIndexInformer: informer, like: like, receipts: r}
}

// countedInformer is an informer whose handlers leave receipts.
type countedInformer struct {
	cache.SharedIndexInformer
	like     runtime.Object
	receipts *receipts
}

func (i countedInformer) counted(handler cache.ResourceEventHandler) (cache.ResourceEventHandler, error) {
	resource, err := i.receipts.api.ResourceOf(i.like)
	if err != nil {
		return nil, err
	}
	h := &receipt{ResourceEventHandler: handler, resource: resource, like: i.like}
	i.receipts.mu.Lock()
	defer i.receipts.mu.Unlock()
	i.receipts.handlers = append(i.receipts.handlers, h)
	return h, nil
}

// AddEventHandler implements cache.SharedInformer.
func (i countedInformer) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandlerWithOptions(handler, cache.HandlerOptions{})
}

// AddEventHandlerWithResyncPeriod implements cache.SharedInformer.
func (i countedInformer) AddEventHandlerWithResyncPeriod(handler cache.ResourceEventHandler, every time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandlerWithOptions(handler, cache.HandlerOptions{ResyncPeriod: &every})
}

// AddEventHandlerWithOptions implements cache.SharedInformer.
func (i countedInformer) AddEventHandlerWithOptions(handler cache.ResourceEventHandler, o cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	h, err := i.counted(handler)
	if err != nil {
		return nil, err
	}
	return i.SharedIndexInformer.AddEventHandlerWithOptions(h, o)
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

// coreReceipts are the scheduler's informers; the handlers of core kinds leave receipts. Objects of other kinds do not
// change in a simulation.
type coreReceipts struct {
	informers.SharedInformerFactory
	receipts *receipts
}

// InformerFor implements informers.SharedInformerFactory.
func (f coreReceipts) InformerFor(o runtime.Object, build internalinterfaces.NewInformerFunc) cache.SharedIndexInformer {
	return f.receipts.informer(o, f.SharedInformerFactory.InformerFor(o, build))
}

// Core implements informers.SharedInformerFactory.
func (f coreReceipts) Core() core.Interface { return core.New(f, metav1.NamespaceAll, nil) }

// volcanoReceipts are informers of PodGroups and Queues whose handlers leave receipts.
type volcanoReceipts struct {
	volcanoinformers.SharedInformerFactory
	receipts *receipts
}

// InformerFor implements externalversions.SharedInformerFactory.
func (f volcanoReceipts) InformerFor(o runtime.Object, build volcanointernal.NewInformerFunc) cache.SharedIndexInformer {
	return f.receipts.informer(o, f.SharedInformerFactory.InformerFor(o, build))
}

// Scheduling implements externalversions.SharedInformerFactory.
func (f volcanoReceipts) Scheduling() volcanoscheduling.Interface {
	return volcanoscheduling.New(f, metav1.NamespaceAll, nil)
}
