// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"cmp"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/policy"
	"github.com/caldera-scheduler/caldera/pkg/volcano/arguments"
)

// TestWhoMayUseReservedRoom: it is 10:00, and the room is needed at 11:00.
func TestWhoMayUseReservedRoom(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC)
	start := now.Add(time.Hour)
	rules := &policy.Reservation{Reservation: arguments.Reservation{BackfillWithin: 10 * time.Minute}}
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

// TestWhoHoldsFirst has candidates in their order, and checks that random ones have one: whoever comes before somebody comes before all that he does.
func TestWhoHoldsFirst(t *testing.T) {
	t.Parallel()
	at := func(minutes int) time.Time {
		if minutes == 0 {
			return time.Time{}
		}
		return time.Date(2026, 1, 5, 10, minutes, 0, 0, time.UTC)
	}
	candidate := func(uid string, priority int32, deadline int) policy.Candidate {
		return policy.Candidate{Ranked: &policy.Ranked{Job: &model.Job{UID: types.UID(uid), Priority: priority}, Deadline: at(deadline)}, Due: true, Since: at(30)}
	}
	lost, urgent := candidate("lost", 0, 0), candidate("urgent queue", 0, 0)
	lost.Lost, lost.Due, urgent.Queue = true, false, 1
	early, borrows := candidate("early", 1, 0), candidate("borrows", 9, 1)
	early.Since, borrows.Due = at(20), false
	want := []policy.Candidate{lost, urgent, candidate("important", 2, 0), candidate("first deadline", 1, 40), candidate("deadline", 1, 50), early, candidate("a", 1, 0), candidate("b", 1, 0), borrows}
	for i, a := range want {
		for k, b := range want {
			if got, order := a.Compare(b), cmp.Compare(i, k); got != order {
				t.Errorf("%s before %s: %d, want %d", a.UID, b.UID, got, order)
			}
		}
	}
	rapid.Check(t, func(r *rapid.T) {
		draw := func(uid string) policy.Candidate {
			c := candidate(uid, rapid.Int32Range(0, 1).Draw(r, "priority"), rapid.IntRange(0, 2).Draw(r, "deadline"))
			c.Queue, c.Lost, c.Due = rapid.Int32Range(0, 1).Draw(r, "queue"), rapid.Bool().Draw(r, "lost"), rapid.Bool().Draw(r, "due")
			c.Since = at(rapid.IntRange(1, 2).Draw(r, "since"))
			return c
		}
		a, b, c := draw("a"), draw("b"), draw("c")
		if a.Compare(b) != -b.Compare(a) || a.Compare(b) < 0 && b.Compare(c) < 0 && a.Compare(c) >= 0 {
			r.Errorf("no order: %d %d %d", a.Compare(b), b.Compare(c), a.Compare(c))
		}
	})
}

// TestForWhomRoomIsReserved has tiers, and from when on after it was refused room is reserved for a job, and for one whose waiting time is over after a
// minute.
func TestForWhomRoomIsReserved(t *testing.T) {
	t.Parallel()
	plugin := func(name string, off ...config.Switch) config.TierPlugin {
		p := config.TierPlugin{Name: name, Switches: map[config.Switch]bool{}}
		for _, s := range off {
			p.Switches[s] = false
		}
		return p
	}
	sla, gang, tdm, reservation := plugin(config.PluginSLA), plugin(config.PluginGang), plugin(config.PluginTDM), plugin(config.PluginReservation)
	const never = -1 * time.Second
	since := time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		tiers          [][]config.TierPlugin
		other, overdue time.Duration
	}{
		"neither":                        {[][]config.TierPlugin{{gang}}, never, never},
		"sla before gang":                {[][]config.TierPlugin{{sla}, {gang}}, never, time.Minute},
		"sla in gang's tier":             {[][]config.TierPlugin{{sla, gang}}, never, never},
		"sla behind gang":                {[][]config.TierPlugin{{gang}, {sla}}, never, never},
		"tdm comes first":                {[][]config.TierPlugin{{tdm}, {sla}, {gang}}, never, never},
		"tdm does not vote":              {[][]config.TierPlugin{{plugin(config.PluginTDM, config.EnableJobPipelined)}, {sla}, {gang}}, never, time.Minute},
		"sla does not vote":              {[][]config.TierPlugin{{plugin(config.PluginSLA, config.EnableJobPipelined)}, {gang}}, never, never},
		"nobody refuses":                 {[][]config.TierPlugin{{sla}, {plugin(config.PluginGang, config.EnableJobPipelined)}}, never, never},
		"reservation":                    {[][]config.TierPlugin{{gang, reservation}}, 30 * time.Minute, 30 * time.Minute},
		"reservation, and sla anywhere":  {[][]config.TierPlugin{{gang, reservation}, {sla}}, 30 * time.Minute, time.Minute},
		"reservation, sla does not vote": {[][]config.TierPlugin{{gang, reservation}, {plugin(config.PluginSLA, config.EnableJobPipelined)}}, 30 * time.Minute, 30 * time.Minute},
	} {
		args := &config.BatchQueueArgs{}
		for _, plugins := range c.tiers {
			args.Tiers = append(args.Tiers, config.Tier{Plugins: plugins})
		}
		set, err := policy.Compile(args)
		if err != nil {
			t.Fatal(err)
		}
		from := func(deadline time.Time) time.Duration {
			if set.Reservation() == nil {
				return never
			}
			at, may := set.Reservation().From(&policy.Ranked{Deadline: deadline}, since)
			if !may {
				return never
			}
			return at.Sub(since)
		}
		if other, overdue := from(time.Time{}), from(since.Add(time.Minute)); other != c.other || overdue != c.overdue {
			t.Errorf("%s: after %s and %s, want %s and %s", name, other, overdue, c.other, c.overdue)
		}
	}
}
