// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/queue/dispatch"
)

// adopt begins to adopt the rules of other arguments, and returns what tells that they are in force.
func (d *fixture) adopt(args *config.BatchQueueArgs) <-chan bool {
	adopted := make(chan bool, 1)
	rules := dispatch.Rules{Policies: policies(d.t, args), AdmissionTimeout: patience, StalledAfter: stalledAfter}
	go func() {
		if err := d.Adopt(d.t.Context(), rules, func() { adopted <- true }); err != nil {
			d.t.Error(err)
		}
	}()
	synctest.Wait()
	return adopted
}

// important makes a job more important than others for those who ask.
func (d *fixture) important(job string) {
	d.state.UpsertPriorityClass("high", 100, false)
	group := *d.state.Job(keyOf(job)).Group
	group.PriorityClass = "high"
	d.state.UpsertGroup(keyOf(job), &group)
}

func TestOtherRulesAreInForceFromTheNextTurnOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixtureWith(t, args("allocate", inGangs))
		d.submit("first", 2, 9, "1")
		d.submit("old", 1, 5, "1")
		d.submit("important", 1, 1, "1")
		d.important("important")
		d.want("first-0")
		adopted := d.adopt(args("allocate", byPriority, inGangs))
		d.plan("first-0")
		d.want("first-1")
		d.place("first-0")
		if len(adopted) > 0 {
			t.Fatal("the rules changed in the middle of a turn")
		}
		d.place("first-1")
		if len(adopted) == 0 {
			t.Error("the rules did not change with the end of the turn")
		}
		d.want("important-0")
	})
}

func TestOtherRulesAreInForceAtOnceBetweenTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixtureWith(t, args("allocate", inGangs))
		// A best-effort pod waits as long as no action places such pods.
		d.submit("loose", 1, 1, "0")
		d.want()
		if got := d.last("loose").Kind; got != model.BackfillOff {
			t.Fatalf("the job waits because of %q, want %s", got, model.BackfillOff)
		}
		if adopted := d.adopt(args("allocate backfill", inGangs)); len(adopted) == 0 {
			t.Error("the rules did not change")
		}
		d.want("loose-0")
	})
}

// TestWhatWasFoundOutByOldRulesIsForgotten: a job that did not fit is tried again, one that was let in stays so, and a reason that
// is still the same is not told again.
func TestWhatWasFoundOutByOldRulesIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inBounds := config.TierPlugin{Name: config.PluginOvercommit}
		d := newFixtureWith(t, args("enqueue allocate", byPriority, inGangs, inBounds))
		d.submit("small", 2, 9, "4")
		d.want("small-0")
		// A PodGroup that comes before its pods would be let in unseen.
		d.state.UpsertPod(memberOf("big", 0, "16"))
		d.submit("big", 1, 1, "16")
		d.Enter("small-0")
		d.Refused("small-0", dispatch.Refusal{Reason: noRoom})
		d.want()
		told := len(d.reasons[keyOf("big")])
		d.adopt(args("enqueue allocate", inGangs, inBounds))
		d.want("small-0")
		if !d.state.Summary(keyOf("small")).Admitted {
			t.Error("a job that was let in has to ask again")
		}
		d.Enter("small-0")
		d.Refused("small-0", dispatch.Refusal{Reason: noRoom})
		d.want()
		if got := d.reasons[keyOf("big")]; len(got) != told {
			t.Errorf("a job that still waits for the same was told so again: %v", got)
		}
		// What helps is seen by the accounts of the new rules.
		d.addNode("node-1", "32")
		d.want("small-0")
		d.Enter("small-0")
		d.Refused("small-0", dispatch.Refusal{Reason: noRoom})
		d.want("big-0")
	})
}

func TestRulesThatNobodyWaitsForAnyMoreAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t)
		d.submit("job", 1, 1, "1")
		d.want("job-0")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("the scheduler ends"))
		in := false
		err := d.Adopt(ctx, dispatch.Rules{Policies: policies(t, plain())}, func() { in = true })
		if err == nil || err.Error() != "waiting for the turn to end: the scheduler ends" {
			t.Errorf("error is %v", err)
		}
		d.plan("job-0")
		d.place(types.UID("job-0"))
		d.want()
		if in {
			t.Error("the rules came into force all the same")
		}
	})
}

// TestAJobWhosePodIsAwayIsNotForgottenByNewRules: nobody tells of the pod of a refused binding any more.
func TestAJobWhosePodIsAwayIsNotForgottenByNewRules(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t)
		d.Between()
		d.submit("a", 1, 1, "1")
		d.want("a-0")
		d.begin("a-0")
		d.plan("a-0")
		d.place("a-0")
		d.Between()
		d.unreserve("a", "a-0")
		d.want()
		d.adopt(plain())
		d.wantWithin(30*time.Second, "a-0")
	})
}
