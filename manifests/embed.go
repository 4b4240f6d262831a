// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manifests carries the YAML files of this directory, so that tests, the demo and the local cluster use exactly
// the files that users apply.
package manifests

import "embed"

// CRDs holds crds/*.yaml: the definitions without which the scheduler has nothing to read, Volcano's PodGroup and Queue.
//
//go:embed crds/*.yaml
var CRDs embed.FS

// Monitoring holds the alerts and the dashboards.
//
//go:embed monitoring
var Monitoring embed.FS

// All holds the rest: optional definitions and roles, RBAC, the API of views, configurations, deployments, examples, and files of Volcano's kind.
//
//go:embed config crds-optional deploy examples kustomization.yaml rbac rbac-optional static-pod tenancy visibility volcano
var All embed.FS
