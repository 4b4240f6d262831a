// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package servers has the control plane of Kubernetes 1.36, for tests beside it.
package servers

import (
	_ "k8s.io/kubernetes/cmd/kube-apiserver/app"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager/app"
)
