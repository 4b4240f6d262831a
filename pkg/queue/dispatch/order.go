// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"cmp"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// JobOrderer compares two jobs: negative when a goes first, zero when it has no opinion.
type JobOrderer interface {
	CompareJobs(a, b *model.Job) int
}

// ByPriority is Volcano's priority plugin: the job with the higher PriorityClass goes first.
type ByPriority struct{}

// CompareJobs implements JobOrderer.
func (ByPriority) CompareJobs(a, b *model.Job) int { return -cmp.Compare(a.Priority, b.Priority) }

// compare is the whole order of jobs. A gang of which some, but too few, members hold nodes is completed before any
// new job starts; then the first orderer that has an opinion decides; ties go to the older job, then to the smaller UID.
func compare(orderers []JobOrderer, a, b *model.Job) int {
	if a.Partial() != b.Partial() {
		if a.Partial() {
			return -1
		}
		return 1
	}
	for _, o := range orderers {
		if c := o.CompareJobs(a, b); c != 0 {
			return c
		}
	}
	return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.UID, b.UID))
}
