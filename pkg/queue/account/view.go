// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package account

// UsageOf returns the usage by which a queue is measured: that of its own jobs or, where the tree is looked at, of the
// subtree. It is never to be changed.
func (b *Book) UsageOf(q *Queue) *Usage { return q.usage(b.mode) }

// Clone returns a copy that shares nothing with u.
func (u *Usage) Clone() Usage {
	return Usage{
		Allocated: u.Allocated.Clone(), Requested: u.Requested.Clone(),
		Inqueue: u.Inqueue.Clone(), Elastic: u.Elastic.Clone(), Stalled: u.Stalled.Clone(), Claimed: u.Claimed.Clone(), Jobs: u.Jobs, Groups: u.Groups,
	}
}
