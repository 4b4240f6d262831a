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

// promiseGrace is how long jobs have a claim to room before their pods exist.
const promiseGrace = 2 * time.Second

// promising is a fixture of eight cores in which jobs have one.
func promising(t *testing.T, grace time.Duration) *fixture {
	t.Helper()
	rules := args("enqueue allocate backfill", byPriority, inGangs, byOvercommit)
	d := newFixtureWith(t, rules)
	err := d.Adopt(t.Context(), dispatch.Rules{
		Policies: policies(t, rules), AdmissionTimeout: patience, StalledAfter: stalledAfter, PromiseGrace: grace,
	}, func() {})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// announce adds the PodGroup of a job whose pods do not exist yet.
func (d *fixture) announce(job string, least, age int) {
	d.state.UpsertGroup(keyOf(job), &model.Group{
		UID: types.UID(job), Queue: model.DefaultQueue, MinMember: least, MinResources: sumOf(least, "1"),
		Created: epoch.Add(-time.Duration(age) * time.Minute),
	})
}

// bring creates pods of a job, from one to another.
func (d *fixture) bring(job string, from, to int) {
	for i := from; i < to; i++ {
		d.state.UpsertPod(memberOf(job, i, "1"))
	}
}

// starts waits for the turn of a job and has these of its pods placed in it.
func (d *fixture) starts(job string, pods ...int) {
	d.t.Helper()
	lead := types.UID(fmt.Sprintf("%s-%d", job, pods[0]))
	d.want(lead)
	entry := d.Enter(lead)
	if entry.Verdict != dispatch.Lead {
		d.t.Fatalf("pod %s is not asked to lead", lead)
	}
	var members []types.UID
	for _, i := range pods {
		members = append(members, types.UID(fmt.Sprintf("%s-%d", job, i)))
	}
	d.planFor(entry.Job, members)
	d.place(lead)
	for i, uid := range members[1:] {
		d.want(members[1 : i+2][i])
		d.place(uid)
	}
}

// TestExtrasLeavePromisedRoom: three elastic jobs are let in together, and the first one has its pods before the others.
func TestExtrasLeavePromisedRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := promising(t, promiseGrace)
		for i, job := range []string{"a", "b", "c"} {
			d.announce(job, 2, 9-i)
		}
		d.admitted("a", "b", "c")
		d.bring("a", 0, 8)
		d.starts("a", 0, 1)
		d.starts("a", 2)
		d.starts("a", 3)
		// Four cores are idle, and four are promised.
		d.want()
		d.bring("b", 0, 1)
		d.want()
		d.bring("b", 1, 2)
		d.starts("b", 0, 1)
		d.want()
		d.bring("c", 0, 2)
		d.starts("c", 0, 1)
	})
}

// TestNobodyWaitsForAControllerThatIsDead: what is promised is left for a while only.
func TestNobodyWaitsForAControllerThatIsDead(t *testing.T) {
	for _, grace := range []time.Duration{promiseGrace, 0} {
		synctest.Test(t, func(t *testing.T) {
			d := promising(t, grace)
			d.announce("dead", 6, 9)
			d.announce("a", 2, 8)
			d.admitted("dead", "a")
			d.bring("a", 0, 4)
			if grace == 0 {
				d.starts("a", 0, 1)
				d.starts("a", 2)
				return
			}
			// It needs two of eight cores, and six are promised.
			d.starts("a", 0, 1)
			d.want()
			time.Sleep(grace - time.Millisecond)
			d.want()
			time.Sleep(2 * time.Millisecond)
			d.starts("a", 2)
			d.starts("a", 3)
			// Its pods come late: they have the order of all others.
			d.bring("dead", 0, 6)
			d.want("dead-0")
		})
	}
}

// TestWhoComesAfterLeavesPromisedRoom: a job leaves room to those of its queue that come before it, and not to those after it.
func TestWhoComesAfterLeavesPromisedRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := promising(t, promiseGrace)
		d.announce("old", 4, 9)
		d.announce("young", 5, 1)
		d.admitted("old", "young")
		d.bring("young", 0, 5)
		d.want()
		d.bring("old", 0, 4)
		d.want("old-0")
		d.refuse("old-0", dispatch.Refusal{Reason: noRoom})
		// It has had its first plan.
		d.want("young-0")
	})
	synctest.Test(t, func(t *testing.T) {
		d := promising(t, promiseGrace)
		d.announce("old", 5, 9)
		d.announce("young", 4, 1)
		d.admitted("old", "young")
		d.bring("old", 0, 5)
		d.want("old-0")
	})
}

// TestWhoIsDeletedKeepsNoRoom: a claim ends with its job, whoever else has one.
func TestWhoIsDeletedKeepsNoRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := promising(t, promiseGrace)
		d.announce("gone", 3, 9)
		d.announce("other", 3, 9)
		d.announce("a", 2, 8)
		d.admitted("gone", "other", "a")
		d.bring("a", 0, 3)
		d.starts("a", 0, 1)
		d.want()
		d.state.DeleteGroup(keyOf("gone"))
		d.starts("a", 2)
	})
}

// TestAClaimEndsThoughTheJobHasNoPlan: it has its pods, and cannot have a turn, or fails in each.
func TestAClaimEndsThoughTheJobHasNoPlan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := promising(t, promiseGrace)
		d.announce("gated", 6, 9)
		d.announce("a", 2, 8)
		d.admitted("gated", "a")
		d.bring("a", 0, 4)
		d.starts("a", 0, 1)
		d.want()
		for i := range 6 {
			pod := memberOf("gated", i, "1")
			if i == 0 {
				pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "somebody/else"}}
			}
			d.state.UpsertPod(pod)
		}
		// Whose pod is gated claims nothing for it.
		d.starts("a", 2)
		time.Sleep(promiseGrace - time.Millisecond)
		d.want()
		time.Sleep(2 * time.Millisecond)
		d.starts("a", 3)
	})
	synctest.Test(t, func(t *testing.T) {
		d := promising(t, promiseGrace)
		d.announce("bad", 6, 9)
		d.announce("a", 2, 8)
		d.admitted("bad", "a")
		d.bring("a", 0, 3)
		d.starts("a", 0, 1)
		d.want()
		d.bring("bad", 0, 6)
		for range 1000 {
			switch got := d.take(); {
			case slices.Contains(got, "bad-0"):
				d.Enter("bad-0")
				d.Errored("bad-0", errors.New("no"))
			case slices.Contains(got, "a-2"):
				return
			}
			time.Sleep(promiseGrace / 100)
		}
		t.Fatal("a-2 has no turn")
	})
}

// TestWhoOwesNobodyRoomDoesNotWaitWithWhoDoes: a job that asks for its minimum is like the extras of another one, and comes before those that have a
// claim.
func TestWhoOwesNobodyRoomDoesNotWaitWithWhoDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := promising(t, 10*time.Minute)
		d.announce("a", 1, 9)
		d.announce("slow", 4, 1)
		d.admitted("a", "slow")
		d.bring("a", 0, 8)
		d.starts("a", 0)
		for i := 1; i <= 3; i++ {
			d.starts("a", i)
		}
		d.want()
		d.submit("b", 1, 8, "1")
		d.want("b-0")
	})
}

// TestNewRoomIsForExtrasToo: once there is room besides what is promised they go on.
func TestNewRoomIsForExtrasToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := promising(t, 10*time.Minute)
		d.announce("slow", 6, 9)
		d.announce("a", 2, 8)
		d.admitted("slow", "a")
		d.bring("a", 0, 3)
		d.starts("a", 0, 1)
		d.want()
		d.addNode("node-1", "8")
		d.want("a-2")
	})
}
