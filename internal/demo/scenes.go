// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/caldera-scheduler/caldera/internal/demo/history"
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

// Scene is one file of manifests/examples.
type Scene struct {
	File      string
	Objects   []*unstructured.Unstructured
	Workloads []history.Workload
}

// Scenes reads what is applied, in this order.
func Scenes() ([]Scene, error) {
	var list []Scene
	for _, p := range program {
		data, err := manifests.All.ReadFile("examples/" + p.file)
		if err != nil {
			return nil, fmt.Errorf("reading the examples: %w", err)
		}
		s := Scene{File: p.file}
		if s.Objects, err = decode(data); err != nil {
			return nil, fmt.Errorf("reading %s: %w", p.file, err)
		}
		if s.Workloads, err = history.Read(s.Objects, p.impossible); err != nil {
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

// apply applies the scenes one after the other.
func apply(ctx context.Context, list []Scene, put func(context.Context, *unstructured.Unstructured) error) error {
	for i, s := range list {
		if i > 0 {
			select {
			case <-time.After(scenePause):
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		for _, object := range s.Objects {
			if err := put(ctx, object); err != nil {
				return fmt.Errorf("applying %s %s of %s: %w", object.GetKind(), object.GetName(), s.File, err)
			}
		}
	}
	return nil
}
