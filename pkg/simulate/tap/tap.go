// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tap puts something between informers and their event handlers: what counts, delays or records the news on its way.
package tap

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/informers/core"
	"k8s.io/client-go/informers/internalinterfaces"
	"k8s.io/client-go/tools/cache"
	volcanoinformers "volcano.sh/apis/pkg/client/informers/externalversions"
	volcanointernal "volcano.sh/apis/pkg/client/informers/externalversions/internalinterfaces"
	volcanoscheduling "volcano.sh/apis/pkg/client/informers/externalversions/scheduling"
)

// Between returns the handler that an informer gets in the place of one that is added to it. Like is an empty object of the kind that is
// watched. It is called once for each handler, in the order in which they are added.
type Between func(like runtime.Object, handler cache.ResourceEventHandler) (cache.ResourceEventHandler, error)

// Core returns f with tapped informers of the core group. Informers of other groups are not tapped.
func Core(f informers.SharedInformerFactory, between Between) informers.SharedInformerFactory {
	return coreFactory{f, between}
}

// Volcano returns f with tapped informers of PodGroups and Queues. Informers of other groups are not tapped.
func Volcano(f volcanoinformers.SharedInformerFactory, between Between) volcanoinformers.SharedInformerFactory {
	return volcanoFactory{f, between}
}

type coreFactory struct {
	informers.SharedInformerFactory
	between Between
}

// InformerFor implements informers.SharedInformerFactory.
func (f coreFactory) InformerFor(o runtime.Object, build internalinterfaces.NewInformerFunc) cache.SharedIndexInformer {
	return informer{f.SharedInformerFactory.InformerFor(o, build), o, f.between}
}

// Core implements informers.SharedInformerFactory.
func (f coreFactory) Core() core.Interface { return core.New(f, metav1.NamespaceAll, nil) }

type volcanoFactory struct {
	volcanoinformers.SharedInformerFactory
	between Between
}

// InformerFor implements externalversions.SharedInformerFactory.
func (f volcanoFactory) InformerFor(o runtime.Object, build volcanointernal.NewInformerFunc) cache.SharedIndexInformer {
	return informer{f.SharedInformerFactory.InformerFor(o, build), o, f.between}
}

// Scheduling implements externalversions.SharedInformerFactory.
func (f volcanoFactory) Scheduling() volcanoscheduling.Interface {
	return volcanoscheduling.New(f, metav1.NamespaceAll, nil)
}

// informer is an informer with something between it and its handlers.
type informer struct {
	cache.SharedIndexInformer
	like    runtime.Object
	between Between
}

// AddEventHandler implements cache.SharedInformer.
func (i informer) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandlerWithOptions(handler, cache.HandlerOptions{})
}

// AddEventHandlerWithResyncPeriod implements cache.SharedInformer.
func (i informer) AddEventHandlerWithResyncPeriod(handler cache.ResourceEventHandler, every time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandlerWithOptions(handler, cache.HandlerOptions{ResyncPeriod: &every})
}

// AddEventHandlerWithOptions implements cache.SharedInformer.
func (i informer) AddEventHandlerWithOptions(handler cache.ResourceEventHandler, o cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	h, err := i.between(i.like, handler)
	if err != nil {
		return nil, err
	}
	return i.SharedIndexInformer.AddEventHandlerWithOptions(h, o)
}
