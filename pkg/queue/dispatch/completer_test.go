// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/policy"
	"github.com/caldera-scheduler/caldera/pkg/queue/dispatch"
)

// halfOf submits a gang of four of which one member has a node, and which waits for three; age makes it older.
func (d *fixture) halfOf(job, queue string, age int) {
	d.state.UpsertGroup(keyOf(job), &model.Group{
		UID: types.UID(job), Queue: queue, MinMember: 4, Phase: model.PhaseRunning, Created: epoch.Add(-time.Duration(age) * time.Minute),
	})
	d.bind(job, 0)
	for i := 1; i < 4; i++ {
		d.state.UpsertPod(memberOf(job, i, "1"))
	}
}

// turnOf expects a turn of a job that has to place so many members, and refuses it if there is no room.
func (d *fixture) turnOf(lead types.UID, tasks int, refused bool) {
	d.t.Helper()
	d.want(lead)
	entry := d.Enter(lead)
	if entry.Verdict != dispatch.Lead || entry.Job.Requirement().Tasks != tasks {
		d.t.Fatalf("%s leads a turn for %+v, want one for %d tasks", lead, entry.Job.Requirement(), tasks)
	}
	if refused {
		d.Refused(lead, dispatch.Refusal{Reason: noRoom})
		return
	}
	d.planFor(entry.Job, []types.UID{lead})
	d.place(lead)
}

// TestBrokenGangsAreCompletedInOneOrder: the first by the order of jobs, whatever its queue, places its members as they fit. The other
// one places all or none; once the first is whole it is the one.
func TestBrokenGangsAreCompletedInOneOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t)
		d.state.UpsertQueue(&model.Queue{Name: "a"})
		d.state.UpsertQueue(&model.Queue{Name: "b"})
		d.addNode("node-1", "8")
		d.submit("other", 1, 9, "1")
		d.want("other-0")
		d.halfOf("younger", "a", 1)
		d.halfOf("older", "b", 2)
		d.plan("other-0")
		d.place("other-0")
		d.turnOf("older-1", 1, false)
		d.bind("older", 1)
		d.turnOf("older-2", 1, true)
		d.turnOf("younger-1", 3, true)
		d.bind("older", 2)
		d.turnOf("older-3", 1, true)
		d.bind("older", 3)
		d.turnOf("younger-1", 1, true)
	})
}

// TestPrecedenceEndsWithTheDeadline: then the next one places its members as they fit, and the first one waits like any job.
func TestPrecedenceEndsWithTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t)
		d.halfOf("older", model.DefaultQueue, 2)
		d.turnOf("older-1", 1, true)
		time.Sleep(halfTimeout / 2)
		d.take()
		d.halfOf("younger", model.DefaultQueue, 1)
		d.turnOf("younger-1", 3, true)
		time.Sleep(halfTimeout/2 + time.Second)
		d.wantReleased("older")
		d.take()
		d.turnAnew("younger-1", 1)
		d.leave("older", 0)
		time.Sleep(time.Second)
		d.take()
		// It holds nothing, and is a new gang.
		if job := d.state.Job(keyOf("older")); job.Partial() {
			t.Error("the gang that was released is broken still")
		}
	})
}

// turnAnew has a job judged anew, and expects it to have a turn for so many members.
func (d *fixture) turnAnew(lead types.UID, tasks int) {
	d.t.Helper()
	for range 100 {
		if entry := d.Enter(lead); entry.Verdict == dispatch.Lead {
			if got := entry.Job.Requirement().Tasks; got != tasks {
				d.t.Fatalf("%s leads a turn for %d tasks, want %d", lead, got, tasks)
			}
			d.Refused(lead, dispatch.Refusal{Reason: noRoom})
			return
		}
		time.Sleep(100 * time.Millisecond)
		d.take()
	}
	d.t.Fatalf("%s leads no turn", lead)
}

// TestWithoutPodsToPlaceNobodyGoesFirst: another broken gang is completed as it fits meanwhile.
func TestWithoutPodsToPlaceNobodyGoesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t)
		d.halfOf("older", model.DefaultQueue, 2)
		for i := 1; i < 4; i++ {
			d.state.DeletePod(memberOf("older", i, "1").UID)
		}
		d.halfOf("younger", model.DefaultQueue, 1)
		d.take()
		d.turnAnew("younger-1", 1)
	})
}

// TestWhoIsCompletedAsItFitsEvictsForAll: others are evicted for all missing members or for none.
func TestWhoIsCompletedAsItFitsEvictsForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := evicting(t, "preempt")
		d.occupy("others", 3)
		d.halfOf("half", model.DefaultQueue, 1)
		d.want("half-1")
		entry := d.Enter("half-1")
		if got := entry.Job.Requirement().Tasks; got != 1 {
			t.Errorf("its turn is for %d tasks, want 1", got)
		}
		if got := d.MayPreempt("half-1").Job.Requirement().Tasks; got != 3 {
			t.Errorf("others are evicted for %d tasks, want 3", got)
		}
	})
}

// TestOthersGiveWayToWhoIsCompletedFirst: where some action evicts, the first broken gang may have those after it go, before anybody is
// asked whom that action chooses. Nobody goes for those.
func TestOthersGiveWayToWhoIsCompletedFirst(t *testing.T) {
	for name, tc := range map[string]struct {
		actions        string
		older, younger []config.Action
	}{
		"an action evicts": {"preempt", []config.Action{config.Complete, config.Preempt}, []config.Action{config.Preempt}},
		"none does":        {"backfill", nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := evicting(t, tc.actions)
				d.state.UpsertQueue(&model.Queue{Name: model.DefaultQueue, Reclaimable: true})
				d.take()
				d.Hold()
				d.occupy("others", 5)
				d.halfOf("youngest", model.DefaultQueue, 0)
				d.halfOf("younger", model.DefaultQueue, 1)
				d.halfOf("older", model.DefaultQueue, 2)
				d.Step()
				d.preempts("older-1", tc.older...)
				if tr := d.Trial("older-1", config.Complete, policy.EvictionWorld{Now: time.Now()}); tr == nil ||
					!tr.Lapsed(d.state.Job(keyOf("younger"))) || tr.Lapsed(d.state.Job(keyOf("others"))) {
					t.Error("not just the broken gangs may give way")
				}
				d.Refused("older-1", dispatch.Refusal{Reason: noRoom})
				d.Step()
				d.preempts("younger-1", tc.younger...)
			})
		})
	}
}

// TestWhoCannotBeCompletedGivesWay: a half gang whose missing pods nobody has made holds its nodes for nothing.
func TestWhoCannotBeCompletedGivesWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := evicting(t, "preempt")
		d.state.UpsertQueue(&model.Queue{Name: model.DefaultQueue, Reclaimable: true})
		d.take()
		d.Hold()
		d.occupy("others", 6)
		d.halfOf("abandoned", model.DefaultQueue, 1)
		for i := 1; i < 4; i++ {
			d.state.DeletePod(memberOf("abandoned", i, "1").UID)
		}
		d.halfOf("older", model.DefaultQueue, 2)
		d.Step()
		d.preempts("older-1", config.Complete, config.Preempt)
	})
}

// preempts expects a turn, for which others may be evicted by actions.
func (d *fixture) preempts(lead types.UID, want ...config.Action) {
	d.t.Helper()
	d.want(lead)
	if entry := d.Enter(lead); entry.Verdict != dispatch.Lead {
		d.t.Fatalf("pod %s is not asked to lead", lead)
	}
	if a := d.MayPreempt(lead); !slices.Equal(a.Actions, want) {
		d.t.Errorf("%s may preempt by %v, want %v", lead, a.Actions, want)
	}
}

// TestOthersGiveWayToTheNextOne: the time of the first broken gang is over, and the next one, which asks for the same, is completed first. It
// looks for those after it though nothing else happened.
func TestOthersGiveWayToTheNextOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := evicting(t, "preempt")
		d.state.UpsertQueue(&model.Queue{Name: model.DefaultQueue, Reclaimable: true})
		lacksOne := func(job string, age int) {
			d.state.UpsertGroup(keyOf(job), &model.Group{
				UID: types.UID(job), Queue: model.DefaultQueue, MinMember: 2, Phase: model.PhaseRunning, Created: epoch.Add(-time.Duration(age) * time.Minute),
			})
			d.bind(job, 0)
			d.state.UpsertPod(memberOf(job, 1, "1"))
		}
		d.take()
		d.Hold()
		d.occupy("others", 5)
		lacksOne("first", 3)
		d.Step()
		d.preempts("first-1", config.Preempt)
		d.Refused("first-1", dispatch.Refusal{Reason: noRoom})
		time.Sleep(halfTimeout / 2)
		lacksOne("second", 2)
		lacksOne("third", 1)
		d.Step()
		d.preempts("first-1", config.Complete, config.Preempt)
		d.Refused("first-1", dispatch.Refusal{Reason: noRoom})
		time.Sleep(halfTimeout/2 - time.Second)
		d.Step()
		d.want()
		time.Sleep(time.Second)
		d.Step()
		d.wantReleased("first")
		d.preempts("second-1", config.Complete, config.Preempt)
	})
}

// TestWhoLostAMemberJustNowNeedNotGiveWay: most often it is whole again soon. Once it has been broken for brokenTimeout it gives way.
func TestWhoLostAMemberJustNowNeedNotGiveWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := evicting(t, "preempt")
		d.state.UpsertQueue(&model.Queue{Name: model.DefaultQueue, Reclaimable: true})
		d.take()
		d.Hold()
		d.occupy("others", 5)
		d.occupy("lost", 2)
		d.Step()
		d.state.DeletePod(memberOf("lost", 1, "1").UID)
		d.state.UpsertPod(memberOf("lost", 2, "1"))
		d.halfOf("half", model.DefaultQueue, 1)
		half := *d.state.Summary(keyOf("half")).Group
		half.Terms.HalfTimeout = model.Say[time.Duration](0) // for ever
		d.state.UpsertGroup(keyOf("half"), &half)
		d.Step()
		d.preempts("half-1", config.Preempt)
		d.Refused("half-1", dispatch.Refusal{Reason: noRoom, Again: time.Now().Add(brokenTimeout)})
		time.Sleep(brokenTimeout)
		d.Step()
		d.preempts("half-1", config.Complete, config.Preempt)
	})
}
