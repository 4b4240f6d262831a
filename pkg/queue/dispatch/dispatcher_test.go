// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/queue/dispatch"
)

func TestOneTurnAtATimeInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t)
		d.submit("old", 2, 2, "1")
		d.submit("new", 2, 1, "1")
		d.want("old-0")
		if d.Gate("old-1") || d.Gate("new-0") {
			t.Error("the gate is open for a pod that does not lead")
		}
		d.plan("old-0")
		d.want("old-1")
		if !d.Gate("old-1") || !d.Urgent("old-1") {
			t.Error("the gate is closed for a planned member")
		}
		d.place("old-0")
		d.want()
		d.place("old-1")
		// The next turn begins with the reservation of the last member, not with an event or a tick.
		d.want("new-0")
	})
}

// TestQuietWhenAllIsTold: whoever steps a scheduler through time must not go on while a decision is on its way.
func TestQuietWhenAllIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixtureWith(t, args("enqueue allocate", byPriority, inGangs))
		admitted := make(chan bool)
		d.state.Observe(func(c model.Change) {
			if job := d.state.Summary(keyOf("job")); job != nil && job.Admitted {
				quiet, _ := d.Quiet()
				admitted <- quiet
			}
		})
		go d.submit("job", 1, 1, "16")
		if <-admitted {
			t.Error("it is quiet while the model is told that a job was let in")
		}
		go func() {
			for range admitted {
			}
		}()
		d.want("job-0")
		d.Enter("job-0")
		d.Refused("job-0", dispatch.Refusal{Reason: noRoom})
		d.want()
		if d.hasty {
			t.Error("it is quiet while it tells why a job waits")
		}
		close(admitted)
	})
}

func TestAHeldDispatcherBeginsATurnAStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t)
		d.Hold()
		// The younger job comes first, and both before a turn is given.
		d.submit("young", 1, 1, "1")
		d.submit("old", 1, 2, "1")
		d.want()
		d.Step()
		d.want("old-0")
		d.plan("old-0")
		d.place("old-0")
		d.want()
		if quiet, _ := d.Quiet(); quiet {
			t.Error("it is quiet though a turn has ended")
		}
		d.Step()
		d.want("young-0")
		// A turn that is on goes on.
		d.Step()
		d.want()
	})
}

// TestAStepBeginsOneTurnThoughItIsOverAtOnce: the scheduling loop may run a turn to its end before whoever began it is heard of again.
func TestAStepBeginsOneTurnThoughItIsOverAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newHeldFixture(t)
		d.submit("old", 1, 2, "1")
		d.submit("young", 1, 1, "1")
		d.overtake = func() {
			d.plan("old-0")
			d.place("old-0")
		}
		d.Step()
		d.want("old-0")
		d.Step()
		d.want("young-0")
	})
}

func TestARefusedJobIsParkedUntilSomethingHelps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t)
		d.submit("big", 3, 2, "4")
		d.submit("small", 1, 1, "1")
		d.want("big-0")
		d.Enter("big-0")
		d.Refused("big-0", dispatch.Refusal{Reason: noRoom})
		d.want("small-0")
		if got := d.last("big"); got != noRoom {
			t.Errorf("reported %v, want %v", got, noRoom)
		}
		d.plan("small-0")
		d.place("small-0")
		d.want()
		// 7 cores are idle of the 12 the gang needs: a second node of 4 is not worth a plan.
		d.addNode("node-1", "4")
		d.want()
		d.addNode("node-2", "4")
		d.want("big-0")
	})
}

func TestEqualJobsAreParkedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t)
		for i := range 5 {
			d.submit(fmt.Sprintf("job%d", i), 2, 9-i, "6")
		}
		d.want("job0-0")
		d.Enter("job0-0")
		d.Refused("job0-0", dispatch.Refusal{Reason: noRoom})
		// One plan answered for all five.
		d.want()
		for i := range 5 {
			if got := d.last(fmt.Sprintf("job%d", i)); got != noRoom {
				t.Errorf("job%d was told %v, want %v", i, got, noRoom)
			}
		}
	})
}

func TestEventsDuringATurnAreNotMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t)
		d.submit("big", 3, 1, "4")
		d.want("big-0")
		d.Enter("big-0")
		// The node comes while the plan is made without it.
		d.addNode("node-1", "8")
		d.Refused("big-0", dispatch.Refusal{Reason: noRoom})
		d.want("big-0")
	})
}

// TestARefusalByAStaleCacheIsChecked: the scheduler's cache did not have the node yet.
func TestARefusalByAStaleCacheIsChecked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t)
		d.submit("big", 3, 1, "4")
		d.want("big-0")
		d.refuse("big-0", dispatch.Refusal{Reason: noRoom})
		d.want()
		d.addNode("node-1", "8")
		d.want("big-0")
		d.refuse("big-0", dispatch.Refusal{Reason: noRoom, Stale: true})
		d.want()
		time.Sleep(1050 * time.Millisecond)
		d.want("big-0")
		d.refuse("big-0", dispatch.Refusal{Reason: noRoom})
		time.Sleep(4 * time.Minute)
		d.want()
	})
}

// TestWhatGoesByOtherPodsIsCheckedAfterAnEvent: the model and the scheduler's cache learn of other pods independently.
func TestWhatGoesByOtherPodsIsCheckedAfterAnEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t)
		p := memberOf("near", 0, "1")
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: "zone"}}}}
		d.state.UpsertGroup(keyOf("near"), &model.Group{UID: "near", Queue: model.DefaultQueue, MinMember: 1})
		d.state.UpsertPod(p)
		d.want("near-0")
		d.refuse("near-0", dispatch.Refusal{Reason: noRoom})
		d.want()
		other := memberOf("other", 0, "1")
		other.Spec.NodeName = "node-0"
		d.state.UpsertPod(other)
		d.want("near-0")
		d.refuse("near-0", dispatch.Refusal{Reason: noRoom})
		time.Sleep(150 * time.Millisecond)
		d.want("near-0")
		d.refuse("near-0", dispatch.Refusal{Reason: noRoom})
		d.want()
		time.Sleep(1050 * time.Millisecond)
		d.want("near-0")
		d.refuse("near-0", dispatch.Refusal{Reason: noRoom})
		time.Sleep(4 * time.Minute)
		d.want()
	})
}

// TestATurnThatIsRepeatedKeepsItsPlace: a job that was planned before the scheduler's cache knew of room goes before the next one, and that
// may take the cache some milliseconds.
func TestATurnThatIsRepeatedKeepsItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t)
		d.submit("old", 1, 2, "1")
		d.submit("new", 1, 1, "2")
		d.want("old-0")
		for n := range 10 {
			d.Enter("old-0")
			if !d.Repeat("old-0") {
				t.Fatal("the turn is not repeated")
			}
			if n >= 3 {
				d.want()
				time.Sleep(time.Millisecond)
			}
			d.want("old-0")
		}
		if d.Enter("old-0"); d.Repeat("old-0") {
			t.Error("the turn is repeated without end")
		}
		if told := d.last("old"); told != (model.Reason{}) {
			t.Errorf("the job was told to wait: %v", told)
		}
		d.plan("old-0")
		d.place("old-0")
		d.want("new-0")
		if d.Repeat("old-0") {
			t.Error("a turn is repeated that is over")
		}
		d.want()
	})
}

// TestATurnThatIsRepeatedKeepsItsPlaceThoughItTookLong: the allowance is spent by it, and the next job has more room to spare.
func TestATurnThatIsRepeatedKeepsItsPlaceThoughItTookLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t)
		d.Between()
		d.submit("old", 1, 2, "8")
		d.submit("new", 1, 1, "1")
		d.want("old-0")
		for range 3 {
			d.begin("old-0")
			d.Enter("old-0")
			if !d.Repeat("old-0") {
				t.Fatal("the turn is not repeated")
			}
			// To tell the API server takes long.
			time.Sleep(400 * time.Millisecond)
			d.Between()
			d.want("old-0")
		}
	})
}

// TestPausesAreBounded: a cache that is always behind costs others no more than what comes to nothing may.
func TestPausesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t)
		paused := 0
		for n := range 50 {
			job := fmt.Sprintf("job-%d", n)
			lead := types.UID(job + "-0")
			d.submit(job, 1, 1, "1m")
			d.want(lead)
			for d.Enter(lead); d.Repeat(lead); d.Enter(lead) {
				if synctest.Wait(); len(d.take()) == 0 {
					paused++
					time.Sleep(time.Millisecond)
					d.want(lead)
				}
			}
			d.plan(lead)
			d.place(lead)
		}
		// 50 at first, and a tenth of the time that has passed.
		if paused < 50 || paused > 56 {
			t.Errorf("%d of 50 x 7 turns that were repeated began after a pause of a millisecond, want 50 and a tenth of these", paused)
		}
	})
}

// TestABreathIsTakenNowAndThen: plans that came to nothing took more time than they may, and still the cache may be behind.
func TestABreathIsTakenNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t)
		d.submit("late", 1, 1, "1m")
		d.want("late-0")
		d.Enter("late-0")
		time.Sleep(90 * time.Millisecond)
		d.Refused("late-0", dispatch.Refusal{Reason: noRoom})
		d.state.DeletePod("late-0")
		d.take()
		d.submit("new", 1, 2, "1m")
		d.want("new-0")
		var pauses []int
		for n := 1; n <= 10; n++ {
			d.Enter("new-0")
			if !d.Repeat("new-0") {
				t.Fatalf("repetition %d is refused", n)
			}
			if synctest.Wait(); len(d.take()) == 0 {
				pauses = append(pauses, n)
				time.Sleep(time.Millisecond)
				d.want("new-0")
			}
		}
		if !slices.Equal(pauses, []int{4}) {
			t.Errorf("there was a pause after repetitions %v, want one after the fourth", pauses)
		}
	})
}

// TestAPlanIsTrustedUntilOthersInterfere: what a plan says about other pods holds while only its own members are placed.
func TestAPlanIsTrustedUntilOthersInterfere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t)
		trusted := func(pod types.UID, want bool) {
			t.Helper()
			if got := d.SkipsRecheck(pod); got != want {
				t.Errorf("the plan for pod %s is trusted: %t, want %t", pod, got, want)
			}
		}
		d.submit("gang", 3, 1, "1")
		d.want("gang-0")
		trusted("gang-0", true)
		trusted("gang-1", false)
		d.plan("gang-0")
		d.want("gang-1", "gang-2")
		trusted("gang-2", true)
		trusted("other", false)
		d.place("gang-0")
		trusted("gang-2", true)
		d.submit("later", 1, 0, "1")
		trusted("gang-2", true)
		stranger := memberOf("stranger", 0, "1")
		stranger.Spec.NodeName = "node-0"
		d.state.UpsertPod(stranger)
		trusted("gang-2", false)
		d.place("gang-1")
		d.place("gang-2")
		trusted("gang-2", false)
	})
}

func TestAMemberDeletedInTheTurnDoesNotHoldIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t)
		d.submit("a", 3, 2, "1")
		d.submit("b", 1, 1, "1")
		d.want("a-0")
		d.plan("a-0")
		d.want("a-1", "a-2")
		d.place("a-0")
		d.place("a-1")
		d.state.LeavePod("a-2")
		d.want("b-0")
	})
}

func TestALeadDeletedBeforeItsCycleEndsTheTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t)
		d.submit("a", 1, 2, "1")
		d.submit("b", 1, 1, "1")
		d.want("a-0")
		d.state.LeavePod("a-0")
		d.want("b-0")
	})
}

func TestAJobWhoseNodeWasLostIsPlannedAgainFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t)
		d.submit("older", 1, 9, "8")
		d.want("older-0")
		d.Enter("older-0")
		d.Refused("older-0", dispatch.Refusal{Reason: noRoom})
		d.submit("b", 1, 5, "1")
		d.submit("a", 2, 2, "1")
		d.want("b-0")
		d.plan("b-0")
		d.place("b-0")
		d.want("a-0")
		d.plan("a-0")
		d.want("a-1")
		d.place("a-0")
		d.submit("c", 1, 5, "1")
		d.Lost("a-1", keyOf("a"))
		// One of two members holds its node: the job comes before the older one.
		d.want("a-1")
	})
}

func TestErrorsBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t)
		d.submit("a", 1, 1, "1")
		// The first failure is followed by another attempt at once.
		for _, pause := range []time.Duration{0, 0, 100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond} {
			d.wantWithin(pause, "a-0")
			d.Enter("a-0")
			d.Errored("a-0", errors.New("a plugin failed"))
		}
		if got := d.last("a"); got.Kind != model.SchedulerError {
			t.Errorf("reported %v, want an error", got)
		}
	})
}

// TestATurnThatStandsStillIsNudgedAndGivenUp: the scheduling queue lost the pod of the first job.
func TestATurnThatStandsStillIsNudgedAndGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t)
		d.submit("a", 1, 2, "1")
		d.submit("b", 1, 1, "2")
		d.want("a-0")
		time.Sleep(110 * time.Millisecond)
		d.want("a-0")
		time.Sleep(95 * time.Millisecond)
		// A first failure is followed by another attempt, the next one by a rest.
		d.want("a-0")
		time.Sleep(205 * time.Millisecond)
		d.want("a-0", "b-0")
		if d.turnsAbandoned != 2 {
			t.Errorf("%d turns were given up, want 2", d.turnsAbandoned)
		}
		d.plan("b-0")
		d.place("b-0")
		time.Sleep(time.Minute)
		if got := d.take(); len(got) > 40 {
			t.Errorf("a pod that is lost is activated %d times in a minute", len(got))
		}
	})
}

func TestMembersOfAFragileTurnBindTogetherOrNotAtAll(t *testing.T) {
	for name, tc := range map[string]struct {
		last func(*fixture)
		want map[types.UID]bool
	}{
		"all bind when the last one is reserved":      {func(d *fixture) { d.place("a-1") }, map[types.UID]bool{"a-0": true, "a-1": true}},
		"none binds when one cannot be reserved":      {func(d *fixture) { d.Lost("a-1", keyOf("a")) }, map[types.UID]bool{"a-0": false, "a-1": false}},
		"none binds when one is deleted meanwhile":    {func(d *fixture) { d.state.LeavePod("a-1") }, map[types.UID]bool{"a-0": false, "a-1": false}},
		"none binds when the turn comes to a stop":    {func(*fixture) { time.Sleep(time.Minute) }, map[types.UID]bool{"a-0": false, "a-1": false}},
		"nobody is told while a member is on its way": {func(*fixture) {}, map[types.UID]bool{}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newFixture(t)
				d.submit("a", 2, 1, "1")
				d.want("a-0")
				job := d.Enter("a-0").Job
				d.Planned("a-0", []*corev1.Pod{job.Tasks[0].Pod, job.Tasks[1].Pod}, []string{"node-0", "node-0"}, true)
				d.state.Assume("a-0", "node-0")
				if !d.Reserved("a-0") {
					t.Error("the first member may bind, want it to wait")
				}
				tc.last(d)
				d.take()
				if diff := cmp.Diff(tc.want, d.settled); diff != "" {
					t.Errorf("settled (-want,+got)\n%s", diff)
				}
			})
		})
	}
}

func TestBlockedJobsSayWhyAndLetOthersPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t)
		d.state.UpsertGroup(keyOf("lost"), &model.Group{Queue: "nowhere", MinMember: 1, Created: epoch.Add(-time.Hour)})
		d.state.UpsertPod(memberOf("lost", 0, "1"))
		d.state.UpsertPod(memberOf("orphan", 0, "1"))
		d.submit("good", 1, 1, "1")
		d.want("good-0")
		for job, kind := range map[string]model.ReasonKind{"lost": model.QueueNotFound, "orphan": model.PodGroupNotFound} {
			if got := d.last(job); got.Kind != kind {
				t.Errorf("job %s was told %v, want %s", job, got, kind)
			}
		}
		d.plan("good-0")
		d.place("good-0")
		d.state.UpsertQueue(&model.Queue{Name: "nowhere"})
		d.want("lost-0")
	})
}
