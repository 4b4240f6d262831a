// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"pgregory.net/rapid"
)

// TestRefusalsAreAsIfNothingWereRemembered: what the nodes had left at one plan tells nothing wrong at the next, though pods have come and gone since. The
// same is said of what is short, and of how many nodes. The snapshot is brought up to date by kube-scheduler's cache, as between cycles.
func TestRefusalsAreAsIfNothingWereRemembered(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		count, logger := rapid.IntRange(1, 6).Draw(r, "nodes"), klog.Background()
		w := newFixture(t, nil, nil)
		kept := cache.New(t.Context(), nil, false, false)
		for i := range count {
			kept.AddNode(logger, nodeShape{cpu: "8", memory: "16Gi", devices: "2"}.node(i))
		}
		var there []*corev1.Pod
		for i := range rapid.IntRange(1, 12).Draw(r, "steps") {
			var err error
			if rapid.Bool().Draw(r, "leaves") && len(there) > 0 {
				k := rapid.IntRange(0, len(there)-1).Draw(r, "which")
				err = kept.RemovePod(logger, there[k])
				there = slices.Delete(there, k, k+1)
			} else {
				p := onNode(pod(fmt.Sprintf("there-%d", i), fmt.Sprint(rapid.IntRange(1, 8).Draw(r, "takes"))), fmt.Sprintf("node-%d", rapid.IntRange(0, count-1).Draw(r, "on")))
				err = kept.AddPod(logger, p)
				there = append(there, p)
			}
			if err := errors.Join(err, kept.UpdateSnapshot(logger, w.snapshot)); err != nil {
				r.Fatal(err)
			}
			w.plansAsOneThatForgets(t, r, fmt.Sprintf("gang-%d", i))
		}
	})
}

// plansAsOneThatForgets plans a gang by the fixture's planner, and by one that has planned nothing yet, which come to the same.
func (w *fixture) plansAsOneThatForgets(tb testing.TB, r *rapid.T, name string) {
	tb.Helper()
	size := rapid.IntRange(1, 12).Draw(r, "size")
	var change []func(int, *corev1.Pod)
	if rapid.Bool().Draw(r, "devices") {
		change = append(change, device)
	}
	job := w.job(gangOf(name, size, size, fmt.Sprint(rapid.IntRange(1, 9).Draw(r, "cpu")), change...))
	got := w.plan(tb, job)
	want, err := w.planner.Anew().Plan(tb.Context(), asking(job))
	if err != nil {
		r.Fatal(err)
	}
	if got.Reason != want.Reason || len(got.Placements) != len(want.Placements) {
		r.Fatalf("%d are placed, %q; a planner that remembers nothing places %d, %q",
			len(got.Placements), got.Reason.Text(), len(want.Placements), want.Reason.Text())
	}
}
