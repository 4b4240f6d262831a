// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package account_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/queue/account"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// TestWhoseDueMayShrink: the cluster has 16 GPUs. Queue a asks for some of them.
func TestWhoseDueMayShrink(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		mode    account.Mode
		recency account.Recency
		queues  []string
		asks    int64
		want    bool
	}{
		"a queue alone": {mode: account.Proportion, queues: []string{"a"}, asks: 16},
		"beside the root of all queues, which has no jobs": {mode: account.Proportion, queues: []string{"a", model.RootQueue}, asks: 16},
		"more than its part, which others may ask for":     {mode: account.Proportion, queues: []string{"a", "b"}, asks: 9, want: true},
		"its part":                         {mode: account.Proportion, queues: []string{"a", "b"}, asks: 8},
		"what was held lately moves parts": {mode: account.Proportion, queues: []string{"a", "b"}, recency: account.Recency{HalfLife: time.Hour, Pull: 1}, asks: 1, want: true},
		"but not that of a queue alone":    {mode: account.Proportion, queues: []string{"a"}, recency: account.Recency{HalfLife: time.Hour, Pull: 1}, asks: 16},
		"what a queue deserves is its own": {mode: account.Capacity, queues: []string{"a", "b"}, asks: 16},
		"a queue that does not exist":      {mode: account.Proportion, queues: []string{"b"}, asks: 8, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := sixteen(c.mode, c.recency, c.queues...)
			b.SetJob(keyOf(0), holder(0, "a", 0, c.asks))
			b.Update()
			if got := b.DueMayShrink(b.Queue("a")); got != c.want {
				t.Errorf("its due may shrink: %t, want %t", got, c.want)
			}
		})
	}
}

// TestADueThatMayNotShrinkDoesNot whatever others ask for.
func TestADueThatMayNotShrinkDoesNot(t *testing.T) {
	t.Parallel()
	kept, shrunk := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		w := &world{
			mode: account.Proportion, total: resource.Vector{{Name: gpu, Value: 16}}, queues: map[string]*model.Queue{}, jobs: map[model.JobKey]*model.Job{},
		}
		submit := func(i int, queue string) {
			job := holder(i, queue, 0, rapid.SampledFrom([]int64{0, 3, 8, 13, 20}).Draw(t, "asks of "+queue))
			w.jobs[job.Key] = job
		}
		of := []string{"a", "b", "c"}[:rapid.SampledFrom([]int{1, 2, 3}).Draw(t, "queues")]
		for i, name := range of {
			w.queues[name] = &model.Queue{Name: name, Weight: rapid.Int32Range(1, 4).Draw(t, "weight")}
			if rapid.IntRange(0, 3).Draw(t, "guaranteed") == 0 {
				w.queues[name].Guarantee = resource.Vector{{Name: gpu, Value: 5}}
			}
			submit(i, name)
		}
		before := w.anew()
		submit(len(of), rapid.SampledFrom(of).Draw(t, "asks for more"))
		after := w.anew()
		for _, q := range before.Queues() {
			now := after.Queue(q.Name)
			if now == nil || !now.Own.Requested.Equal(q.Own.Requested) || now.Own.Jobs != q.Own.Jobs {
				continue
			}
			switch less := !now.Deserved.Covers(q.Deserved); {
			case less && !before.DueMayShrink(q):
				t.Fatalf("queue %s was due %v, is due %v, and that was not to shrink", q.Name, q.Deserved, now.Deserved)
			case less:
				shrunk++
			case !before.DueMayShrink(q):
				kept++
			}
		}
	})
	if t.Logf("%d dues shrank of those that may, %d did not of those that may not", shrunk, kept); shrunk == 0 || kept == 0 {
		t.Error("the worlds have no queues of both kinds")
	}
}
