// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package informer

// What tests read PodGroups with.
var (
	VolcanoGroup      = volcanoGroup
	CoschedulingGroup = coschedulingGroup
	NativeGroup       = nativeGroup
)
