// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/queue/dispatch"
)

// evicting is a fixture whose default queue may hold four cores.
func evicting(t *testing.T, actions string) *fixture {
	d := newFixtureWith(t, args("allocate "+actions, byPriority, inGangs, byCapacity))
	d.state.UpsertQueue(&model.Queue{Name: model.DefaultQueue, Capability: cores(4), Reclaimable: true})
	d.state.UpsertPriorityClass("high", 1000, false)
	return d
}

// occupy adds a job whose pods run, each with one core.
func (d *fixture) occupy(job string, size int) {
	d.state.UpsertGroup(keyOf(job), &model.Group{UID: types.UID(job), Queue: model.DefaultQueue, MinMember: size, Phase: model.PhaseRunning, Created: epoch})
	for i := range size {
		d.start(job, i)
	}
}

func (d *fixture) start(job string, i int) {
	p := memberOf(job, i, "1")
	p.Spec.NodeName, p.Status.Phase = "node-0", corev1.PodRunning
	d.state.UpsertPod(p)
}

// terminate is what the API server does to a pod that it has agreed to evict.
func (d *fixture) terminate(job string, i int) {
	p := memberOf(job, i, "1")
	p.Spec.NodeName, p.Status.Phase, p.DeletionTimestamp = "node-0", corev1.PodRunning, &metav1.Time{Time: epoch}
	d.state.UpsertPod(p)
}

// ask adds a job of single tasks of a core each in the default queue.
func (d *fixture) ask(job string, size int, class string) {
	d.state.UpsertGroup(keyOf(job), &model.Group{
		UID: types.UID(job), Queue: model.DefaultQueue, MinMember: size, MinResources: sumOf(size, "1"), PriorityClass: class, Created: epoch,
	})
	for i := range size {
		d.state.UpsertPod(memberOf(job, i, "1"))
	}
}

// seeks has the lead's turn seek victims, which must be a turn that only evictions can help.
func (d *fixture) seeks(lead types.UID, want ...config.Action) {
	d.t.Helper()
	entry := d.Enter(lead)
	if entry.Limit.Kind != model.QueueFull {
		d.t.Fatalf("the turn is begun for %v, want the limit of the queue", entry.Limit)
	}
	if a := d.MayPreempt(lead); !slices.Equal(a.Actions, want) {
		d.t.Fatalf("it may preempt by %v, want %v", a.Actions, want)
	}
}

// TestAJobAtItsQueuesLimitPreempts follows a job that a limit of its queue keeps waiting, from its search for victims to its start.
func TestAJobAtItsQueuesLimitPreempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := evicting(t, "preempt")
		d.occupy("low", 4)
		d.ask("urgent", 1, "high")
		d.want("urgent-0")
		d.seeks("urgent-0", config.Preempt)
		d.state.Pipeline([]model.Nomination{{UID: "urgent-0", Node: "node-0"}}, []types.UID{"low-3"})
		d.Pipelined("urgent-0")
		// The API server might refuse.
		d.want()
		if got := d.last("urgent").Kind; got != model.WaitingForVictims {
			t.Errorf("it waits for %s", got)
		}
		d.terminate("low", 3)
		// Its next turn finds that the victim has not left.
		d.want("urgent-0")
		entry := d.Enter("urgent-0")
		if entry.Limit != (model.Reason{}) || entry.Budget.Refuses(cores(1)) != (model.Reason{}) {
			t.Errorf("what is kept for the job is held against it: %v", entry.Limit)
		}
		if a := d.MayPreempt("urgent-0"); a.Actions != nil {
			t.Errorf("it may preempt by %v though room is kept for it", a.Actions)
		}
		d.Refused("urgent-0", dispatch.Refusal{Reason: model.Reason{Kind: model.WaitingForVictims}})
		d.want()
		if got := d.last("urgent").Kind; got != model.WaitingForVictims {
			t.Errorf("it waits for %s", got)
		}
		d.state.DeletePod("low-3")
		d.want("urgent-0")
		d.plan("urgent-0")
		d.place("urgent-0")
		d.want()
	})
}

// TestRoomThatMayNotComeIsNotTaken: a queue has to lose its victims before it gains anybody in their place, whoever that
// is, and a victim that stays is followed by another search.
func TestRoomThatMayNotComeIsNotTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := evicting(t, "preempt backfill")
		d.occupy("low", 4)
		d.ask("urgent", 2, "high")
		d.want("urgent-0")
		d.seeks("urgent-0", config.Preempt)
		d.state.Pipeline([]model.Nomination{{UID: "urgent-0", Node: "node-0"}, {UID: "urgent-1", Node: "node-0"}}, []types.UID{"low-2", "low-3"})
		d.Pipelined("urgent-0")
		d.want()
		// What asks for nothing has nothing to wait for.
		d.submit("tiny", 1, 0, "0")
		d.want("tiny-0")
		d.plan("tiny-0")
		d.place("tiny-0")
		d.want()
		d.terminate("low", 2)
		d.want()
		// A search that is given up is one event.
		d.Hold()
		d.state.ClearNominations("urgent-0", "urgent-1")
		d.state.Spare("low-3")
		d.Step()
		d.want("urgent-0")
		d.seeks("urgent-0", config.Preempt)
	})
}

// TestNobodyToEvict: without anybody of lower priority in the queue a job at the limit has no turn. One that starts to run
// is noticed within a second.
func TestNobodyToEvict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := evicting(t, "preempt")
		d.state.UpsertPriorityClass("same", 1000, true)
		d.occupy("peers", 4)
		d.ask("urgent", 1, "high")
		d.want()
		if got := d.last("urgent").Kind; got != model.QueueFull {
			t.Errorf("it waits because of %s", got)
		}
		// The peers turn out to be less urgent.
		d.state.DeletePriorityClass("same")
		d.occupy("late", 1)
		for range 20 {
			time.Sleep(50 * time.Millisecond)
			if got := d.take(); len(got) > 0 {
				if !slices.Equal(got, []types.UID{"urgent-0"}) {
					t.Errorf("activated %v, want urgent-0", got)
				}
				return
			}
		}
		t.Error("nobody has a turn within a second")
	})
}

// TestSearchesForVictimsAreSpaced: room that is made lets a refused job try again at once, but victims are looked for once a second.
func TestSearchesForVictimsAreSpaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := evicting(t, "preempt")
		d.occupy("low", 4)
		d.ask("urgent", 4, "high")
		d.want("urgent-0")
		d.seeks("urgent-0", config.Preempt)
		d.Refused("urgent-0", dispatch.Refusal{Reason: model.Reason{Kind: model.QueueFull, Message: "kept"}})
		d.want()
		d.state.DeletePod("low-3")
		d.want()
		time.Sleep(time.Second)
		d.want("urgent-0")
		d.seeks("urgent-0", config.Preempt)
	})
}

// TestVictimsAreSoughtAgainInTime: a refusal may say when its reasons are over.
func TestVictimsAreSoughtAgainInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := evicting(t, "preempt")
		d.occupy("low", 4)
		// For a second pods that were placed are new victims, for whom all jobs are looked at again.
		time.Sleep(2 * time.Second)
		d.ask("urgent", 1, "high")
		d.want("urgent-0")
		d.seeks("urgent-0", config.Preempt)
		d.Refused("urgent-0", dispatch.Refusal{Reason: model.Reason{Kind: model.QueueFull, Message: "they cool down"}, Again: time.Now().Add(time.Minute)})
		time.Sleep(59 * time.Second)
		d.want()
		time.Sleep(1050 * time.Millisecond)
		d.want("urgent-0")
	})
}

// patient adds a job of one pod that has others evicted for it once it is a minute old.
func (d *fixture) patient() {
	d.state.UpsertGroup(keyOf("patient"), &model.Group{
		UID: "patient", Queue: model.DefaultQueue, MinMember: 1, MinResources: sumOf(1, "1"), PriorityClass: "high", Created: time.Now(), PreemptionDelay: time.Minute,
	})
	d.state.UpsertPod(memberOf("patient", 0, "1"))
}

// TestWhoIsPatientEvictsNobodyAtFirst: neither where its queue is full nor where nodes are; it looks for victims when its time has come. Another job
// that asks for the same need not wait for that.
func TestWhoIsPatientEvictsNobodyAtFirst(t *testing.T) {
	t.Run("its queue is full", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := evicting(t, "preempt")
			d.occupy("low", 4)
			time.Sleep(2 * time.Second)
			d.patient()
			d.want()
			if got := d.last("patient").Kind; got != model.QueueFull {
				t.Errorf("it waits because of %s", got)
			}
			d.ask("urgent", 1, "high")
			d.want("urgent-0")
			d.seeks("urgent-0", config.Preempt)
			d.Refused("urgent-0", dispatch.Refusal{Reason: model.Reason{Kind: model.QueueFull, Message: "they stay"}})
			time.Sleep(59 * time.Second)
			d.want()
			time.Sleep(1050 * time.Millisecond)
			d.want("patient-0")
			d.seeks("patient-0", config.Preempt)
			d.Refused("patient-0", dispatch.Refusal{Reason: model.Reason{Kind: model.QueueFull, Message: "they stay"}})
			time.Sleep(time.Minute)
			d.want()
		})
	})
	t.Run("nodes are full", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := evicting(t, "preempt")
			d.state.UpsertQueue(&model.Queue{Name: model.DefaultQueue, Capability: cores(8), Reclaimable: true})
			d.occupy("low", 4)
			time.Sleep(2 * time.Second)
			d.patient()
			d.want("patient-0")
			d.Enter("patient-0")
			if a := d.MayPreempt("patient-0"); len(a.Actions) > 0 || !strings.Contains(a.None, model.PreemptionDelayAnnotation) {
				t.Errorf("it may preempt by %v, and is told %q", a.Actions, a.None)
			}
			d.Refused("patient-0", dispatch.Refusal{Reason: noRoom})
			time.Sleep(59 * time.Second)
			d.want()
			time.Sleep(1050 * time.Millisecond)
			d.want("patient-0")
			d.Enter("patient-0")
			if a := d.MayPreempt("patient-0"); !slices.Equal(a.Actions, []config.Action{config.Preempt}) || a.None != "" {
				t.Errorf("it may preempt by %v, and is told %q", a.Actions, a.None)
			}
		})
	})
}

// TestTheNextOfALotPreempts: jobs that ask for the same share a refusal, but not the room that is kept for one of them.
func TestTheNextOfALotPreempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := evicting(t, "preempt")
		d.occupy("low", 4)
		d.ask("first", 1, "high")
		d.want("first-0")
		d.ask("second", 1, "high")
		d.seeks("first-0", config.Preempt)
		d.state.Pipeline([]model.Nomination{{UID: "first-0", Node: "node-0"}}, []types.UID{"low-3"})
		d.Pipelined("first-0")
		taken := d.take()
		if len(taken) == 1 && taken[0] == "first-0" {
			d.Enter("first-0")
			d.Refused("first-0", dispatch.Refusal{Reason: model.Reason{Kind: model.WaitingForVictims}})
			taken = d.take()
		}
		if !slices.Equal(taken, []types.UID{"second-0"}) {
			t.Fatalf("activated %v, want second-0", taken)
		}
		d.seeks("second-0", config.Preempt)
	})
}

// TestWhoComesFirstInALotSeeksItsOwnVictims: a job of higher priority, by its PodGroup and not by its pods, comes to wait with one that nobody
// can be evicted for; or the one that waits becomes such a job. The search does not wait for something else to happen.
func TestWhoComesFirstInALotSeeksItsOwnVictims(t *testing.T) {
	for name, c := range map[string]struct {
		then  func(d *fixture)
		lead  types.UID
		nodes bool
	}{
		"another comes, its queue is full":    {then: func(d *fixture) { d.ask("urgent", 1, "high") }, lead: "urgent-0"},
		"another comes, the nodes are full":   {then: func(d *fixture) { d.ask("urgent", 1, "high") }, lead: "urgent-0", nodes: true},
		"it becomes so, its queue is full":    {then: func(d *fixture) { d.ask("like", 1, "high") }, lead: "like-0"},
		"it becomes so, the nodes are full":   {then: func(d *fixture) { d.ask("like", 1, "high") }, lead: "like-0", nodes: true},
		"another becomes so, behind the like": {then: func(d *fixture) { d.ask("younger", 1, "high") }, lead: "younger-0"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := evicting(t, "preempt")
				if c.nodes {
					d.state.UpsertQueue(&model.Queue{Name: model.DefaultQueue, Reclaimable: true})
					d.addNode("node-0", "4")
				}
				d.occupy("low", 4)
				// For a second pods that were placed are new victims, for whom all jobs are looked at again.
				time.Sleep(2 * time.Second)
				d.ask("like", 1, "")
				d.ask("younger", 1, "")
				for _, uid := range d.take() {
					d.refuse(uid, dispatch.Refusal{Reason: noRoom})
				}
				d.want()
				time.Sleep(2 * time.Second)
				d.want()
				began := time.Now()
				c.then(d)
				for time.Since(began) <= time.Second {
					if took := d.take(); len(took) > 0 {
						if !slices.Equal(took, []types.UID{c.lead}) {
							t.Errorf("activated %v, want %s", took, c.lead)
						}
						d.Enter(c.lead)
						if a := d.MayPreempt(c.lead).Actions; !slices.Contains(a, config.Preempt) {
							t.Errorf("it may preempt by %v", a)
						}
						return
					}
					time.Sleep(10 * time.Millisecond)
				}
				t.Error("it has no turn within a second")
			})
		})
	}
}

// TestATurnOnBorrowedRoomSeeksItsOwnVictims: a gang that needs more than its queue is due looks for victims within the due, in
// vain, and then beyond it. The one search does not put off the other.
func TestATurnOnBorrowedRoomSeeksItsOwnVictims(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixtureWith(t, args("allocate preempt", byPriority, inGangs, byProportion))
		d.state.UpsertPriorityClass("high", 1000, false)
		d.state.UpsertQueue(&model.Queue{Name: "other", Weight: 1})
		d.state.UpsertQueue(&model.Queue{Name: model.DefaultQueue, Weight: 1})
		d.group("huge", "other", 1, 1, nil)
		d.pods("huge", 1, "16")
		d.want("huge-0")
		d.Enter("huge-0")
		d.Refused("huge-0", dispatch.Refusal{Reason: noRoom})
		// The queue is due 4 of 8 cores.
		d.occupy("low", 2)
		d.ask("urgent", 5, "high")
		d.want("urgent-0")
		d.seeks("urgent-0", config.Preempt)
		d.Refused("urgent-0", dispatch.Refusal{Reason: model.Reason{Kind: model.QueueFull, Message: "kept"}})
		d.want("urgent-0")
		if entry := d.Enter("urgent-0"); entry.Limit != (model.Reason{}) {
			t.Fatalf("the turn is begun for %v, want one on borrowed room", entry.Limit)
		}
		if a := d.MayPreempt("urgent-0"); !slices.Equal(a.Actions, []config.Action{config.Preempt}) {
			t.Errorf("it may preempt by %v, want %v", a.Actions, config.Preempt)
		}
	})
}

// poor is a fixture of which queue "rich" holds all eight cores, and whose queue "poor" asks for some: its job "first", a gang of two, has
// been refused every victim, and is no longer tried.
func poor(t *testing.T) *fixture {
	d := newFixtureWith(t, args("allocate reclaim", byPriority, inGangs, byProportion))
	d.state.UpsertPriorityClass("low", -1, false)
	for _, name := range []string{"rich", "poor"} {
		d.state.UpsertQueue(&model.Queue{Name: name, Weight: 1, Reclaimable: true})
	}
	d.state.UpsertGroup(keyOf("peers"), &model.Group{UID: "peers", Queue: "rich", MinMember: 8, Created: epoch})
	for i := range 8 {
		d.start("peers", i)
	}
	// For a second pods that were placed are new victims, for whom all jobs are looked at again.
	time.Sleep(2 * time.Second)
	d.askIn("poor", "first", 2)
	d.wantHeard()
	return d
}

func (d *fixture) askIn(queue, job string, size int) {
	d.group(job, queue, size, 1, nil)
	d.pods(job, size, "1")
}

// wantHeard has each turn of the job "first" seek victims, and be told that nobody may be evicted. It must have one soon, and no more than
// another after it.
func (d *fixture) wantHeard() {
	d.t.Helper()
	var heard []time.Duration
	for began := time.Now(); time.Since(began) < 20*time.Second; time.Sleep(100 * time.Millisecond) {
		if !slices.Contains(d.take(), "first-0") {
			continue
		}
		heard = append(heard, time.Since(began))
		d.Enter("first-0")
		if a := d.MayPreempt("first-0"); !slices.Equal(a.Actions, []config.Action{config.Reclaim}) {
			d.t.Fatalf("it may preempt by %v, want %v", a.Actions, config.Reclaim)
		}
		d.Refused("first-0", dispatch.Refusal{Reason: noRoom})
	}
	if len(heard) == 0 || len(heard) > 2 || heard[0] > 1100*time.Millisecond {
		d.t.Errorf("it is heard after %v, want once or twice, within a second at first", heard)
	}
}

// TestVictimsAreSoughtAgainWhenTheQueueIsDueMore: how many victims there are for a queue goes by what it is due, which in proportion grows
// with what it asks for.
func TestVictimsAreSoughtAgainWhenTheQueueIsDueMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := poor(t)
		d.askIn("poor", "second", 2)
		d.wantHeard()
	})
}

// TestVictimsAreSoughtForTheFirstOfAQueueFirst: with what a second job asks for, its queue is due more than before. By then the first one has just
// been looked at, in vain.
func TestVictimsAreSoughtForTheFirstOfAQueueFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := poor(t)
		d.terminate("peers", 6)
		d.terminate("peers", 7)
		d.settle(dispatch.Refusal{Reason: noRoom})
		d.state.Raise(model.ProtectionChanged)
		d.want()
		time.Sleep(time.Millisecond)
		d.askIn("poor", "second", 1)
		d.want("second-0")
		d.Enter("second-0")
		if a := d.MayPreempt("second-0"); len(a.Actions) > 0 {
			t.Errorf("the second job may preempt by %v", a.Actions)
		}
		d.Refused("second-0", dispatch.Refusal{Reason: noRoom})
		d.want("first-0")
		d.Enter("first-0")
		if a := d.MayPreempt("first-0"); !slices.Equal(a.Actions, []config.Action{config.Reclaim}) {
			t.Errorf("the first job may preempt by %v", a.Actions)
		}
		d.Refused("first-0", dispatch.Refusal{Reason: noRoom})
		d.soon("second-0")
		d.Enter("second-0")
		if a := d.MayPreempt("second-0"); !slices.Equal(a.Actions, []config.Action{config.Reclaim}) {
			t.Errorf("then the second job may preempt by %v", a.Actions)
		}
	})
}

// TestVictimsAreSoughtAgainWhenAMinimumSinks: so does a gang that needs fewer of its members than before.
func TestVictimsAreSoughtAgainWhenAMinimumSinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := poor(t)
		d.state.UpsertGroup(keyOf("peers"), &model.Group{UID: "peers", Queue: "rich", MinMember: 1, Created: epoch})
		d.wantHeard()
	})
}

// TestVictimsAreSoughtAgainWhenVictimsAreWorthLess: and one of less priority.
func TestVictimsAreSoughtAgainWhenVictimsAreWorthLess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := poor(t)
		d.state.UpsertPriorityClass("low", -2, false)
		d.wantHeard()
	})
}

// TestVictimsAreNotSoughtAgainForNothing: what protects nobody changes nobody's protection.
func TestVictimsAreNotSoughtAgainForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := poor(t)
		d.state.UpsertPriorityClass("low", -1, false)
		d.state.UpsertGroup(keyOf("peers"), &model.Group{UID: "peers", Queue: "rich", MinMember: 8, Phase: model.PhaseRunning, Created: epoch})
		d.state.UpsertGroup(keyOf("first"), &model.Group{UID: "first", Queue: "poor", MinMember: 2, Phase: model.PhaseInqueue, Created: epoch})
		time.Sleep(10 * time.Second)
		d.want()
	})
}
