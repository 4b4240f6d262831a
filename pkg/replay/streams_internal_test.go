// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package replay

import "flag"

// Streams is how many random streams of jobs a test plays.
var Streams = flag.Int("streams", 20, "how many random streams of jobs a test plays")
