// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/queue/dispatch"
)

// noted is what was reserved for the gang holder before the scheduler started.
func noted() *model.Reservation {
	// A bubble's time begins a day later.
	since := time.Date(1999, 12, 31, 0, 0, 0, 0, time.UTC)
	return &model.Reservation{
		Job: "ns/holder", UID: "holder", Since: since, Start: since.Add(48 * time.Hour), Bound: true, First: since.Add(50 * time.Hour),
		Pods: map[string][]types.UID{"node-0": {"holder-0", "holder-1"}}, InTheWay: []types.UID{"first-0"},
	}
}

// followed is a scheduler that has not started yet, in the place of one that has reserved room for the gang holder. Another job is older.
func followed(t *testing.T, note *model.Reservation, plugins ...config.TierPlugin) *fixture {
	d := newStandbyWith(t, args("enqueue allocate backfill", append([]config.TierPlugin{byPriority, inGangs, byProportion, byOvercommit}, plugins...)...))
	d.reserves = true
	d.addNode("node-1", "8")
	d.state.UpsertQueue(&model.Queue{Name: model.DefaultQueue, UID: "q", Reservation: note})
	d.submit("older", 1, 20, "4")
	d.submit("holder", 2, 10, "4")
	return d
}

var reserving = config.TierPlugin{Name: config.PluginReservation}

// TestWhatWasReservedIsReservedAgain before anybody else has a turn, with what was told then.
func TestWhatWasReservedIsReservedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := followed(t, noted(), reserving)
		if _, known := d.View().Reservations(); known {
			t.Error("what is reserved is known before the dispatcher runs")
		}
		go d.Run(t.Context())
		d.want("holder-0")
		if reserved, known := d.View().Reservations(); !known || !reserved[model.DefaultQueue].Same(noted()) {
			t.Errorf("before its turn there is reserved %v, %t; want what was", reserved, known)
		}
		if entry := d.Enter("holder-0"); entry.Verdict != dispatch.Lead || entry.Limit == (model.Reason{}) {
			t.Fatalf("the turn is %v", entry)
		}
		may := d.MayPreempt("holder-0")
		if !may.Resumes.Same(noted()) || len(may.Actions) > 0 || may.Reserves {
			t.Errorf("the turn may %v, want that it reserves what was", may)
		}
		d.state.Reserve([]model.Nomination{{UID: "holder-0", Node: "node-0"}, {UID: "holder-1", Node: "node-0"}}, nil)
		d.Reserve("holder-0", dispatch.Room{Start: noted().Start.Add(-time.Hour), Bound: true, Leavers: []types.UID{"first-0"}})
		want := noted()
		want.Start = noted().Start.Add(-time.Hour)
		if reserved, _ := d.View().Reservations(); !reserved[model.DefaultQueue].Same(want) {
			t.Errorf("reserved is %v, want %v", reserved[model.DefaultQueue], want)
		}
		d.want("older-0")
	})
}

// TestWhatCannotBeReservedAgain is no reason to wait for: the first in order has its turn, for its own sake.
func TestWhatCannotBeReservedAgain(t *testing.T) {
	other := func(change func(*model.Reservation)) *model.Reservation {
		n := noted()
		change(n)
		return n
	}
	for name, c := range map[string]struct {
		note *model.Reservation
		off  bool
		// before changes the cluster before the scheduler starts; turn ends the turn that the gang has to have the room reserved.
		before func(d *fixture)
		turn   func(d *fixture)
		// rests: the gang has no turn for a while after that.
		rests bool
	}{
		"nothing was reserved":           {},
		"the turn is refused":            {note: noted(), turn: func(d *fixture) { d.Refused("holder-0", dispatch.Refusal{Reason: noRoom}) }},
		"planning fails":                 {note: noted(), turn: func(d *fixture) { d.Errored("holder-0", errors.New("broken")) }, rests: true},
		"it was for another of its name": {note: other(func(n *model.Reservation) { n.UID = "holder-before" })},
		"the plugin is not configured":   {note: noted(), off: true},
		"the queue is closed": {note: noted(), before: func(d *fixture) {
			d.state.UpsertQueue(&model.Queue{Name: "shut", State: model.QueueShut})
			d.state.UpsertGroup(keyOf("holder"), &model.Group{UID: "holder", Queue: "shut", MinMember: 2, Created: epoch.Add(-10 * time.Minute)})
		}},
		"a pod is gone":                   {note: noted(), before: func(d *fixture) { d.state.DeletePod("holder-1") }},
		"others are being evicted for it": {note: noted(), before: func(d *fixture) { d.state.Pipeline([]model.Nomination{{UID: "holder-0", Node: "node-0"}}, nil) }},
		"all of them are": {note: noted(), before: func(d *fixture) {
			d.state.DeletePod("holder-0")
			d.state.DeletePod("holder-1")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				plugins := []config.TierPlugin{reserving}
				if c.off {
					plugins = nil
				}
				d := followed(t, c.note, plugins...)
				if c.before != nil {
					c.before(d)
				}
				go d.Run(t.Context())
				if c.turn != nil {
					d.want("holder-0")
					d.Enter("holder-0")
					c.turn(d)
				}
				d.want("older-0")
				if reserved, known := d.View().Reservations(); len(reserved) > 0 || known == c.off {
					t.Errorf("reserved is %v, known %t", reserved, known)
				}
				if entry := d.Enter("older-0"); entry.Verdict != dispatch.Lead || entry.Limit != (model.Reason{}) {
					t.Errorf("the turn is %v", entry)
				}
				if d.Refused("older-0", dispatch.Refusal{Reason: noRoom}); c.turn != nil && !c.rests {
					d.want("holder-0")
				}
			})
		})
	}
}

// TestWhoHeldIsLetInAgain: its PodGroup does not say that it was, and others hold and were promised all there is. Without its pods it is not.
func TestWhoHeldIsLetInAgain(t *testing.T) {
	for name, whole := range map[string]bool{"with its pods": true, "one pod is gone": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newStandbyWith(t, args("enqueue allocate backfill", byPriority, inGangs, byProportion, byOvercommit, reserving))
				d.reserves = true
				d.state.UpsertQueue(&model.Queue{Name: model.DefaultQueue, UID: "q", Reservation: noted()})
				d.submit("first", 2, 30, "4")
				for i := range 2 {
					p := memberOf("first", i, "4")
					p.Spec.NodeName, p.Status.Phase = "node-0", corev1.PodRunning
					d.state.UpsertPod(p)
				}
				d.submit("older", 1, 20, "4")
				d.submit("holder", 2, 10, "4")
				if !whole {
					d.state.DeletePod("holder-1")
				}
				go d.Run(t.Context())
				if whole {
					d.want("holder-0")
					d.admitted("holder")
					return
				}
				d.want()
				d.admitted()
			})
		})
	}
}

// TestAReloadBreaksNoPromise: reserved room stays so by other rules, unless these reserve none, and the holder has its turn when it is free.
func TestAReloadBreaksNoPromise(t *testing.T) {
	tiers := []config.TierPlugin{byPriority, inGangs, byProportion, byOvercommit, reserving}
	for name, c := range map[string]struct {
		then  []config.TierPlugin
		stays bool
	}{
		"room is still reserved": {then: tiers, stays: true},
		"none is any more":       {then: tiers[:4]},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := withHolder(t)
				before, _ := d.View().Reservations()
				<-d.adopt(args("enqueue allocate backfill", c.then...))
				synctest.Wait()
				after, known := d.View().Reservations()
				want := before[model.DefaultQueue]
				if want == nil || !known || c.stays != after[model.DefaultQueue].Same(want) || c.stays != (len(d.abandoned) == 0) {
					t.Errorf("reserved was %v, is %v, and given up is that of %v", want, after[model.DefaultQueue], d.abandoned)
				}
				d.refuseAll(time.Second, func(types.UID) {}, func() {})
				d.state.DeletePod("first-0")
				d.state.DeletePod("first-1")
				if leads := d.take(); !slices.Contains(leads, "holder-0") {
					t.Errorf("turns have %v, want the gang", leads)
				}
			})
		})
	}
}
