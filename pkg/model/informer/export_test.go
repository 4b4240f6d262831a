// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package informer

// What tests read objects with.
var (
	VolcanoGroup      = volcanoGroup
	CoschedulingGroup = coschedulingGroup
	NativeGroup       = nativeGroup
	ResourceClaim     = resourceClaim
	ClaimTemplate     = claimTemplate
)
