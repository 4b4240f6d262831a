// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/queue/dispatch"
)

// blocked is a fixture whose eight cores, of which 9.6 may be promised, are promised to a gang of two pods of four cores each, which nodes
// have refused.
func blocked(t *testing.T) *fixture {
	d := newFixtureWith(t, args("enqueue allocate backfill", byPriority, inGangs, byOvercommit))
	d.submit("stuck", 2, 9, "4")
	d.want("stuck-0")
	d.refuse("stuck-0", dispatch.Refusal{Reason: noRoom})
	d.want()
	return d
}

// wantAfter waits until just before the jobs stall, and then until just after it.
func (d *fixture) wantAfter(uids ...types.UID) {
	d.t.Helper()
	time.Sleep(stalledAfter - time.Millisecond)
	d.want()
	time.Sleep(2 * time.Millisecond)
	d.want(uids...)
}

// TestAGuestIsLetInWhereItFits: what was promised to a gang that nodes refuse keeps others out for a while only.
func TestAGuestIsLetInWhereItFits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := blocked(t)
		d.submit("guest", 2, 1, "1")
		d.admitted("stuck")
		d.wantAfter("guest-0")
		d.admitted("stuck")
		if got := d.last("guest").Kind; got != model.NotAdmitted {
			t.Errorf("a guest without a plan waits because of %s, want %s", got, model.NotAdmitted)
		}
		d.plan("guest-0")
		// The model knows before the pods can be bound.
		d.admitted("stuck", "guest")
		d.place("guest-0")
		d.place("guest-1")
		d.want("guest-1")
		if got := d.last("guest"); got != (model.Reason{}) {
			t.Errorf("it waits because of %v", got)
		}
		// The next one need not wait.
		d.submit("later", 1, 1, "1")
		d.want("later-0")
	})
}

// TestWhoFailsKeepsNobodyOut: what was promised to a gang that failed, as when its binds are refused, keeps nobody out. It has its turns first
// all the same, and once it is bound it is a job like any other.
func TestWhoFailsKeepsNobodyOut(t *testing.T) {
	for name, tc := range map[string]struct {
		after time.Duration
		want  []types.UID
	}{
		"as it is by default":        {stalledAfter, []types.UID{"guest-0"}},
		"where promises never lapse": {0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rules := args("enqueue allocate backfill", byPriority, inGangs, byOvercommit)
				d := newFixtureWith(t, rules)
				if err := d.Adopt(t.Context(), dispatch.Rules{Policies: policies(t, rules), StalledAfter: tc.after}, func() {}); err != nil {
					t.Fatal(err)
				}
				d.submit("stuck", 2, 9, "4")
				d.submit("guest", 2, 1, "1")
				d.want("stuck-0")
				d.Enter("stuck-0")
				d.Errored("stuck-0", errors.New("refused"))
				d.want("stuck-0")
				d.Enter("stuck-0")
				d.Errored("stuck-0", errors.New("refused again"))
				d.want(tc.want...)
				d.admitted("stuck")
				if tc.after == 0 {
					return
				}
				d.refuse("guest-0", dispatch.Refusal{Reason: noRoom})
				d.want()
				// Its turn comes now, without any other news.
				d.Bound(keyOf("stuck"))
				d.want("stuck-0")
				d.refuse("stuck-0", dispatch.Refusal{Reason: noRoom})
				d.submit("later", 2, 1, "1")
				d.want()
			})
		})
	}
}

// TestWhoMayHaveNoTurnsKeepsNobodyOut: a gang was let in, and pods of it are missing. Its promise keeps others out for a while only.
func TestWhoMayHaveNoTurnsKeepsNobodyOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixtureWith(t, args("enqueue allocate backfill", byPriority, inGangs, byOvercommit))
		d.group("stuck", model.DefaultQueue, 2, 9, cores(8))
		synctest.Wait()
		// The controller is slow.
		time.Sleep(2 * stalledAfter)
		d.pods("stuck", 1, "4")
		d.want()
		d.submit("guest", 2, 1, "1")
		d.admitted("stuck")
		d.wantAfter("guest-0")
		d.refuse("guest-0", dispatch.Refusal{Reason: noRoom})
		d.pods("stuck", 2, "4")
		d.want("stuck-0")
		d.refuse("stuck-0", dispatch.Refusal{Reason: noRoom})
		// What it was promised counts again.
		d.submit("later", 2, 1, "1")
		d.want()
		d.wantAfter("guest-0")
	})
}

// TestWhosePodsAreCreatedOneByOneKeepsOthersOut: as long as more pods of a gang appear. One that comes back is not one more.
func TestWhosePodsAreCreatedOneByOneKeepsOthersOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixtureWith(t, args("enqueue allocate backfill", byPriority, inGangs, byOvercommit))
		d.group("slow", model.DefaultQueue, 8, 9, cores(8))
		d.submit("guest", 2, 1, "1")
		for n := 1; n < 8; n++ {
			d.pods("slow", n, "1")
			time.Sleep(stalledAfter - time.Millisecond)
		}
		d.want()
		d.state.DeletePod(memberOf("slow", 6, "1").UID)
		d.pods("slow", 7, "1")
		time.Sleep(2 * time.Millisecond)
		d.want("guest-0")
	})
}

// TestAGuestThatFitsNowhereStaysOutside: no more is promised than without guests, and whoever comes behind it is tried.
func TestAGuestThatFitsNowhereStaysOutside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := blocked(t)
		d.submit("vain", 2, 5, "3")
		d.wantAfter("vain-0")
		d.refuse("vain-0", dispatch.Refusal{Reason: noRoom})
		d.admitted("stuck")
		if got := d.last("vain").Kind; got != model.NotAdmitted {
			t.Errorf("it waits because of %s, want %s", got, model.NotAdmitted)
		}
		d.submit("fits", 1, 1, "2")
		d.want("fits-0")
		d.plan("fits-0")
		d.place("fits-0")
		d.want()
		time.Sleep(time.Minute)
		// Nothing happens, so it is not tried again.
		d.want()
		d.admitted("stuck", "fits")
	})
}

// TestGuestsComeLast: whoever was let in has its turn before them, however old they are.
func TestGuestsComeLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixtureWith(t, args("enqueue allocate backfill", byPriority, inGangs, byOvercommit))
		d.occupy("others", 4)
		d.submit("stuck", 2, 9, "2500m")
		d.want("stuck-0")
		d.refuse("stuck-0", dispatch.Refusal{Reason: noRoom})
		d.submit("guest", 1, 20, "4500m")
		d.wantAfter("guest-0")
		d.refuse("guest-0", dispatch.Refusal{Reason: noRoom})
		// Now either fits. Of 9.6 cores 3 are used and 5 are promised.
		d.state.DeletePod("others-3")
		d.want("stuck-0")
		d.refuse("stuck-0", dispatch.Refusal{Reason: noRoom})
		d.want("guest-0")
		d.admitted("others", "stuck")
	})
}

// TestWhatIsPromisedToOthersIsNotForGuests: only what stalled jobs were promised is.
func TestWhatIsPromisedToOthersIsNotForGuests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixtureWith(t, args("enqueue allocate backfill", byPriority, inGangs, byOvercommit))
		d.submit("stuck", 2, 9, "2")
		d.want("stuck-0")
		d.refuse("stuck-0", dispatch.Refusal{Reason: noRoom})
		time.Sleep(stalledAfter - time.Second)
		d.submit("fresh", 2, 8, "2500m")
		d.want("fresh-0")
		d.refuse("fresh-0", dispatch.Refusal{Reason: noRoom})
		// 4 cores are promised to the one, 5 to the other, of 9.6.
		d.submit("large", 2, 7, "2500m")
		d.submit("small", 2, 6, "2")
		time.Sleep(time.Second + time.Millisecond)
		d.want("small-0")
		d.refuse("small-0", dispatch.Refusal{Reason: noRoom})
		d.want()
		time.Sleep(stalledAfter - time.Second - 2*time.Millisecond)
		d.want()
		time.Sleep(2 * time.Millisecond)
		d.want("large-0")
		d.admitted("stuck", "fresh")
	})
}

// TestAGuestWhoseHostIsGone: there is nobody whose room it uses.
func TestAGuestWhoseHostIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := blocked(t)
		d.submit("guest", 1, 1, "2")
		d.wantAfter("guest-0")
		d.refuse("guest-0", dispatch.Refusal{Reason: noRoom})
		for _, uid := range []types.UID{"stuck-0", "stuck-1"} {
			d.state.DeletePod(uid)
		}
		d.state.DeleteGroup(keyOf("stuck"))
		d.admitted("guest")
		d.want("guest-0")
		d.plan("guest-0")
		d.place("guest-0")
		d.want()
	})
}

// TestAGuestWithoutAllOfItsPodsWaits: there is nothing to plan.
func TestAGuestWithoutAllOfItsPodsWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := blocked(t)
		d.group("guest", model.DefaultQueue, 2, 1, cores(2))
		d.pods("guest", 1, "1")
		d.wantAfter()
		d.admitted("stuck")
		d.pods("guest", 2, "1")
		d.want("guest-0")
	})
}

// TestAGuestWithoutPodsIsTrusted: a controller that creates pods once their group is let in gets to do so, if there is room in sum.
func TestAGuestWithoutPodsIsTrusted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := blocked(t)
		d.occupy("others", 2)
		for _, job := range []string{"a", "b", "c", "d"} {
			d.group(job, model.DefaultQueue, 2, 1, cores(2))
		}
		time.Sleep(stalledAfter - time.Millisecond)
		d.admitted("others", "stuck")
		time.Sleep(2 * time.Millisecond)
		// Of 8 cores 2 are used.
		d.admitted("others", "stuck", "a", "b", "c")
		d.pods("a", 2, "1")
		d.want("a-0")
	})
}

// TestGuestsMayNotEvict: they have not been let in.
func TestGuestsMayNotEvict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixtureWith(t, args("enqueue allocate preempt", byPriority, inGangs, byOvercommit))
		d.state.UpsertPriorityClass("high", 1000, false)
		d.state.UpsertPriorityClass("low", 1, false)
		d.occupy("low", 1)
		d.submit("stuck", 2, 9, "4")
		d.want("stuck-0")
		d.Enter("stuck-0")
		d.Refused("stuck-0", dispatch.Refusal{Reason: noRoom})
		// Gains count at admission where one may evict: it asks for more than those.
		d.ask("guest", 4, "high")
		time.Sleep(stalledAfter + time.Millisecond)
		for taken := d.take(); len(taken) > 0; taken = d.take() {
			entry := d.Enter(taken[0])
			if a := d.MayPreempt(taken[0]); taken[0] == "guest-0" && !entry.Job.Admitted && len(a.Actions) > 0 {
				t.Errorf("a guest may evict by %v", a.Actions)
			}
			d.Refused(taken[0], dispatch.Refusal{Reason: noRoom})
		}
		if got := d.last("guest").Kind; got != model.NotAdmitted {
			t.Errorf("the guest waits because of %s, want %s", got, model.NotAdmitted)
		}
	})
}

// TestNoGuestsWhereTheyAreOff is Volcano's rule: what was promised is kept for ever.
func TestNoGuestsWhereTheyAreOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newStandbyWith(t, args("enqueue allocate", byPriority, inGangs, byOvercommit))
		go d.Run(t.Context())
		set := policies(t, args("enqueue allocate", byPriority, inGangs, byOvercommit))
		if err := d.Adopt(t.Context(), dispatch.Rules{Policies: set, AdmissionTimeout: patience}, func() {}); err != nil {
			t.Fatal(err)
		}
		d.submit("stuck", 2, 9, "4")
		d.want("stuck-0")
		d.refuse("stuck-0", dispatch.Refusal{Reason: noRoom})
		d.submit("guest", 1, 1, "2")
		time.Sleep(time.Hour)
		for _, uid := range d.take() {
			if uid == "guest-0" {
				t.Error("a guest has a turn")
			}
		}
		d.admitted("stuck")
	})
}

// TestGuestsOfAQueue: a queue's limit, too, is not kept for those that nodes refuse.
func TestGuestsOfAQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, plugin := range []config.TierPlugin{byCapacity, byProportion} {
			d := newFixtureWith(t, args("enqueue allocate backfill", byPriority, inGangs, plugin))
			d.state.UpsertQueue(&model.Queue{Name: model.DefaultQueue, Weight: 1, Capability: cores(5)})
			d.submit("stuck", 2, 9, "2")
			d.want("stuck-0")
			d.refuse("stuck-0", dispatch.Refusal{Reason: noRoom})
			d.submit("guest", 1, 1, "2")
			d.wantAfter("guest-0")
			d.plan("guest-0")
			d.place("guest-0")
			// What the queue holds counts as ever.
			d.submit("more", 1, 1, "4")
			d.want()
			d.admitted("stuck", "guest")
		}
	})
}
