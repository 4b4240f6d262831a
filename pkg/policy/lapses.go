// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"time"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// Lapses tell from when on the minimum of a broken gang protects it no more.
type Lapses map[model.JobKey]time.Time

// of is from when on that of a job does not; zero for never. A gang that is whole again, and one for whose missing members room is being
// made, has its minimum.
func (l Lapses) of(job *model.Job) time.Time {
	if job.Partial() && job.Counts.Nominated == 0 {
		return l[job.Key]
	}
	return time.Time{}
}
