// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// +k8s:deepcopy-gen=package
// +groupName=kubescheduler.config.k8s.io

// Package config holds the arguments of Caldera's plugins, in the internal version that the plugins read.
package config
