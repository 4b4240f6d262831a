// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch_test

import (
	"fmt"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/queue/dispatch"
)

// overfull is a full cluster, which overcommit lets nobody else into, with room to reserve after half an hour.
func overfull(t *testing.T) *fixture {
	d := newFixtureWith(t, args("enqueue allocate backfill", byPriority, inGangs, byProportion, byOvercommit, config.TierPlugin{Name: config.PluginReservation}))
	d.submit("first", 2, 19, "4")
	d.want("first-0")
	d.plan("first-0")
	d.place("first-0")
	d.place("first-1")
	d.want("first-1")
	return d
}

// refuseAll lets time go by and refuses all turns, of those for whose jobs room may be reserved after seek. Look is called every second.
func (d *fixture) refuseAll(long time.Duration, seek func(lead types.UID), look func()) {
	looked := time.Now()
	for end := looked.Add(long); time.Now().Before(end); {
		time.Sleep(50 * time.Millisecond)
		for leads := d.take(); len(leads) > 0; leads = d.take() {
			if d.Enter(leads[0]).Verdict != dispatch.Lead {
				continue
			}
			if d.MayPreempt(leads[0]).Reserves {
				seek(leads[0])
			}
			d.Refused(leads[0], dispatch.Refusal{Reason: noRoom})
		}
		if time.Since(looked) >= time.Second {
			looked = time.Now()
			synctest.Wait()
			look()
		}
	}
}

// TestWhoIsKeptOutIsLetInToHold: also a job whose pods are created once it is let in.
func TestWhoIsKeptOutIsLetInToHold(t *testing.T) {
	for name, submit := range map[string]func(d *fixture){
		"with its pods":    func(d *fixture) { d.submit("job-0", 2, 10, "4") },
		"without its pods": func(d *fixture) { d.group("job-0", "default", 2, 10, cores(8)) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := overfull(t)
				submit(d)
				d.admitted("first")
				time.Sleep(29 * time.Minute)
				d.admitted("first")
				time.Sleep(2 * time.Minute)
				d.admitted("first", "job-0")
			})
		})
	}
}

// withHolder is a cluster with 2 idle cores beside the 8 of the job first, which ends in an hour at the latest. Holder waits for these.
func withHolder(t *testing.T) *fixture {
	d := overfull(t)
	d.reserves = true
	d.addNode("node-1", "2")
	d.submit("holder", 2, 10, "4")
	for leads := d.take(); len(leads) == 0; leads = d.take() {
		time.Sleep(time.Second)
	}
	d.Enter("holder-0")
	if !d.MayPreempt("holder-0").Reserves {
		t.Fatal("no room may be reserved for the job")
	}
	d.state.Reserve([]model.Nomination{{UID: "holder-0", Node: "node-0"}, {UID: "holder-1", Node: "node-0"}}, nil)
	d.Reserve("holder-0", dispatch.Room{Start: time.Now().Add(time.Hour), Bound: true, Leavers: []types.UID{"first-0", "first-1"}})
	d.admitted("first", "holder")
	return d
}

// TestAHolderKeepsNobodyOut: what it was promised is what others still hold. Its room is kept for it by other means.
func TestAHolderKeepsNobodyOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := withHolder(t)
		d.submit("small", 1, 1, "1")
		d.want("small-0")
		d.plan("small-0")
		d.admitted("first", "holder", "small")
		d.place("small-0")
		// Whose pods are created once they are let in are trusted with what is idle and not the holder's.
		d.group("large", model.DefaultQueue, 1, 2, cores(2))
		d.group("next", model.DefaultQueue, 1, 1, cores(1))
		d.admitted("first", "holder", "small", "next")
		d.state.DeletePod("first-0")
		d.state.DeletePod("first-1")
		d.state.DeleteGroup(keyOf("first"))
		d.group("last", model.DefaultQueue, 1, 1, cores(1))
		d.admitted("holder", "small", "next")
	})
}

// TestWhoPassesGivesBackToTheQueue: a job that ends before the holder starts is on nodes that are the holder's. Its queue lets others have as much of the rest.
func TestWhoPassesGivesBackToTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := withHolder(t)
		d.state.DeletePod("first-0")
		lasts := func(job string, seconds int64) {
			pod := memberOf(job, 0, "1")
			pod.Spec.ActiveDeadlineSeconds = &seconds
			d.group(job, model.DefaultQueue, 1, 1, cores(1))
			d.state.UpsertPod(pod)
		}
		for _, job := range []string{"short-0", "short-1"} {
			lasts(job, 60)
			lead := types.UID(job + "-0")
			d.want(lead)
			d.plan(lead)
			d.place(lead)
		}
		for _, job := range []string{"long-0", "long-1"} {
			lasts(job, 24*3600)
			lead := types.UID(job + "-0")
			d.want(lead)
			d.plan(lead)
			d.place(lead)
		}
		lasts("long-2", 24*3600)
		d.want()
	})
}

// TestWhoPassesTooLateGivesNothingBack: a bind of a short job fails. When it is placed again it ends after the holder starts.
func TestWhoPassesTooLateGivesNothingBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := withHolder(t)
		pod := memberOf("short", 0, "1")
		pod.Spec.ActiveDeadlineSeconds = new(int64(30 * 60))
		d.group("short", model.DefaultQueue, 1, 1, cores(1))
		d.state.UpsertPod(pod)
		d.want("short-0")
		d.plan("short-0")
		d.place("short-0")
		d.unreserve("short", "short-0")
		d.refuseAll(45*time.Minute, func(types.UID) {}, func() {})
		d.state.DeletePod("first-0")
		// turnOf refuses all turns before that of a pod, if it gets one.
		turnOf := func(lead types.UID) bool {
			for leads := d.take(); len(leads) > 0; leads = d.take() {
				if leads[0] == lead {
					return true
				}
				if d.Enter(leads[0]).Verdict == dispatch.Lead {
					d.Refused(leads[0], dispatch.Refusal{Reason: noRoom})
				}
			}
			return false
		}
		if !turnOf("short-0") {
			t.Fatal("the short job has no turn")
		}
		d.plan("short-0")
		d.place("short-0")
		// Of 10 cores 5 are held, and 4 are kept for the holder.
		d.submit("two", 1, 2, "2")
		if turnOf("two-0") {
			t.Error("a job has a turn for what its queue keeps for the holder")
		}
		d.submit("one", 1, 1, "1")
		if !turnOf("one-0") {
			t.Error("a job has no turn though its queue has room besides")
		}
	})
}

// TestOvercommitHoldsForWhoCannotHold: of jobs for which no room can be reserved, however many pods end, one is let in at a time, and gives its admission
// back.
func TestOvercommitHoldsForWhoCannotHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := overfull(t)
		for i := range 8 {
			d.submit(fmt.Sprintf("job-%d", i), 2, 10-i, "4")
		}
		d.admitted("first")
		asked := map[types.UID]bool{}
		d.refuseAll(time.Hour, func(lead types.UID) {
			asked[lead] = true
			d.NoneAhead(lead)
		}, func() {
			in := 0
			for job := range d.state.Snapshot().Jobs {
				if job.Admitted {
					in++
				}
			}
			if in > 2 {
				t.Fatalf("%d jobs are let in beside the first, want one at most", in-1)
			}
		})
		if len(asked) < 8 {
			t.Errorf("room was sought for %d jobs, want that each has its time", len(asked))
		}
	})
}

// TestHopelessCandidatesTakeLittleTime: 500 jobs wait for which no room can be reserved, and to find that out takes 60 ms each time. Nobody else waits for more than
// a twentieth of the time.
func TestHopelessCandidatesTakeLittleTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const long = 60 * time.Millisecond
		d := newFixtureWith(t, args("allocate", byPriority, inGangs, config.TierPlugin{Name: config.PluginReservation}))
		for i := range 500 {
			// Each is a lot of its own.
			d.submit(fmt.Sprintf("job-%d", i), 2, i%10, fmt.Sprintf("%dm", 1000+i))
		}
		var spent time.Duration
		seek := func(lead types.UID) {
			time.Sleep(long)
			spent += long
			d.NoneAhead(lead)
		}
		d.refuseAll(30*time.Minute, seek, func() {})
		spent = 0
		d.refuseAll(20*time.Minute, seek, func() {})
		if most := time.Minute + long; spent == 0 || spent > most {
			t.Errorf("of 20 minutes %s are spent on jobs that cannot hold, want some, and %s at most", spent, most)
		}
	})
}

// TestOverdueJobsHold: sla votes before gang does, and no plugin reserves room for those that have merely waited.
func TestOverdueJobsHold(t *testing.T) {
	for name, c := range map[string]struct {
		first, then []config.TierPlugin
		// after is when room may be reserved first for the job that is due in 5 minutes, and for the one that is in 10; zero: never.
		after map[types.UID]time.Duration
	}{
		"sla before gang":  {[]config.TierPlugin{bySLA("20m")}, []config.TierPlugin{byPriority, inGangs}, map[types.UID]time.Duration{"a-0": 5 * time.Minute, "b-0": 10 * time.Minute}},
		"sla beside gang":  {[]config.TierPlugin{bySLA("20m"), inGangs}, []config.TierPlugin{byPriority}, map[types.UID]time.Duration{}},
		"and reservation":  {[]config.TierPlugin{inGangs}, []config.TierPlugin{bySLA("42m"), {Name: config.PluginReservation}}, map[types.UID]time.Duration{"a-0": 27 * time.Minute, "b-0": 30 * time.Minute}},
		"reservation only": {[]config.TierPlugin{inGangs}, []config.TierPlugin{{Name: config.PluginReservation}}, map[types.UID]time.Duration{"a-0": 30 * time.Minute, "b-0": 30 * time.Minute}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rules := args("allocate", c.first...)
				rules.Tiers = append(rules.Tiers, config.Tier{Plugins: c.then})
				d := newFixtureWith(t, rules)
				d.group("a", model.DefaultQueue, 2, 15, cores(8))
				d.pods("a", 2, "4")
				d.group("b", model.DefaultQueue, 2, 10, cores(6))
				d.pods("b", 2, "3")
				began, first := time.Now(), map[types.UID]time.Duration{}
				d.refuseAll(35*time.Minute, func(lead types.UID) {
					if _, known := first[lead]; !known {
						first[lead] = time.Since(began).Truncate(time.Minute)
					}
					d.NoneAhead(lead)
				}, func() {})
				if !maps.Equal(first, c.after) {
					t.Errorf("room may be reserved after %v, want %v", first, c.after)
				}
			})
		})
	}
}
