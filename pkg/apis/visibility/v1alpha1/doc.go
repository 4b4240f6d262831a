// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is the API visibility.caldera.dev: what the scheduler that leads knows of jobs, queues, evictions and the cluster. Nothing of it is
// stored. It is read-only, and each answer is made when somebody asks, from what scheduling itself goes by.
//
// +k8s:deepcopy-gen=package
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=dev.caldera.visibility.v1alpha1
// +groupName=visibility.caldera.dev
package v1alpha1
