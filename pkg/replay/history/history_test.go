// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package history_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/caldera-scheduler/caldera/pkg/replay/history"
	"github.com/caldera-scheduler/caldera/pkg/replay/trace"
)

// near lets numbers differ by what sums of them are rounded by.
var near = cmpopts.EquateApprox(0, 1e-9)

func TestQueuesDivideByWeightWhatTheyAskFor(t *testing.T) {
	for name, tc := range map[string]struct {
		amount                 float64
		demands, weights, want []float64
	}{
		"by weight":                           {12, []float64{20, 20}, []float64{1, 3}, []float64{3, 9}},
		"what one leaves the others divide":   {12, []float64{2, 20, 20}, []float64{2, 1, 1}, []float64{2, 5, 5}},
		"nobody gets more than is asked for":  {12, []float64{1, 2}, []float64{1, 1}, []float64{1, 2}},
		"who asks for nothing does not count": {12, []float64{0, 20, 20}, []float64{10, 1, 1}, []float64{0, 6, 6}},
		"nobody":                              {12, nil, nil, []float64{}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, history.Divide(tc.amount, tc.demands, tc.weights), near); diff != "" {
				t.Errorf("parts (-want,+got)\n%s", diff)
			}
		})
	}
}

// TestTheDivisionIsMaxMin: all is divided or nobody asks for more; and who gets less than it asks for has, for its weight, as much as anybody.
func TestTheDivisionIsMaxMin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(t, "queues")
		demands := rapid.SliceOfN(rapid.Float64Range(0, 50), n, n).Draw(t, "demands")
		weights := rapid.SliceOfN(rapid.Float64Range(0.1, 5), n, n).Draw(t, "weights")
		amount := rapid.Float64Range(0, 100).Draw(t, "amount")
		parts := history.Divide(amount, demands, weights)
		sum, asked := 0.0, 0.0
		for i := range parts {
			sum += parts[i]
			asked += demands[i]
			if parts[i] < 0 || parts[i] > demands[i]+1e-9 {
				t.Fatalf("queue %d asks for %g and gets %g", i, demands[i], parts[i])
			}
			for j := range parts {
				if parts[i] < demands[i]-1e-9 && parts[i]/weights[i] < parts[j]/weights[j]-1e-9 {
					t.Fatalf("queue %d asks for %g and gets %g, queue %d has more for its weight: %g", i, demands[i], parts[i], j, parts[j])
				}
			}
		}
		if math.Abs(sum-min(amount, asked)) > 1e-9 {
			t.Fatalf("%g of %g are divided, %g are asked for", sum, amount, asked)
		}
	})
}

func TestAHistoryIsTakenDown(t *testing.T) {
	tr := &trace.Trace{
		Nodes:  []trace.Node{{Name: "n", GPUs: 8}},
		Queues: []trace.Queue{{Name: "a", Nodes: 1}, {Name: "b", Nodes: 3}},
		Jobs: []trace.Job{
			{Queue: "a", Workers: 1, GPUs: 6, MilliGPU: 1000},
			{Queue: "b", Workers: 2, GPUs: 4, MilliGPU: 1000, Submit: 30 * time.Minute},
			{Workers: 1, GPUs: 1, MilliGPU: 500, Submit: 90 * time.Minute},
		},
	}
	r := history.NewRecorder(tr, func() float64 { return 1.5 })
	r.Come(0)
	r.Start(0, 0)
	r.Advance(30 * time.Minute)
	r.Come(1)
	r.Advance(90 * time.Minute)
	r.Come(2)
	r.Evict(0, 6*90*60)
	r.Start(1, 0)
	r.Advance(2 * time.Hour)
	r.End(1)
	r.Start(0, 0)
	r.Start(2, 0)
	r.Advance(150 * time.Minute)
	r.End(0)
	got := r.Done()
	want := &history.History{
		GPUs: 8, Queues: []string{"a", "b", "default"}, End: 150 * time.Minute,
		// From 9 to 90 minutes: job 0 alone.
		Window: history.Mean{Held: 6, Fragmented: 1.5},
		Jobs: []history.Outcome{
			{Submit: 0, Start: 0, End: 150 * time.Minute, Evictions: 1, Lost: 6 * 90 * 60},
			{Submit: 30 * time.Minute, Start: 90 * time.Minute, End: 2 * time.Hour},
			{Submit: 90 * time.Minute, Start: 2 * time.Hour, End: -1},
		},
		Hours: []history.Hour{
			// For half an hour 8 GPUs are asked for, and 2 are free: nothing is stranded, since nobody asks for as few.
			{
				Mean: history.Mean{Held: 6, Fragmented: 1.5}, Waiting: 4, Jobs: 1,
				Queues: []history.QueueHour{{Held: 6, Entitled: 3 + 1}, {Entitled: 3}, {}},
			},
			// The half hour of job 1 on all: job 0 waits for 6, job 2 for a half, and nothing is free. Of 8 queue default gets its half, and a its quarter.
			{
				Mean: history.Mean{Held: 3 + 4, Fragmented: 1.5}, Waiting: 4 + 3.25, Jobs: 2, Evictions: 1,
				Queues: []history.QueueHour{{Held: 3, Entitled: 1 + 1.875/2}, {Held: 4, Entitled: 3 + 5.625/2}, {Entitled: 0.25}},
			},
			{Mean: history.Mean{Held: 3.25, Fragmented: 0.75}, Queues: []history.QueueHour{{Held: 3, Entitled: 3}, {}, {Held: 0.25, Entitled: 0.25}}},
		},
	}
	if diff := cmp.Diff(want, got, near); diff != "" {
		t.Errorf("history (-want,+got)\n%s", diff)
	}
}

func TestRoomIsStrandedWhileSomebodyWaitsWhoAsksForNoMore(t *testing.T) {
	tr := &trace.Trace{
		Nodes: []trace.Node{{Name: "n", GPUs: 4}, {Name: "m", GPUs: 4}},
		Jobs:  []trace.Job{{Workers: 2, GPUs: 3, MilliGPU: 1000}, {Workers: 1, GPUs: 2, MilliGPU: 1000}, {Workers: 1, GPUs: 3, MilliGPU: 1000}, {Workers: 1}},
	}
	r := history.NewRecorder(tr, nil)
	r.Come(0)
	r.Start(0, 0)
	r.Come(2)
	r.Advance(time.Hour)
	r.Come(1)
	r.Advance(2 * time.Hour)
	// Who asks for no GPU waits for something else.
	r.Start(1, 0)
	r.Come(3)
	r.Advance(3 * time.Hour)
	h := r.Done()
	if h.Hours[2].Stranded != 0 {
		t.Errorf("stranded are %g while only a job without GPUs waits", h.Hours[2].Stranded)
	}
	if h.Hours[0].Stranded != 0 || h.Hours[1].Stranded != 2 {
		t.Errorf("stranded are %g, then %g: want 0 while 3 are asked for, 2 while 2 are", h.Hours[0].Stranded, h.Hours[1].Stranded)
	}
}
