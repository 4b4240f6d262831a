// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang

import "context"

// SampleSize is sampleSize, for the tests.
var SampleSize = sampleSize

// Slots is slots, for the tests.
type Slots struct{ s *slots }

// NewSlots returns n slots.
func NewSlots(n int) Slots { return Slots{newSlots(n)} }

// Acquire takes a slot for a turn.
func (s Slots) Acquire(ctx context.Context, turn uint64) error { return s.s.acquire(ctx, turn) }

// Release gives a slot back.
func (s Slots) Release() { s.s.release() }
