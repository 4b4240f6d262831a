// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/queue/dispatch"
)

// wantTotals compares the seconds for which gangs were half placed, and had lost members, and what they held meanwhile in core-seconds.
func (d *fixture) wantTotals(half, lost, cores float64) {
	d.t.Helper()
	synctest.Wait()
	got := d.View().BrokenTotals()
	want := map[dispatch.Break]float64{dispatch.Half: half, dispatch.Lost: lost}
	if diff := cmp.Diff(want, got.Seconds); diff != "" {
		d.t.Errorf("seconds (-want,+got)\n%s", diff)
	}
	if held := got.Held[corev1.ResourceCPU] / 1000; held != cores {
		d.t.Errorf("they held %v core-seconds, want %v", held, cores)
	}
}

// wantWhole takes who was told to be whole again since the last call.
func (d *fixture) wantWhole(jobs ...string) {
	d.t.Helper()
	synctest.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	if !slices.Equal(d.whole, jobs) {
		d.t.Errorf("it is told that %q are whole again, want %q", d.whole, jobs)
	}
	d.whole = nil
}

// TestWhatBrokenGangsCostIsCounted: also while they are broken, and by what each of them holds.
func TestWhatBrokenGangsCostIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t)
		d.wantTotals(0, 0, 0)
		d.broken("half", 1, false, model.Terms{})
		time.Sleep(10 * time.Second)
		d.wantTotals(10, 0, 10)
		d.bind("half", 1)
		synctest.Wait()
		d.broken("lost", 2, true, model.Terms{})
		time.Sleep(5 * time.Second)
		d.wantTotals(15, 5, 30)
		d.bind("half", 2)
		d.wantWhole("half half 15s")
		time.Sleep(10 * time.Second)
		d.wantTotals(15, 15, 50)
		d.bind("lost", 2)
		d.wantWhole("lost lost 15s")
		time.Sleep(time.Minute)
		d.wantTotals(15, 15, 50)
	})
}

// TestAGangThatStartsIsNotToldToBeWholeAgain: nor one that is deleted.
func TestAGangThatStartsIsNotToldToBeWholeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t)
		d.broken("starts", 1, false, model.Terms{})
		time.Sleep(10 * time.Millisecond)
		d.bind("starts", 1)
		d.bind("starts", 2)
		d.broken("gone", 1, false, model.Terms{})
		time.Sleep(10 * time.Second)
		d.state.DeletePod("gone-0")
		d.state.DeleteGroup(keyOf("gone"))
		d.wantWhole()
		time.Sleep(10 * time.Second)
		d.wantTotals(10.01, 0, 10.01)
	})
}
