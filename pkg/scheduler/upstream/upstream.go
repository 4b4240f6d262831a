// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package upstream is where this scheduler reaches into kube-scheduler: the folders under it change a scheduler before it runs. Its tests
// are the contract: they fail when a new Kubernetes changes what this module relies on, wherever that is used. docs/upstream-contract.md
// lists it all.
package upstream
