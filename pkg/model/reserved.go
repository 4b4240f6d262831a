// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import "slices"

// WithoutReserved returns the job as if no room were reserved for it. The job needs its tasks.
func (j *Job) WithoutReserved() *Job {
	bare := *j
	bare.Tasks = slices.Clone(j.Tasks)
	for i, t := range bare.Tasks {
		if t.Reserved {
			bare.Counts.add(t, -1)
			bare.Tasks[i] = t.nominated("")
			bare.Counts.add(bare.Tasks[i], 1)
		}
	}
	return &bare
}
