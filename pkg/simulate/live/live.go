// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package live reads from a cluster what a scheduler decides by, for a simulation to begin with.
package live

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/pager"

	"github.com/caldera-scheduler/caldera/pkg/simulate/scenario"
)

// Read reads all objects of the kinds that a scenario may hold, as far as the cluster serves them. Not all are of the same moment: a pod may be bound
// while others are read.
func Read(ctx context.Context, config *rest.Config) ([]scenario.Sourced, error) {
	scheme, err := scenario.NewScheme()
	if err != nil {
		return nil, err
	}
	served, err := servedKinds(config)
	if err != nil {
		return nil, err
	}
	r := reader{config: config, codecs: serializer.NewCodecFactory(scheme), scheme: scheme, clients: map[schema.GroupVersion]rest.Interface{}}
	var objects []scenario.Sourced
	var errs []error
	for _, kind := range scenario.Kinds() {
		if !served[kind] {
			continue
		}
		list, err := r.list(ctx, kind)
		objects, errs = append(objects, list...), append(errs, err)
	}
	return objects, errors.Join(errs...)
}

// servedKinds are those of the kinds that a scenario may hold that the cluster serves.
func servedKinds(config *rest.Config) (map[schema.GroupVersionKind]bool, error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("building a client: %w", err)
	}
	served, asked := map[schema.GroupVersionKind]bool{}, map[schema.GroupVersion]bool{}
	for _, kind := range scenario.Kinds() {
		version := kind.GroupVersion()
		if asked[version] {
			continue
		}
		asked[version] = true
		list, err := client.ServerResourcesForGroupVersion(version.String())
		switch {
		case apierrors.IsNotFound(err):
			continue
		case err != nil:
			return nil, fmt.Errorf("asking which resources of %s the cluster has: %w", version, err)
		}
		for _, r := range list.APIResources {
			served[version.WithKind(r.Kind)] = true
		}
	}
	return served, nil
}

// reader lists objects, with a client for each version of a group.
type reader struct {
	config  *rest.Config
	scheme  *runtime.Scheme
	codecs  serializer.CodecFactory
	clients map[schema.GroupVersion]rest.Interface
}

// list reads all objects of a kind, page by page.
func (r *reader) list(ctx context.Context, kind schema.GroupVersionKind) ([]scenario.Sourced, error) {
	client, err := r.client(kind.GroupVersion())
	if err != nil {
		return nil, err
	}
	resource := scenario.ResourceOf(kind).Resource
	page := func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		list, err := r.scheme.New(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err != nil {
			return nil, err
		}
		return list, client.Get().Resource(resource).VersionedParams(&o, metav1.ParameterCodec).Do(ctx).Into(list)
	}
	var objects []scenario.Sourced
	err = pager.New(page).EachListItem(ctx, metav1.ListOptions{}, func(o runtime.Object) error {
		object, ok := o.(scenario.Object)
		if !ok {
			return fmt.Errorf("a %T is no object", o)
		}
		m, err := meta.Accessor(o)
		if err != nil {
			return err
		}
		objects = append(objects, scenario.Sourced{Object: object, Source: fmt.Sprintf("%s %s/%s of the cluster", kind.Kind, m.GetNamespace(), m.GetName())})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", resource, err)
	}
	return objects, nil
}

func (r *reader) client(version schema.GroupVersion) (rest.Interface, error) {
	if c := r.clients[version]; c != nil {
		return c, nil
	}
	config := rest.CopyConfig(r.config)
	// What is not served as protobuf is served as JSON.
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	config.GroupVersion, config.NegotiatedSerializer, config.APIPath = &version, r.codecs.WithoutConversion(), "/apis"
	if version.Group == "" {
		config.APIPath = "/api"
	}
	c, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("building a client of %s: %w", version, err)
	}
	r.clients[version] = c
	return c, nil
}
