// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

// MostUnbound is mostUnbound, for the tests.
const MostUnbound = mostUnbound
