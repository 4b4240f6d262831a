// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// +k8s:deepcopy-gen=package
// +k8s:conversion-gen=github.com/caldera-scheduler/caldera/pkg/apis/config
// +k8s:defaulter-gen=TypeMeta
// +k8s:defaulter-gen-input=github.com/caldera-scheduler/caldera/pkg/apis/config/v1
// +groupName=kubescheduler.config.k8s.io

// Package v1 holds the arguments of Caldera's plugins as users write them in a KubeSchedulerConfiguration.
package v1
