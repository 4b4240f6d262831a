// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/queue/dispatch"
)

// wantRenewed fails the test unless a job waits for a reason whose message has some text.
func (d *fixture) wantRenewed(job, text string) {
	d.t.Helper()
	synctest.Wait()
	if got := d.Renewed()[keyOf(job)]; !strings.Contains(got.Message, text) {
		d.t.Errorf("%s waits since %q, want %q", job, got.Message, text)
	}
	for _, w := range d.View().Waiting() {
		if w.Job == keyOf(job) && !strings.Contains(w.Reason.Message, text) {
			d.t.Errorf("%s is shown to wait since %q, want %q", job, w.Reason.Message, text)
		}
	}
}

// TestWhatAQueueHoldsIsToldAsItIs: others of the queue start, and the job that is held is told so when somebody asks.
func TestWhatAQueueHoldsIsToldAsItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixtureWith(t, args("allocate backfill", byPriority, inGangs, byCapacity))
		d.state.UpsertQueue(&model.Queue{Name: "tight", Capability: cores(4)})
		d.group("too-much", "tight", 5, 9, nil)
		d.pods("too-much", 5, "1")
		d.run()
		d.wantRenewed("too-much", "0 held, 5 asked for, limit 4")
		d.group("fits", "tight", 2, 8, nil)
		d.pods("fits", 2, "1")
		d.run()
		d.wantRenewed("too-much", "2 held, 5 asked for, limit 4")
		if told := d.last("too-much"); !strings.Contains(told.Message, "0 held") {
			t.Errorf("it was told %q: other numbers are not told of each job", told.Message)
		}
	})
}

// TestWhoIsNotLetInIsVotedOnAgain: when the numbers are a minute old.
func TestWhoIsNotLetInIsVotedOnAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixtureWith(t, args("enqueue allocate backfill", byPriority, inGangs, byProportion))
		d.state.UpsertQueue(&model.Queue{Name: "tight", Weight: 1, Capability: cores(4)})
		d.group("too-much", "tight", 5, 9, cores(5))
		d.pods("too-much", 5, "1")
		d.wantRenewed("too-much", "0 held or promised, 5 asked for, limit 4")
		d.group("fits", "tight", 2, 8, cores(2))
		d.pods("fits", 2, "1")
		d.run()
		d.wantRenewed("too-much", "0 held or promised")
		time.Sleep(time.Minute)
		d.Renewed()
		d.wantRenewed("too-much", "2 held or promised, 5 asked for, limit 4")
	})
}

// TestWhoStandsBeforeAGateIsLookedAtAgain: when the numbers are a minute old.
func TestWhoStandsBeforeAGateIsLookedAtAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := gatedQueue(t, 4)
		d.gated("too-much", "limited", 5, 5, 9, "1")
		d.wantRenewed("too-much", "0 held, 5 asked for, limit 4")
		d.group("fits", "limited", 2, 8, nil)
		d.pods("fits", 2, "1")
		d.run()
		time.Sleep(time.Minute)
		d.Renewed()
		d.wantRenewed("too-much", "2 held, 5 asked for, limit 4")
	})
}

// short is a reason with a number.
func short(by int) dispatch.Refusal {
	return dispatch.Refusal{Reason: model.Reason{
		Kind: model.NotEnoughResources, Subject: "cpu", FromNodes: true, Message: fmt.Sprintf("insufficient cpu, short by %d", by),
	}}
}

// TestAPlanIsMadeAgainWhenHalfOfThePlacesChange: a gang of twelve finds eight, then three; a place more or less is not worth a plan.
func TestAPlanIsMadeAgainWhenHalfOfThePlacesChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t)
		d.submit("gang", 12, 1, "1")
		d.want("gang-0")
		d.refuse("gang-0", short(4))
		asked := func() {
			t.Helper()
			d.Renewed()
			time.Sleep(30 * time.Second)
			d.Renewed()
		}
		asked()
		d.want()
		d.wantRenewed("gang", "short by 4")
		d.addNode("node-0", "7")
		asked()
		d.want()
		d.addNode("node-0", "3")
		asked()
		d.want("gang-0")
		d.refuse("gang-0", short(9))
		d.wantRenewed("gang", "short by 9")
		asked()
		d.want()
		d.addNode("node-0", "6")
		asked()
		d.want("gang-0")
		d.refuse("gang-0", short(6))
		d.wantRenewed("gang", "short by 6")
	})
}

// TestAJobThatIsPutOffIsPlannedAgain: each minute something happens that does not help it, so that it is set aside again without a plan. All the
// same it has one after five minutes, and is told of nodes though its queue lacks room, too.
func TestAJobThatIsPutOffIsPlannedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixtureWith(t, args("allocate backfill", byPriority, inGangs, byProportion))
		d.submit("gang", 12, 1, "1")
		d.want("gang-0")
		refusal := short(4)
		refusal.Uncounted = true
		d.refuse("gang-0", refusal)
		for minute := range 4 {
			time.Sleep(time.Minute)
			d.state.UpsertQueue(&model.Queue{Name: model.DefaultQueue, Priority: int32(minute)})
			d.want()
		}
		time.Sleep(time.Minute)
		d.want("gang-0")
		d.refuse("gang-0", short(5))
		d.wantRenewed("gang", "short by 5")
	})
}
