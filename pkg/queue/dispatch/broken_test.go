// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/queue/dispatch"
)

// bind has the API server place a pod of a job.
func (d *fixture) bind(job string, i int) {
	p := memberOf(job, i, "1")
	p.Spec.NodeName = "node-0"
	d.state.UpsertPod(p)
}

// leave has the pods of a job that have nodes go, and new ones come in their place.
func (d *fixture) leave(job string, members ...int) {
	for _, i := range members {
		d.state.DeletePod(memberOf(job, i, "1").UID)
		d.state.UpsertPod(memberOf(job, i, "1"))
	}
}

// wantReleased takes what is to be released since the last call.
func (d *fixture) wantReleased(jobs ...string) {
	d.t.Helper()
	synctest.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	if !slices.Equal(d.released, jobs) {
		d.t.Errorf("after %s %v are released, want %v", time.Since(d.began), d.released, jobs)
	}
	d.released = nil
}

// TestAHalfGangIsReleased: its last member cannot be bound. It rests longer each time, from the second on.
func TestAHalfGangIsReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t)
		d.submit("half", 3, 1, "1")
		for _, rest := range []time.Duration{0, time.Minute, 2 * time.Minute, 4 * time.Minute} {
			d.take()
			d.bind("half", 0)
			d.wantReleased()
			d.wantBroken(1, 0)
			time.Sleep(halfTimeout / 2)
			d.wantWarned("half half 30s of 1m0s")
			// That it gets on does not count.
			d.bind("half", 1)
			time.Sleep(halfTimeout/2 - time.Millisecond)
			d.wantReleased()
			time.Sleep(2 * time.Millisecond)
			d.wantReleased("half")
			d.leave("half", 0, 1)
			d.take()
			d.wantBroken(0, 0)
			if rest > 0 {
				time.Sleep(rest - time.Second)
				d.want()
				time.Sleep(time.Second)
				d.want("half-0")
			}
		}
	})
}

// wantWarned takes what was told of broken gangs since the last call.
func (d *fixture) wantWarned(jobs ...string) {
	d.t.Helper()
	synctest.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	if !slices.Equal(d.warned, jobs) {
		d.t.Errorf("after %s it is told that %q, want %q", time.Since(d.began), d.warned, jobs)
	}
	d.warned = nil
}

// TestAGangThatLostMembersIsReleasedIfThatIsWanted: it is warned when half of its time is over. That a member comes back and goes again does
// not count until its bind is known.
func TestAGangThatLostMembersIsReleasedIfThatIsWanted(t *testing.T) {
	for _, wanted := range []bool{false, true} {
		t.Run(fmt.Sprintf("wanted: %t", wanted), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				args := plain()
				args.ReleaseLost = wanted
				d := newFixtureWith(t, args)
				d.group("lost", model.DefaultQueue, 3, 3, nil)
				for i := range 3 {
					d.bind("lost", i)
				}
				synctest.Wait()
				d.state.DeletePod(memberOf("lost", 2, "1").UID)
				d.wantBroken(0, 1)
				time.Sleep(brokenTimeout/2 - time.Second)
				d.state.UpsertPod(memberOf("lost", 2, "1"))
				d.want("lost-2")
				d.plan("lost-2")
				d.place("lost-2")
				synctest.Wait()
				d.state.Forget("lost-2")
				d.state.DeletePod("lost-2")
				d.Unreserved("lost-2", keyOf("lost"))
				d.wantWarned()
				time.Sleep(2 * time.Second)
				d.wantWarned("lost lost 2m30s of 5m0s")
				time.Sleep(brokenTimeout / 2)
				d.wantWarned()
				if wanted {
					d.wantReleased("lost")
				} else {
					d.wantReleased()
				}
				d.wantBroken(0, 1)
				d.bind("lost", 2)
				d.wantBroken(0, 0)
				time.Sleep(2 * brokenTimeout)
				d.wantWarned()
				d.wantReleased()
			})
		})
	}
}

// wantBroken counts the gangs that are broken.
func (d *fixture) wantBroken(half, lost int) {
	d.t.Helper()
	synctest.Wait()
	if got := d.View().Broken(); got[dispatch.Half] != half || got[dispatch.Lost] != lost {
		d.t.Errorf("after %s there are %v, want %d half and %d lost", time.Since(d.began), got, half, lost)
	}
}

// TestABindThatIsRefusedMakesNoGangWhole: each attempt reserves a node for the last member, which the API server then refuses to bind.
func TestABindThatIsRefusedMakesNoGangWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t)
		d.submit("half", 2, 1, "1")
		d.want("half-0")
		d.plan("half-0")
		d.place("half-0")
		d.want("half-1")
		d.place("half-1")
		d.bind("half", 0)
		began := time.Now()
		for time.Since(began) < halfTimeout {
			d.unreserve("half", "half-1")
			d.wantReleased()
			time.Sleep(15 * time.Second)
			if slices.Equal(d.take(), []types.UID{"half-1"}) {
				d.plan("half-1")
				d.place("half-1")
				synctest.Wait()
			}
		}
		d.unreserve("half", "half-1")
		d.wantReleased("half")
	})
}

// TestAReleaseThatIsRefusedIsRepeated: a disruption budget may keep the members where they are, or the API server may be away for long.
// Nothing was given back, so that the gang need not rest before it is completed, nor when it has given back something for the first time.
func TestAReleaseThatIsRefusedIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t)
		d.group("half", model.DefaultQueue, 2, 1, nil)
		d.bind("half", 0)
		d.state.UpsertPod(memberOf("half", 1, "1"))
		d.want("half-1")
		// No turn is on when it is released: one that waits for its lead would delay it.
		d.refuse("half-1", dispatch.Refusal{Reason: noRoom})
		for range 3 {
			d.wantReleased()
			time.Sleep(halfTimeout + time.Millisecond)
			d.wantReleased("half")
		}
		d.take()
		d.addNode("node-1", "8")
		d.want("half-1")
		d.refuse("half-1", dispatch.Refusal{Reason: noRoom})
		d.leave("half", 0)
		d.want("half-0")
	})
}

// TestAReleaseInPartsIsOne: members may take their time to end, and a disruption budget may let them go one by one. The gang need not rest.
func TestAReleaseInPartsIsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t)
		d.group("half", model.DefaultQueue, 4, 1, nil)
		for i := range 3 {
			d.bind("half", i)
		}
		for i := range 3 {
			time.Sleep(halfTimeout + time.Millisecond)
			d.wantReleased("half")
			d.leave("half", i)
		}
		d.state.UpsertPod(memberOf("half", 3, "1"))
		d.want("half-0")
	})
}

// TestWhatIsNotHalfIsNotReleased: gangs that were whole once, and those that are only late.
func TestWhatIsNotHalfIsNotReleased(t *testing.T) {
	for name, tc := range map[string]struct {
		group  model.Group
		placed int
		then   func(*fixture)
	}{
		"no member is placed": {model.Group{MinMember: 3}, 0, nil},
		"a whole gang":        {model.Group{MinMember: 2}, 2, nil},
		"no minimum":          {model.Group{}, 1, nil},
		"one that lost a member": {model.Group{MinMember: 2}, 2, func(d *fixture) {
			d.leave("job", 1)
		}},
		"one that was whole when another process scheduled it": {model.Group{MinMember: 3, Start: model.Start{Tasks: 3}}, 2, nil},
		"one whose minimum was raised": {model.Group{MinMember: 1}, 1, func(d *fixture) {
			d.state.UpsertGroup(keyOf("job"), &model.Group{UID: "job", Queue: model.DefaultQueue, MinMember: 3, Created: epoch})
		}},
		"one that is completed in time": {model.Group{MinMember: 3}, 2, func(d *fixture) {
			time.Sleep(halfTimeout - time.Second)
			d.bind("job", 2)
		}},
		"one that is deleted in time": {model.Group{MinMember: 3}, 2, func(d *fixture) {
			for i := range 3 {
				d.state.DeletePod(memberOf("job", i, "1").UID)
			}
			d.state.DeleteGroup(keyOf("job"))
		}},
		"one that leaves in time and comes back": {model.Group{MinMember: 3}, 2, func(d *fixture) {
			time.Sleep(halfTimeout - time.Second)
			d.leave("job", 0, 1)
			time.Sleep(2 * time.Second)
			d.bind("job", 0)
			time.Sleep(halfTimeout - time.Second)
			d.leave("job", 0)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newFixture(t)
				tc.group.UID, tc.group.Queue, tc.group.Created = types.UID("job"), model.DefaultQueue, epoch
				d.state.UpsertGroup(keyOf("job"), &tc.group)
				d.pods("job", 3, "1")
				for i := range tc.placed {
					d.bind("job", i)
				}
				synctest.Wait()
				if tc.then != nil {
					tc.then(d)
				}
				time.Sleep(10 * halfTimeout)
				d.wantReleased()
			})
		})
	}
}

// TestABrokenGangIsCompletedBeyondWhatItsQueueIsDue: its own half does not count by that. It does by the capability.
func TestABrokenGangIsCompletedBeyondWhatItsQueueIsDue(t *testing.T) {
	for name, tc := range map[string]struct {
		capability int64
		starts     []types.UID
	}{
		"with room in its capability": {capability: 5, starts: []types.UID{"half-2"}},
		"without":                     {capability: 4},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newStandbyWith(t, args("allocate", inGangs, byProportion))
				d.state.UpsertQueue(&model.Queue{Name: "a", Weight: 1, Capability: cores(tc.capability)})
				d.state.UpsertQueue(&model.Queue{Name: "b", Weight: 1})
				for job, queue := range map[string]string{"half": "a", "others": "a", "theirs": "b"} {
					least := map[string]int{"half": 3, "others": 2, "theirs": 1}[job]
					d.state.UpsertGroup(keyOf(job), &model.Group{UID: types.UID(job), Queue: queue, MinMember: least, Phase: model.PhaseRunning, Created: epoch})
				}
				d.bind("half", 0)
				d.bind("half", 1)
				d.bind("others", 0)
				d.bind("others", 1)
				// The queues are due four cores each, and this one asks for its own.
				for i := range 6 {
					d.state.UpsertPod(memberOf("theirs", i, "4"))
				}
				d.state.UpsertPod(memberOf("half", 2, "1"))
				go d.Run(t.Context())
				took := d.take()
				took = slices.DeleteFunc(took, func(uid types.UID) bool { return uid != "half-2" })
				if !slices.Equal(took, tc.starts) {
					t.Errorf("of the broken gang %v have a turn, want %v", took, tc.starts)
				}
			})
		})
	}
}

// TestABrokenGangDoesNotWaitAmongOthersThatAskForTheSame: its queue has no room for the pod of another job, and for its own, which is like it
// but for what the gang holds, it has, also when the scheduling queue learns of that pod last.
func TestABrokenGangDoesNotWaitAmongOthersThatAskForTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newStandbyWith(t, args("allocate", inGangs, byProportion))
		for _, queue := range []string{"a", "b"} {
			d.state.UpsertQueue(&model.Queue{Name: queue, Weight: 1})
		}
		for job, of := range map[string]struct {
			queue string
			least int
		}{"half": {"a", 3}, "others": {"a", 2}, "theirs": {"b", 1}} {
			d.state.UpsertGroup(keyOf(job), &model.Group{UID: types.UID(job), Queue: of.queue, MinMember: of.least, Phase: model.PhaseRunning, Created: epoch})
		}
		for i := range 2 {
			d.bind("half", i)
			d.bind("others", i)
		}
		for i := range 6 {
			d.state.UpsertPod(memberOf("theirs", i, "4"))
		}
		go d.Run(t.Context())
		d.want("theirs-0")
		d.begin("theirs-0")
		d.refuse("theirs-0", dispatch.Refusal{Reason: noRoom})
		d.Between()
		d.state.UpsertPod(memberOf("others", 2, "1"))
		d.want()
		if got := d.last("others"); got.Kind != model.QueueFull {
			t.Fatalf("the other job is told %+v", got)
		}
		d.keepOut("half-2", "")
		d.state.UpsertPod(memberOf("half", 2, "1"))
		d.want()
		d.letIn("half-2")
		d.Seen("half-2")
		d.want("half-2")
	})
}
