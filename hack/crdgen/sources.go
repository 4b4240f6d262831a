// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// A source is one package of API types in a module that go.mod requires.
type source struct {
	module string
	pkg    string
	// dir is the directory below manifests that receives the files.
	dir         string
	definitions []definition
}

// A definition is one resource of a source, with what the markers of its Go type leave open.
type definition struct {
	// file is the name controller-gen gives the definition: group_plural.yaml.
	file string
	// columns come after those of the type's markers.
	columns     []apiextensionsv1.CustomResourceColumnDefinition
	relaxations []relaxation
}

// A relaxation makes the API server accept more in one field than the markers of the Go type say, never less.
type relaxation struct {
	path  string
	relax func(*apiextensionsv1.JSONSchemaProps)
}

// nullable accepts null: Go clients send it for an empty value of this field, whose tag cannot omit it.
func nullable(s *apiextensionsv1.JSONSchemaProps) { s.Nullable = true }

// anyNumber accepts numbers out of range: the scheduler says on the object what to change, which a user of a controller
// that creates the object sees sooner than a refused request.
func anyNumber(s *apiextensionsv1.JSONSchemaProps) { s.Minimum, s.Maximum = nil, nil }

var sources = []source{
	{
		module: "volcano.sh/apis",
		pkg:    "pkg/apis/scheduling/v1beta1",
		dir:    "crds",
		definitions: []definition{
			{
				file: "scheduling.volcano.sh_podgroups.yaml",
				relaxations: []relaxation{
					{path: "spec.minMember", relax: anyNumber},
					{path: "status.conditions.lastTransitionTime", relax: nullable},
				},
			},
			{
				file: "scheduling.volcano.sh_queues.yaml",
				columns: []apiextensionsv1.CustomResourceColumnDefinition{
					{Name: "WEIGHT", Type: "integer", JSONPath: ".spec.weight"},
					{Name: "STATE", Type: "string", JSONPath: ".status.state"},
					{Name: "AGE", Type: "date", JSONPath: ".metadata.creationTimestamp"},
					{Name: "RECLAIMABLE", Type: "boolean", JSONPath: ".spec.reclaimable", Priority: 1},
				},
				relaxations: []relaxation{{path: "status.allocated", relax: nullable}},
			},
		},
	},
	{
		module:      "volcano.sh/apis",
		pkg:         "pkg/apis/topology/v1alpha1",
		dir:         "crds-optional",
		definitions: []definition{{file: "topology.volcano.sh_hypernodes.yaml"}},
	},
	{
		module:      "volcano.sh/apis",
		pkg:         "pkg/apis/nodeinfo/v1alpha1",
		dir:         "crds-optional",
		definitions: []definition{{file: "nodeinfo.volcano.sh_numatopologies.yaml"}},
	},
	{
		module: "sigs.k8s.io/scheduler-plugins",
		pkg:    "apis/scheduling/v1alpha1",
		dir:    "crds-optional",
		definitions: []definition{{
			file:        "scheduling.x-k8s.io_podgroups.yaml",
			relaxations: []relaxation{{path: "status.scheduleStartTime", relax: nullable}},
		}},
	},
}
