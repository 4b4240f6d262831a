// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

// MostUnbound is mostUnbound, for the tests.
const MostUnbound = mostUnbound

// MostAside and LeastAside are mostAside and leastAside, for the tests.
const (
	MostAside  = mostAside
	LeastAside = leastAside
)
