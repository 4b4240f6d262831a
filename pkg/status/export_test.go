// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package status

// Pause is what a teller does after a write.
var Pause = (*Writer).pause
