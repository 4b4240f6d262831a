// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
)

// Install creates the objects of YAML files, in their order. None of them may exist.
func (c *Cluster) Install(ctx context.Context, files fs.FS, names ...string) error {
	return c.eachObject(files, names, "creating", func(client dynamic.ResourceInterface, object *unstructured.Unstructured) error {
		_, err := client.Create(ctx, object, metav1.CreateOptions{})
		return err
	})
}

// Apply has the objects of YAML files be as they are there, in their order, as kubectl apply --server-side --force-conflicts does under the name of a manager.
func (c *Cluster) Apply(ctx context.Context, manager string, files fs.FS, names ...string) error {
	return c.eachObject(files, names, "applying", func(client dynamic.ResourceInterface, object *unstructured.Unstructured) error {
		_, err := client.Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: manager, Force: true})
		return err
	})
}

// eachObject calls do for each object of YAML files, with a client for its kind.
func (c *Cluster) eachObject(files fs.FS, names []string, doing string, do func(dynamic.ResourceInterface, *unstructured.Unstructured) error) error {
	finder, err := discovery.NewDiscoveryClientForConfig(c.RESTConfig())
	if err != nil {
		return fmt.Errorf("building a client: %w", err)
	}
	client, err := dynamic.NewForConfig(c.RESTConfig())
	if err != nil {
		return fmt.Errorf("building a client: %w", err)
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(finder))
	for _, name := range names {
		data, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		err = each(data, func(object *unstructured.Unstructured) error {
			kind := object.GroupVersionKind()
			mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
			if err != nil {
				return err
			}
			return do(client.Resource(mapping.Resource).Namespace(object.GetNamespace()), object)
		})
		if err != nil {
			return fmt.Errorf("%s the objects of %s: %w", doing, name, err)
		}
	}
	return nil
}

// each calls do for each object of a YAML file.
func each(data []byte, do func(*unstructured.Unstructured) error) error {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	for {
		object := &unstructured.Unstructured{}
		switch err := decoder.Decode(object); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case len(object.Object) == 0:
			continue
		}
		if err := do(object); err != nil {
			return err
		}
	}
}
