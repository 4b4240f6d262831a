// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility

// SampleOnce adds a moment to what queues held.
func (v *Views) SampleOnce() error { return v.sample() }
