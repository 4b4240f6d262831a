// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package figures_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/caldera-scheduler/caldera/pkg/replay/figures"
	"github.com/caldera-scheduler/caldera/pkg/replay/history"
	"github.com/caldera-scheduler/caldera/pkg/replay/trace"
)

// near lets numbers differ by what sums of them are rounded by.
var near = cmpopts.EquateApprox(0, 1e-9)

// ten are jobs of one GPU that come every hour and run for one; the last one comes after ten hours, so that the first does not count.
func ten() *trace.Trace {
	t := &trace.Trace{Nodes: []trace.Node{{Name: "n", GPUs: 2}}}
	for i := range 11 {
		t.Jobs = append(t.Jobs, trace.Job{ID: i, Submit: time.Duration(i) * time.Hour, Duration: time.Hour, Workers: 1, GPUs: 1, MilliGPU: 1000})
	}
	return t
}

// played is a history in which each job starts so long after it came; negative: never.
func played(t *trace.Trace, waits ...time.Duration) *history.History {
	h := &history.History{GPUs: t.GPUs(), Queues: []string{"default"}, End: 20 * time.Hour, Window: history.Mean{Held: 1, Stranded: 0.5, Fragmented: 0.2}}
	for i, j := range t.Jobs {
		o := history.Outcome{Submit: j.Submit, Start: j.Submit + waits[i], End: j.Submit + waits[i] + j.Duration}
		if waits[i] < 0 {
			o.Start, o.End = -1, -1
		}
		h.Jobs = append(h.Jobs, o)
	}
	for range 20 {
		h.Hours = append(h.Hours, history.Hour{Queues: make([]history.QueueHour, 1)})
	}
	return h
}

func TestFiguresOfAHistory(t *testing.T) {
	tr := ten()
	const m = time.Minute
	h := played(tr, 5*time.Hour, 0, 0, 0, 0, 90*m, 0, 0, 0, 30*m, -1)
	h.Jobs[5].Evictions, h.Jobs[5].Lost, h.Jobs[5].End = 2, 7200, h.Jobs[5].End+time.Hour
	h.Jobs[6].Evictions = 1
	h.Hours[6].Evictions, h.Hours[12].Evictions = 2, 1
	got := figures.Of(tr, h)
	// Ten count, nine of them started: waits of 0 seven times, 30 and 90 minutes.
	waits := figures.Distribution{Mean: 120 * 60 / 9., P95: 5400, P99: 5400, Max: 5400}
	want := figures.Figures{
		Jobs: 10, Unstarted: 1, Makespan: 10.5 * 3600,
		Load: 11 / 20., Utilisation: 0.5, Stranded: 0.25, Fragmented: 0.1,
		Wait: waits,
		// Job 5 was evicted and lost an hour.
		Delay:    figures.Distribution{Mean: (30 + 150) * 60 / 9., P95: 9000, P99: 9000, Max: 9000},
		Slowdown: figures.Distribution{Mean: (7 + 1.5 + 3.5) / 9, P50: 1, P95: 3.5, P99: 3.5, Max: 3.5},
		Evicted:  figures.Evicted{Evictions: 3, Jobs: 2, Twice: 1, PerHour: 0.2, LostGPUHours: 2},
		// Job 5 started at 6:30, after job 6. Job 0 does not count.
		Overtook: figures.Overtaking{Jobs: 1, Mean: 1800, Most: 1800},
		Fairness: figures.Fairness{Weeks: []float64{}, Index: make([]float64, 20)},
		Classes: []figures.Class{
			{Name: "1 GPU", Jobs: 9, Wait: waits, Slowdown: figures.Distribution{Mean: (7 + 1.5 + 3.5) / 9, P50: 1, P95: 3.5, P99: 3.5, Max: 3.5}},
			{Name: "single pods", Jobs: 9, Wait: waits, Slowdown: figures.Distribution{Mean: (7 + 1.5 + 3.5) / 9, P50: 1, P95: 3.5, P99: 3.5, Max: 3.5}},
		},
	}
	if diff := cmp.Diff(want, got, near); diff != "" {
		t.Errorf("figures (-want,+got)\n%s", diff)
	}
}

func TestFairness(t *testing.T) {
	tr := ten()
	h := played(tr, make([]time.Duration, 11)...)
	h.Queues = []string{"a", "b"}
	for i := range h.Hours {
		h.Hours[i].Queues = []history.QueueHour{{Held: 1, Entitled: 1}, {Held: 1, Entitled: 1}}
	}
	// Before the second hour nothing counts. From the third on b has a quarter of what it is due for three hours, then all of it.
	h.Hours[0].Queues[1].Held = 0
	for i := 2; i < 5; i++ {
		h.Hours[i].Queues = []history.QueueHour{{Held: 1.75, Entitled: 1}, {Held: 0.25, Entitled: 1}}
	}
	// One hour nobody has anything, which is even.
	h.Hours[6].Queues = []history.QueueHour{{Entitled: 1}, {Entitled: 1}}
	// One hour nobody but a asks for anything.
	h.Hours[7].Queues[1] = history.QueueHour{}
	got := figures.Of(tr, h).Fairness
	uneven := 4 / (2 * (1.75*1.75 + 0.25*0.25))
	want := figures.Fairness{
		Mean: (3*uneven + 5) / 8, Least: uneven, Unfair: 3, Hours: 8, Weeks: []float64{}, Starved: 3 * 3600, StarvedQueue: "b",
		Index: append([]float64{0, 1, uneven, uneven, uneven, 1, 1, 0, 1, 1}, make([]float64, 10)...),
	}
	if diff := cmp.Diff(want, got, near); diff != "" {
		t.Errorf("fairness (-want,+got)\n%s", diff)
	}
}

// TestPromises: of those that count two were told a bound, of which one starts later, and three an estimate, of which one starts later and one never.
func TestPromises(t *testing.T) {
	tr := ten()
	const h = time.Hour
	played := played(tr, h, h, h, h, h, h, 0, 0, 0, 0, -1)
	for job, told := range map[int]history.Told{
		0: {At: 0, By: 0, Bound: true}, // It does not count.
		1: {At: h, By: 2 * h, Bound: true}, 2: {At: 2 * h, By: 3*h - 30*time.Minute, Bound: true},
		3: {At: 3 * h, By: 4*h + time.Minute}, 4: {At: 4 * h, By: 5*h - 6*time.Minute}, 10: {At: 10 * h, By: 11 * h},
	} {
		played.Jobs[job].Told = told
	}
	want := figures.Promises{
		Bounds: figures.Promised{
			Jobs: 2, Missed: 1, Ahead: figures.Distribution{Mean: 2700, P50: 1800, P95: 3600, P99: 3600, Max: 3600},
			Late: figures.Distribution{Mean: 900, P95: 1800, P99: 1800, Max: 1800},
		},
		Estimates: figures.Promised{
			Jobs: 3, Missed: 2, Ahead: figures.Distribution{Mean: 3500, P50: 3600, P95: 3660, P99: 3660, Max: 3660},
			Late: figures.Distribution{Mean: 180, P95: 360, P99: 360, Max: 360},
		},
	}
	if diff := cmp.Diff(want, figures.Of(tr, played).Promises, near); diff != "" {
		t.Errorf("(-want,+got)\n%s", diff)
	}
}

func TestWhatIsAllocatedByWhatIsAskedFor(t *testing.T) {
	h := &history.History{GPUs: 10, Arrivals: []history.Arrival{
		{Asked: 1, Held: 1, Fragmented: 0.5}, {Asked: 1, Held: 1, Fragmented: 0.7}, {Asked: 2, Held: 1, Fragmented: 1},
	}}
	got := figures.Of(&trace.Trace{}, h).Arrived
	want := []figures.Arrived{{Percent: 10, Allocated: 0.1, Fragmented: 0.06}, {Percent: 20, Allocated: 0.1, Fragmented: 0.1}}
	if diff := cmp.Diff(want, got, near); diff != "" {
		t.Errorf("arrived (-want,+got)\n%s", diff)
	}
	other := []figures.Arrived{{Percent: 20, Allocated: 0.3, Fragmented: 0}, {Percent: 30}}
	if diff := cmp.Diff([]figures.Arrived{{Percent: 20, Allocated: 0.2, Fragmented: 0.05}}, figures.Mean([][]figures.Arrived{got, other}), near); diff != "" {
		t.Errorf("mean (-want,+got)\n%s", diff)
	}
}

func TestWithoutJobsThereAreNoFigures(t *testing.T) {
	got := figures.Of(&trace.Trace{}, &history.History{})
	want := figures.Figures{Fairness: figures.Fairness{Weeks: []float64{}, Index: []float64{}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("figures (-want,+got)\n%s", diff)
	}
}
