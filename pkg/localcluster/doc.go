// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package localcluster starts cmd/localcluster, a real control plane with simulated nodes, as a child process: for
// tests, the demo and benchmarks. The control plane runs in another process because it shares global state (feature
// gates, metrics) with the scheduler, and so that a caller built with the race detector does not slow it down.
//
// The package imports client-go and apimachinery only.
package localcluster
