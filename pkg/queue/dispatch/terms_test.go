// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch_test

import (
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/queue/dispatch"
)

// broken submits a gang of three of which some members hold nodes; lost: it was whole, and has lost members since. Nobody waits for a node.
func (d *fixture) broken(job string, placed int, lost bool, terms model.Terms) {
	d.say(job, terms)
	if lost {
		for i := range 3 {
			d.bind(job, i)
		}
		synctest.Wait()
		for i := placed; i < 3; i++ {
			d.state.DeletePod(memberOf(job, i, "1").UID)
		}
	} else {
		for i := range placed {
			d.bind(job, i)
		}
	}
	synctest.Wait()
}

// say has the PodGroup of a gang of three say how long it may be broken.
func (d *fixture) say(job string, terms model.Terms) {
	d.state.UpsertGroup(keyOf(job), &model.Group{UID: types.UID(job), Queue: model.DefaultQueue, MinMember: 3, Created: epoch, Terms: terms})
}

// TestAPodGroupSaysHowLongItsGangMayBeBroken: what it does not say, the arguments do.
func TestAPodGroupSaysHowLongItsGangMayBeBroken(t *testing.T) {
	const soon, never = 10 * time.Second, 0
	for name, tc := range map[string]struct {
		lost  bool
		said  model.Terms
		after time.Duration // zero: it is not released
	}{
		"half, and it does not say":      {after: halfTimeout},
		"half, sooner":                   {said: model.Terms{HalfTimeout: model.Say(soon)}, after: soon},
		"half, later":                    {said: model.Terms{HalfTimeout: model.Say(3 * halfTimeout)}, after: 3 * halfTimeout},
		"half, never":                    {said: model.Terms{HalfTimeout: model.Say[time.Duration](never)}},
		"half, and it says it of lost":   {said: model.Terms{BrokenTimeout: model.Say(soon), ReleaseLost: model.Say(false)}, after: halfTimeout},
		"lost, and it does not say":      {lost: true},
		"lost, and it says it of half":   {lost: true, said: model.Terms{HalfTimeout: model.Say(soon)}},
		"lost, released":                 {lost: true, said: model.Terms{ReleaseLost: model.Say(true)}, after: brokenTimeout},
		"lost, released sooner":          {lost: true, said: model.Terms{ReleaseLost: model.Say(true), BrokenTimeout: model.Say(soon)}, after: soon},
		"lost, with a time that is none": {lost: true, said: model.Terms{ReleaseLost: model.Say(true), BrokenTimeout: model.Say[time.Duration](never)}},
		"lost, and sooner means nothing": {lost: true, said: model.Terms{BrokenTimeout: model.Say(soon)}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newFixture(t)
				d.broken("job", 2, tc.lost, tc.said)
				if tc.after == 0 {
					time.Sleep(10 * brokenTimeout)
					d.wantReleased()
					return
				}
				time.Sleep(tc.after - time.Millisecond)
				d.wantReleased()
				time.Sleep(2 * time.Millisecond)
				d.wantReleased("job")
			})
		})
	}
}

// TestWhatAPodGroupSaysOfItsGangCountsAtOnce: it is warned again of another time.
func TestWhatAPodGroupSaysOfItsGangCountsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t)
		d.broken("job", 2, true, model.Terms{})
		time.Sleep(4 * time.Minute)
		d.wantWarned("job lost 2m30s of 5m0s")
		d.say("job", model.Terms{BrokenTimeout: model.Say(7 * time.Minute)})
		d.wantWarned("job lost 4m0s of 7m0s")
		d.say("job", model.Terms{BrokenTimeout: model.Say(20 * time.Minute)})
		d.wantWarned()
		time.Sleep(7 * time.Minute)
		d.wantWarned("job lost 10m0s of 20m0s")
		d.wantReleased()
		d.say("job", model.Terms{BrokenTimeout: model.Say(11 * time.Minute)})
		d.wantReleased()
		d.say("job", model.Terms{BrokenTimeout: model.Say(11 * time.Minute), ReleaseLost: model.Say(true)})
		d.wantReleased("job")
	})
}

// TestAReleaseThatNeverComesIsTold: its PodGroup wants the gang released, and the scheduler's time is for ever.
func TestAReleaseThatNeverComesIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newStandby(t)
		rules := dispatch.Rules{Policies: policies(t, plain()), HalfTimeout: halfTimeout}
		go d.Run(t.Context())
		if err := d.Adopt(t.Context(), rules, func() {}); err != nil {
			t.Fatal(err)
		}
		d.broken("wanted", 2, true, model.Terms{ReleaseLost: model.Say(true)})
		d.broken("not", 2, true, model.Terms{})
		d.broken("for ever", 2, true, model.Terms{BrokenTimeout: model.Say[time.Duration](0)})
		d.wantWarned("wanted lost 0s of 0s")
		time.Sleep(10 * brokenTimeout)
		d.wantWarned()
		d.wantReleased()
	})
	synctest.Test(t, func(t *testing.T) {
		args := plain()
		args.ReleaseLost = true
		d := newFixtureWith(t, args)
		d.broken("for ever", 2, true, model.Terms{BrokenTimeout: model.Say[time.Duration](0)})
		d.wantWarned()
	})
}
