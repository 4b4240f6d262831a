// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/caldera-scheduler/caldera/cmd/demo/history"
	"github.com/caldera-scheduler/caldera/manifests"
)

// program is what is applied, in this order: first a gang that waits for ever and must hold up nobody, then gangs that
// fill the cluster, then what fits beside them.
var program = []struct {
	file       string
	impossible bool
}{
	{file: "impossible.yaml", impossible: true},
	{file: "pytorch-gang.yaml"},
	{file: "two-gangs.yaml"},
	{file: "elastic.yaml"},
	{file: "deployment.yaml"},
	{file: "job.yaml"},
}

// scenePause lies between two files. Creation times have a resolution of a second: apart, the first is the older.
const scenePause = 1100 * time.Millisecond

// scene is one file of manifests/examples.
type scene struct {
	file      string
	objects   []*unstructured.Unstructured
	workloads []history.Workload
}

// scenes reads the program.
func scenes() ([]scene, error) {
	var list []scene
	for _, p := range program {
		data, err := manifests.All.ReadFile("examples/" + p.file)
		if err != nil {
			return nil, fmt.Errorf("reading the examples: %w", err)
		}
		s := scene{file: p.file}
		if s.objects, err = decode(data); err != nil {
			return nil, fmt.Errorf("reading %s: %w", p.file, err)
		}
		if s.workloads, err = history.Read(s.objects, p.impossible); err != nil {
			return nil, fmt.Errorf("reading %s: %w", p.file, err)
		}
		list = append(list, s)
	}
	return list, nil
}

func decode(data []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	documents := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := documents.Decode(object)
		switch {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, err
		case len(object.Object) > 0:
			objects = append(objects, object)
		}
	}
}

// applyAll applies the scenes one after the other.
func applyAll(ctx context.Context, config *rest.Config, list []scene) error {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("building a client: %w", err)
	}
	finder, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("building a discovery client: %w", err)
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(finder))
	for i, s := range list {
		if i > 0 {
			select {
			case <-time.After(scenePause):
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		for _, object := range s.objects {
			kind := object.GroupVersionKind()
			mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
			if err == nil {
				_, err = client.Resource(mapping.Resource).Namespace(metav1.NamespaceDefault).
					Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: "demo"})
			}
			if err != nil {
				return fmt.Errorf("applying %s %s of %s: %w", kind.Kind, object.GetName(), s.file, err)
			}
		}
	}
	return nil
}
