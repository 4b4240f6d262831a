// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"testing"
	"time"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/policy"
)

// TestWhoMayUseReservedRoom: it is 10:00, and the room is needed at 11:00.
func TestWhoMayUseReservedRoom(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC)
	start := now.Add(time.Hour)
	rules := &policy.Reservation{BackfillWithin: 10 * time.Minute}
	holder := &model.Job{Priority: 5}
	runs := func(d time.Duration) model.Runtime { return model.Runtime{Lasts: d, Grace: 30 * time.Second} }
	job := func(priority int32) *model.Job { return &model.Job{Priority: priority} }
	bound, drains := policy.Reserved{Holder: holder, Queue: 1, Start: start, Bound: true}, policy.Reserved{Holder: holder, Queue: 1, Start: start}
	borrows := drains
	borrows.Borrows = true
	for name, c := range map[string]struct {
		room policy.Reserved
		job  policy.Passer
		want policy.Passage
	}{
		"nobody knows how long it runs":               {room: bound, job: policy.Passer{Job: job(5), Queue: 1}},
		"it ends in time":                             {room: bound, job: policy.Passer{Job: job(5), Queue: 1, Runs: runs(59 * time.Minute)}, want: policy.InTime},
		"it takes too long to end":                    {room: bound, job: policy.Passer{Job: job(5), Queue: 1, Runs: runs(time.Hour - 20*time.Second)}},
		"it is short, and too late":                   {room: policy.Reserved{Holder: holder, Queue: 1, Start: now, Bound: true}, job: policy.Passer{Job: job(5), Queue: 1, Runs: runs(time.Minute)}},
		"it is short":                                 {room: drains, job: policy.Passer{Job: job(5), Queue: 1, Runs: runs(10 * time.Minute)}, want: policy.Shortly},
		"it ends in time, if the guess is good":       {room: drains, job: policy.Passer{Job: job(5), Queue: 1, Runs: runs(11 * time.Minute)}},
		"its priority is higher":                      {room: bound, job: policy.Passer{Job: job(6), Queue: 1}, want: policy.Precedence},
		"its priority is higher, its queue's is not":  {room: bound, job: policy.Passer{Job: job(6)}},
		"its queue's priority is higher":              {room: bound, job: policy.Passer{Job: job(1), Queue: 2}, want: policy.Precedence},
		"it has lost members":                         {room: bound, job: policy.Passer{Job: job(1), Lost: true}, want: policy.Precedence},
		"its queue is due it, and the holder borrows": {room: borrows, job: policy.Passer{Job: job(1), Due: true}, want: policy.Precedence},
		"its queue is due it, as the holder's is":     {room: drains, job: policy.Passer{Job: job(1), Due: true}},
	} {
		if got := rules.Passage(c.room, c.job, now); got != c.want {
			t.Errorf("%s: it passes by %d, want %d", name, got, c.want)
		}
	}
}
