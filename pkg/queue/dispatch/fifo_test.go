// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/queue/dispatch"
)

// strictly has the default queue let its jobs start one after the other, or any.
func (d *fixture) strictly(fifo bool) {
	d.state.UpsertQueue(&model.Queue{Name: model.DefaultQueue, FIFO: fifo})
}

// firstInLine makes the default queue strict, and has a first job that finds no room.
func (d *fixture) firstInLine() {
	d.strictly(true)
	d.submit("first", 2, 9, "5")
	d.want("first-0")
	d.refuse("first-0", dispatch.Refusal{Reason: noRoom})
	d.want()
}

// withdraw deletes a job with its pods.
func (d *fixture) withdraw(job string, size int) {
	d.state.DeleteGroup(keyOf(job))
	for i := range size {
		d.state.DeletePod(memberOf(job, i, "1").UID)
	}
}

// TestJobsOfAStrictQueueStartOneAfterTheOther: while the first one waits nobody of its queue has a turn, those of other queues have. When it
// has started, or is gone, or the queue is not strict any more, the next one has its turn.
func TestJobsOfAStrictQueueStartOneAfterTheOther(t *testing.T) {
	for name, end := range map[string]func(*fixture){
		"it is deleted":          func(d *fixture) { d.withdraw("first", 2) },
		"the queue lets any job": func(d *fixture) { d.strictly(false) },
		"it starts": func(d *fixture) {
			d.addNode("node-1", "8")
			d.want("first-0")
			d.plan("first-0")
			d.want("first-1")
			d.place("first-0")
			d.place("first-1")
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newFixture(t)
				d.firstInLine()
				d.submit("later", 1, 1, "1")
				d.want()
				if got := d.last("later").Kind; got != model.NotFirst {
					t.Errorf("it waits because of %q, want %s", got, model.NotFirst)
				}
				d.state.UpsertQueue(&model.Queue{Name: "other"})
				d.group("elsewhere", "other", 1, 1, nil)
				d.pods("elsewhere", 1, "1")
				d.want("elsewhere-0")
				d.plan("elsewhere-0")
				d.place("elsewhere-0")
				d.want()
				time.Sleep(time.Minute)
				d.want()
				end(d)
				d.want("later-0")
			})
		})
	}
}

// TestWhoHasStartedHoldsNobodyUp: what a job asks for beyond its minimum is no reason for others of a strict queue to wait.
func TestWhoHasStartedHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t)
		d.strictly(true)
		d.submit("first", 1, 9, "5")
		d.want("first-0")
		d.plan("first-0")
		d.place("first-0")
		d.want()
		d.pods("first", 2, "5")
		d.want("first-1")
		d.refuse("first-1", dispatch.Refusal{Reason: noRoom})
		d.submit("later", 1, 1, "1")
		d.want("later-0")
	})
}

// TestAStrictQueueGoesByTheOrderOfJobs: a job that comes before the one that waits has its turn.
func TestAStrictQueueGoesByTheOrderOfJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t)
		d.firstInLine()
		d.submit("older", 1, 99, "1")
		d.want("older-0")
	})
}

// TestManyBehindAFirstJobAreLookedAtOnce, and again when it is gone: not whenever something happens in another queue.
func TestManyBehindAFirstJobAreLookedAtOnce(t *testing.T) {
	const many = 50
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t)
		d.state.UpsertQueue(&model.Queue{Name: "other"})
		d.firstInLine()
		before := d.parked(model.NotFirst)
		for i := range many {
			d.submit(fmt.Sprintf("later-%d", i), 1, 1, fmt.Sprintf("%dm", 100+i))
		}
		d.want()
		for i := range 5 {
			name := fmt.Sprintf("other-%d", i)
			d.group(name, "other", 1, 1, nil)
			d.pods(name, 1, "100m")
			d.want(types.UID(name + "-0"))
			d.plan(types.UID(name + "-0"))
			d.place(types.UID(name + "-0"))
		}
		d.want()
		if n := d.parked(model.NotFirst) - before; n != many {
			t.Errorf("%d jobs were looked at %d times", many, n)
		}
	})
}
