// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
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

// TestOvercommitHoldsForWhoCannotHold: of jobs for which no room can be reserved, however many pods end, one is let in at a time, and gives its admission
// back.
func TestOvercommitHoldsForWhoCannotHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := overfull(t)
		for i := range 8 {
			d.submit(fmt.Sprintf("job-%d", i), 2, 10-i, "4")
		}
		d.admitted("first")
		asked := 0
		for range 200 {
			time.Sleep(30 * time.Second)
			for leads := d.take(); len(leads) > 0; leads = d.take() {
				if d.Enter(leads[0]).Verdict != dispatch.Lead {
					continue
				}
				if d.MayPreempt(leads[0]).Reserves {
					asked++
					d.NoneAhead(leads[0])
				}
				d.Refused(leads[0], dispatch.Refusal{Reason: noRoom})
			}
			synctest.Wait()
			in := 0
			for job := range d.state.Snapshot().Jobs {
				if job.Admitted {
					in++
				}
			}
			if in > 2 {
				t.Fatalf("%d jobs are let in beside the first, want one at most", in-1)
			}
		}
		if asked < 8 {
			t.Errorf("%d times room was sought for a job, want that each has its time", asked)
		}
	})
}
