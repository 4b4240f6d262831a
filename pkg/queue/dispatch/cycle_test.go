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

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/queue/dispatch"
)

// begin lets the cycle of a pod begin that was taken from the queue.
func (d *fixture) begin(uid types.UID) {
	d.t.Helper()
	if !d.Begins(uid) {
		d.t.Fatalf("pod %s has no part in the turn", uid)
	}
}

// keepOut has a pod not be in the queue, because of a plugin if one is named.
func (d *fixture) keepOut(uid types.UID, plugin string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.elsewhere[uid] = plugin
}

// letIn ends keepOut.
func (d *fixture) letIn(uid types.UID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.elsewhere, uid)
}

// TestATurnBeginsBetweenCycles: whatever ends a turn, the next begins when the scheduler is about to take a pod from the queue.
func TestATurnBeginsBetweenCycles(t *testing.T) {
	for name, end := range map[string]func(d *fixture){
		"refused": func(d *fixture) {
			d.Enter("a-0")
			d.Refused("a-0", dispatch.Refusal{Reason: noRoom})
		},
		"a plugin failed when it planned": func(d *fixture) {
			d.Enter("a-0")
			d.Errored("a-0", errors.New("broken"))
		},
		"a plugin failed before": func(d *fixture) { d.Failed("a-0", keyOf("a"), errors.New("broken")) },
		"the cycle ended without a plan, because the pod was deleted": func(*fixture) {},
		"the cycle ended without a verdict":                           func(d *fixture) { d.Enter("a-0") },
		"there are no nodes":                                          func(d *fixture) { d.NoNodes("a-0") },
		"placed": func(d *fixture) {
			d.plan("a-0")
			d.place("a-0")
		},
		"placed, and the reservation was taken back": func(d *fixture) {
			d.plan("a-0")
			d.place("a-0")
			d.unreserve("a", "a-0")
		},
		"the planned node was lost": func(d *fixture) {
			d.plan("a-0")
			d.Lost("a-0", keyOf("a"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newFixture(t)
				d.Between()
				d.submit("a", 1, 2, "1")
				d.want("a-0")
				d.begin("a-0")
				d.submit("b", 1, 1, "2")
				end(d)
				d.want()
				d.Between()
				for got := d.take(); len(got) != 1 || got[0] != "b-0"; got = d.take() {
					if len(got) != 1 || got[0] != "a-0" {
						t.Fatalf("activated %v, want a-0, which may be tried again, and b-0", got)
					}
					d.begin("a-0")
					d.Enter("a-0")
					d.Refused("a-0", dispatch.Refusal{Reason: noRoom})
					d.Between()
				}
			})
		})
	}
}

// TestAPodOutsideOfTheTurnIsSentBack: its turn was broken off while it was in the queue.
func TestAPodOutsideOfTheTurnIsSentBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t)
		d.Between()
		d.submit("a", 3, 2, "1")
		d.want("a-0")
		d.begin("a-0")
		d.plan("a-0")
		d.want("a-1", "a-2")
		d.place("a-0")
		d.Between()
		d.begin("a-1")
		d.Lost("a-1", keyOf("a"))
		if d.MayReserve("a-2", "node-0") {
			t.Error("a member of a turn that is over may have a node")
		}
		if !d.Urgent("a-2") {
			t.Error("a pod changes its place in the queue while it is there")
		}
		d.Between()
		d.submit("b", 1, 1, "2")
		d.want("a-1")
		if !d.Begins("a-2") {
			t.Error("another pod of the job may not lead its turn")
		}
		d.Enter("a-2")
		d.Refused("a-2", dispatch.Refusal{Reason: noRoom})
		d.Between()
		d.want("b-0")
		if d.Begins("a-1") {
			t.Error("a pod of another job may begin")
		}
		d.Seen("a-1")
	})
}

// TestAnotherPluginHoldsTheLead: what it waits for is missing. Nobody else waits for it, and it goes on when the plugin lets go.
func TestAnotherPluginHoldsTheLead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t)
		d.Between()
		for i := range 200 {
			pod := memberOf("typo", i, "1")
			pod.Annotations = nil
			d.keepOut(pod.UID, "DynamicResources")
			d.state.UpsertPod(pod)
		}
		d.submit("b", 1, 1, "2")
		d.want("b-0")
		d.begin("b-0")
		d.plan("b-0")
		d.place("b-0")
		d.Between()
		d.want()
		typo := model.JobKey{Source: model.FromPod, Namespace: "ns", Name: "typo-7"}
		if got := d.lastOf(typo); got.Kind != model.SchedulingGated || got.Subject != "DynamicResources" {
			t.Errorf("the job was told %+v", got)
		}
		if !d.Gate("typo-7") {
			t.Error("the gate keeps the pod from the queue, where it is to wait for the other plugin")
		}
		d.letIn("typo-7")
		// The plugin lets go, and the pod comes out of the queue. It goes back unless its job is given its turn in that moment.
		if !d.Begins("typo-7") {
			d.Seen("typo-7")
		}
		d.want("typo-7")
	})
}

// TestAnotherPluginHoldsAMember: the gang is whole again when it lets go.
func TestAnotherPluginHoldsAMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t)
		d.Between()
		d.keepOut("a-1", "DynamicResources")
		d.submit("a", 2, 2, "1")
		d.submit("b", 1, 1, "2")
		d.want("a-0")
		d.begin("a-0")
		job := d.Enter("a-0").Job
		if node := d.Planned("a-0", pods(job), []string{"node-0", "node-0"}, false); node != "" {
			t.Errorf("the lead goes to %s though a member cannot", node)
		}
		d.Between()
		d.want("b-0")
		if got := d.last("a"); got.Kind != model.SchedulingGated {
			t.Errorf("the job was told %+v", got)
		}
		d.begin("b-0")
		d.plan("b-0")
		d.place("b-0")
		d.Between()
		d.letIn("a-1")
		d.Seen("a-1")
		d.want("a-0")
	})
}

// TestThePodIsNotInTheQueueYet: the model learned of it first, or its last cycle has not ended.
func TestThePodIsNotInTheQueueYet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t)
		d.Between()
		d.keepOut("a-0", "")
		d.submit("a", 1, 2, "1")
		d.submit("b", 1, 1, "2")
		d.want("b-0")
		d.begin("b-0")
		d.plan("b-0")
		d.place("b-0")
		d.Between()
		d.want()
		d.letIn("a-0")
		d.Seen("a-0")
		d.want("a-0")
	})
}

// TestThePodComesWhileTheQueueIsAsked: what the dispatcher waits for happens between the queue's answer and the note that it is waited for.
func TestThePodComesWhileTheQueueIsAsked(t *testing.T) {
	for name, by := range map[string]string{"the queue gets the pod": "", "a plugin lets it go": "DynamicResources"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newFixture(t)
				d.Between()
				d.keepOut("a-0", by)
				d.mu.Lock()
				d.overtake = func() {
					d.letIn("a-0")
					d.Seen("a-0")
				}
				d.mu.Unlock()
				asked := time.Now()
				d.submit("a", 1, 2, "1")
				if got := d.take(); !slices.Contains(got, "a-0") {
					t.Fatalf("activated %v, want a-0", got)
				}
				if waited := time.Since(asked); waited > 0 {
					t.Errorf("it waited %s", waited)
				}
				d.begin("a-0")
				d.plan("a-0")
				d.place("a-0")
			})
		})
	}
}

// TestAPodIsNotWaitedForWithoutEnd: nothing depends on the queue's saying that it has a pod.
func TestAPodIsNotWaitedForWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t)
		d.Between()
		d.keepOut("a-0", "")
		d.submit("a", 1, 2, "1")
		d.want()
		d.letIn("a-0")
		time.Sleep(9 * time.Second)
		d.want()
		time.Sleep(1050 * time.Millisecond)
		d.want("a-0")
	})
}

// TestARefusedBindWaitsForItsPod: between Unreserve and the failure handler the queue does not know the pod.
func TestARefusedBindWaitsForItsPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t)
		d.Between()
		d.submit("a", 1, 2, "1")
		round := func(rest time.Duration) {
			t.Helper()
			d.wantWithin(rest, "a-0")
			d.begin("a-0")
			d.plan("a-0")
			d.place("a-0")
			d.Between()
			d.unreserve("a", "a-0")
			d.want()
			d.Failed("a-0", keyOf("a"), errors.New("a webhook refuses"))
		}
		// The first failure is followed by another attempt at once, the others by rests that grow, until one is bound.
		for _, rest := range []time.Duration{0, 0, 100 * time.Millisecond, 200 * time.Millisecond} {
			round(rest)
		}
		d.wantWithin(400*time.Millisecond, "a-0")
		d.begin("a-0")
		d.plan("a-0")
		d.place("a-0")
		d.Bound(keyOf("a"))
		d.Between()
		d.unreserve("a", "a-0")
		d.Failed("a-0", keyOf("a"), errors.New("a webhook refuses"))
		d.wantWithin(0, "a-0")
	})
}

// TestARefusedBindIsTold: a plan that holds gives no reason to wait, but a bind that is refused is one, until a pod is bound.
func TestARefusedBindIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t)
		d.Between()
		d.submit("a", 1, 2, "1")
		attempt := func() {
			t.Helper()
			d.wantWithin(0, "a-0")
			d.begin("a-0")
			d.plan("a-0")
			d.place("a-0")
			d.Between()
		}
		// The first one is followed by another attempt at once.
		for range 2 {
			attempt()
			d.unreserve("a", "a-0")
			d.Failed("a-0", keyOf("a"), errors.New("a webhook refuses"))
		}
		synctest.Wait()
		if got, want := d.last("a"), (model.Reason{Kind: model.SchedulerError, Message: "a webhook refuses"}); got != want {
			t.Errorf("the job waits because of %v, want %v", got, want)
		}
		time.Sleep(100 * time.Millisecond)
		attempt()
		d.Bound(keyOf("a"))
		d.bind("a", 0)
		synctest.Wait()
		if got := d.last("a"); got != (model.Reason{}) {
			t.Errorf("a job that is bound waits because of %v", got)
		}
	})
}

// TestARefusedBindIsItsJobsAffair: others that share the turn, and are yet to be reserved, go on.
func TestARefusedBindIsItsJobsAffair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newHeldFixture(t)
		d.Between()
		d.singles("a", "b", "c")
		d.begin("a-0")
		d.enter("a-0")
		d.planAll("a-0", "b-0", "c-0")
		d.want("b-0", "c-0")
		d.place("a-0")
		d.Between()
		d.begin("b-0")
		d.Unreserved("a-0", keyOf("a"))
		if !d.MayReserve("b-0", "node-0") || !d.Gate("c-0") {
			t.Error("a refused bind of one pod ends the turn of others")
		}
		d.Lost("b-0", keyOf("b"))
		if d.Gate("c-0") {
			t.Error("the turn goes on though a planned node was lost")
		}
	})
}

// TestAMemberWhoseCycleFailsEndsTheTurn: an extender went down after the plan.
func TestAMemberWhoseCycleFailsEndsTheTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t)
		d.Between()
		d.submit("a", 2, 2, "1")
		d.submit("b", 1, 1, "2")
		failed := 0
		for waited := false; !waited; {
			switch got := d.take(); {
			case len(got) == 0:
				t.Fatal("nobody has a turn")
			case got[0] == "b-0":
				waited = true
			default:
				d.begin("a-0")
				d.plan("a-0")
				d.place("a-0")
				d.take()
				d.Between()
				d.begin("a-1")
				time.Sleep(50 * time.Millisecond)
				d.Failed("a-1", keyOf("a"), errors.New("the extender is down"))
				failed++
				d.Between()
			}
		}
		if failed != 1 {
			t.Errorf("the job failed %d times before the other had a turn, want 1", failed)
		}
		if got := d.last("a"); got.Kind != model.SchedulerError {
			t.Errorf("the job was told %+v", got)
		}
	})
}

// TestATurnIsForWhatItWasGivenFor: its PodGroup changes before the lead's cycle plans it.
func TestATurnIsForWhatItWasGivenFor(t *testing.T) {
	for name, change := range map[string]func(d *fixture){
		"the PodGroup is gone": func(d *fixture) { d.state.DeleteGroup(keyOf("a")) },
		"it was replaced": func(d *fixture) {
			d.state.UpsertGroup(keyOf("a"), &model.Group{UID: "another", Queue: model.DefaultQueue, MinMember: 2, Created: epoch})
		},
		"its minimum is another": func(d *fixture) {
			d.state.UpsertGroup(keyOf("a"), &model.Group{UID: "a", Queue: model.DefaultQueue, MinMember: 1, Created: epoch})
		},
		"the lead belongs to another job": func(d *fixture) {
			moved := memberOf("other", 0, "1")
			moved.UID = "a-0"
			d.state.UpsertPod(moved)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newFixture(t)
				d.Between()
				d.submit("a", 2, 2, "1")
				d.want("a-0")
				d.begin("a-0")
				change(d)
				if entry := d.Enter("a-0"); entry.Verdict != dispatch.NotItsTurn {
					t.Errorf("it enters as %v", entry.Verdict)
				}
				d.submit("b", 1, 9, "2")
				d.Between()
				d.want("b-0")
			})
		})
	}
}

// TestBeforeItRunsNothingIsKept: a standby sees every object for weeks. What is there when it runs is looked at, and no more.
func TestBeforeItRunsNothingIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newStandby(t)
		for i := range 1000 {
			d.submit("past", 1, 1, "1")
			if i%100 == 0 {
				d.View().Figures()
			}
			d.state.DeletePod("past-0")
			d.state.DeleteGroup(keyOf("past"))
		}
		d.submit("a", 1, 2, "1")
		for _, q := range d.View().Figures() {
			if requested := q.Usage.Requested.Get(corev1.ResourceCPU); q.Name == model.DefaultQueue && requested != 1000 {
				t.Errorf("queue %s requests %d millicores, want those of the job that is there", q.Name, requested)
			}
		}
		d.state.DeletePod("a-0")
		d.state.DeleteGroup(keyOf("a"))
		d.submit("b", 1, 1, "1")
		go d.Run(t.Context())
		d.want("b-0")
		if got := len(d.View().Waiting()); got != 1 {
			t.Errorf("%d jobs wait, want 1", got)
		}
	})
}

// TestAJobIsChargedWithItsOwnTime: its turn waited behind the cycles of others, and then failed at once.
func TestAJobIsChargedWithItsOwnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t)
		d.Between()
		d.submit("a", 1, 2, "1")
		d.want("a-0")
		d.Busy()
		time.Sleep(5 * time.Second)
		d.Between()
		d.begin("a-0")
		time.Sleep(time.Millisecond)
		d.Failed("a-0", keyOf("a"), errors.New("broken"))
		d.Between()
		d.wantWithin(19*time.Millisecond, "a-0")
	})
}

// TestACacheWithoutNodesIsOnlyBelievedWhereThereAreNone: the scheduler's cache may learn of the first node after the model. Nobody tells when.
func TestACacheWithoutNodesIsOnlyBelievedWhereThereAreNone(t *testing.T) {
	for _, node := range []bool{false, true} {
		t.Run(fmt.Sprintf("there is one: %t", node), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newFixture(t)
				d.submit("a", 1, 1, "1")
				d.want("a-0")
				d.begin("a-0")
				if !node {
					d.state.DeleteNode("node-0")
				}
				d.NoNodes("a-0")
				d.Between()
				time.Sleep(time.Second)
				if node {
					d.want("a-0")
				} else {
					d.want()
				}
			})
		})
	}
}
