// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/queue/dispatch"
)

// wantPrecedence checks that what is said of any two jobs goes with the lines, and returns what decides that the first goes before the second.
func (d *fixture) wantPrecedence(first, second string) dispatch.Precedence {
	d.t.Helper()
	var order []model.JobKey
	queue := map[model.JobKey]string{}
	for _, line := range d.View().Lines() {
		for _, w := range line.Jobs {
			order = append(order, w.Job)
			queue[w.Job] = line.Queue
		}
	}
	for i, a := range order {
		for k, b := range order {
			if p, ok := d.View().Precedence(a, b); !ok || i != k && (p.Order < 0) != (i < k) && (p.Queues || queue[a] == queue[b]) {
				d.t.Errorf("the order is %v, and of %s and %s is said %+v, %t", order, a, b, p, ok)
			}
		}
	}
	p, ok := d.View().Precedence(keyOf(first), keyOf(second))
	if back, _ := d.View().Precedence(keyOf(second), keyOf(first)); !ok || p.Order >= 0 || back.Order <= 0 || back.A != p.B || back.B != p.A {
		d.t.Errorf("of %s and %s is said %+v, %t, and the other way round %+v", first, second, p, ok, back)
	}
	return p
}

// TestWhatPutsAJobBeforeAnother: before Run and while it runs the same is said. Gangs that hold nodes for too few come before all, of other queues, too.
func TestWhatPutsAJobBeforeAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newStandby(t)
		d.submit("calm", 2, 0, "1")
		d.submit("half", 3, 0, "1")
		d.submit("urgent", 2, 5, "1")
		d.bind("half", 0)
		// By its name its queue would go before that of the others.
		d.state.UpsertGroup(keyOf("elsewhere"), &model.Group{UID: "elsewhere", Queue: "another", MinMember: 1, Created: epoch.Add(-time.Hour)})
		p, ok := d.View().Precedence(keyOf("half"), keyOf("urgent"))
		if !ok || p.Order >= 0 || p.Plugin != "" {
			t.Errorf("before Run is said %+v, %t", p, ok)
		}
		if p, ok := d.View().Precedence(keyOf("calm"), keyOf("urgent")); !ok || p.Order <= 0 || p.Rule != "the older job goes first" {
			t.Errorf("before Run is said %+v, %t", p, ok)
		}
		if p, ok := d.View().Precedence(keyOf("calm"), keyOf("nobody")); ok {
			t.Errorf("of a job that does not exist is said %+v", p)
		}
		go d.Run(t.Context())
		synctest.Wait()
		want := dispatch.Precedence{}
		want.Order, want.Rule = -1, "a gang that holds nodes for too few of its pods is completed before all other jobs"
		want.A, want.B = "holds nodes for too few of its pods", "does not"
		if diff := cmp.Diff(want, d.wantPrecedence("half", "urgent")); diff != "" {
			t.Errorf("of a half gang is said (-want,+got)\n%s", diff)
		}
		if p := d.wantPrecedence("urgent", "calm"); p.Rule != "the older job goes first" {
			t.Errorf("of an older job is said %+v", p)
		}
		if p := d.wantPrecedence("half", "elsewhere"); p.Rule != want.Rule || p.Queues {
			t.Errorf("of a half gang and a job of another queue is said %+v", p)
		}
	})
}
