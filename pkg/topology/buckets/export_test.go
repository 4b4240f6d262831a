// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package buckets

import "github.com/caldera-scheduler/caldera/pkg/model"

// Members are the tasks of a job in each bucket that waits or has a node.
func (b *Buckets) Members(job *model.Job) [][]*model.Task {
	members := make([][]*model.Task, len(b.buckets))
	for _, t := range job.Tasks {
		if at, in := b.places[t.UID]; in {
			members[at.bucket.index] = append(members[at.bucket.index], t)
		}
	}
	return members
}
