// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/eviction"
	"github.com/caldera-scheduler/caldera/pkg/model"
)

// release has the members of a gang evicted that was never whole and is half placed. Members of which it is not known yet whether they
// are bound are left: the gang is released again if they are.
func (ev *Evictions) release(ctx context.Context, key model.JobKey, lasted time.Duration) {
	job := ev.state.Job(key)
	if job == nil || !job.Half() {
		return
	}
	why := fmt.Sprintf("its gang has been placed in part for %s and was never whole: %d of %d members have nodes",
		lasted.Round(time.Second), job.Counts.Ready(), job.Min())
	d := eviction.Decision{Action: eviction.Release}
	var uids []types.UID
	for _, task := range job.Tasks {
		if task.Status == model.Bound || task.Status == model.Running {
			uids = append(uids, task.UID)
			d.Victims = append(d.Victims, ev.victim(model.Victim{Task: task, Job: job}, why))
		}
	}
	if len(uids) == 0 {
		return
	}
	ev.writer.Released(key, len(uids), why)
	ev.evict(ctx, d, uids)
}
