// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import "time"

// Annotations on PodGroups that say how long a gang may be broken. Volcano has none for this, so they are not in its name.
const (
	HalfTimeoutAnnotation   = "caldera.dev/half-timeout"
	BrokenTimeoutAnnotation = "caldera.dev/broken-timeout"
	ReleaseLostAnnotation   = "caldera.dev/release-lost"
)

// Terms are what a PodGroup says of how long its gang may be broken. What it does not say, the arguments of BatchQueue of the same name do.
type Terms struct {
	// HalfTimeout and BrokenTimeout are 0 for ever, else at least 1 s.
	HalfTimeout, BrokenTimeout Said[time.Duration]
	ReleaseLost                Said[bool]
}

// Said is a value that somebody may have given.
type Said[T any] struct {
	Value T
	Given bool
}

// Say returns a value that was given.
func Say[T any](value T) Said[T] { return Said[T]{Value: value, Given: true} }

// Or is the value, or another one if none was given.
func (s Said[T]) Or(other T) T {
	if s.Given {
		return s.Value
	}
	return other
}

// Terms returns what the job's PodGroup says of how long it may be broken.
func (j *Job) Terms() Terms {
	if j.Group == nil {
		return Terms{}
	}
	return j.Group.Terms
}
