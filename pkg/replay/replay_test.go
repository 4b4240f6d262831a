// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package replay_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"github.com/caldera-scheduler/caldera/pkg/replay"
	"github.com/caldera-scheduler/caldera/pkg/replay/history"
	"github.com/caldera-scheduler/caldera/pkg/replay/trace"
	"github.com/caldera-scheduler/caldera/pkg/replay/yardstick"
	"github.com/caldera-scheduler/caldera/pkg/volcano/profile"
)

const tiers = `
tiers:
- plugins: [{name: priority}, {name: gang, enableReclaimable: false}, {name: conformance}]
- plugins: [{name: predicates}, {name: proportion}, {name: nodeorder}, {name: binpack, arguments: {binpack.resources: nvidia.com/gpu}}]
`

const (
	allocate = `actions: "enqueue, allocate, backfill"` + tiers
	reclaim  = `actions: "enqueue, allocate, reclaim, backfill"` + tiers
	shared   = `actions: allocate
tiers:
- plugins: [{name: gang}, {name: predicates}, {name: deviceshare, arguments: {deviceshare.VGPUEnable: true, deviceshare.SchedulePolicy: binpack}}]
`
)

func configured(t *testing.T, conf string) *schedulerconfig.KubeSchedulerConfiguration {
	t.Helper()
	c, err := profile.Read("the.conf", []byte(conf), profile.Only)
	check(t, err)
	return c
}

// begin is when replays begin.
var begin = time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)

// run plays a trace; the scheduler logs nothing but errors.
func run(t *testing.T, tr *trace.Trace, o replay.Options) (*history.History, error) {
	t.Helper()
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.Verbosity(-1)))
	o.Now = begin
	r, err := replay.Run(klog.NewContext(t.Context(), logger), tr, o)
	if err != nil {
		return nil, err
	}
	return r.History, nil
}

// nodes are so many with so many GPUs each.
func nodes(n, gpus int) []trace.Node {
	var all []trace.Node
	for i := range n {
		all = append(all, trace.Node{Name: fmt.Sprintf("n%d", i), MilliCPU: int64(gpus) * 8000, MemoryMiB: int64(gpus) << 14, GPUs: gpus})
	}
	return all
}

// job is one that comes after so many ticks and runs for some.
func job(id, comes, runs, workers, gpus int, queue string) trace.Job {
	return trace.Job{
		ID: id, Submit: time.Duration(comes) * replay.DefaultTick, Duration: time.Duration(runs) * replay.DefaultTick, Queue: queue,
		Workers: workers, GPUs: gpus, MilliGPU: 1000,
	}
}

// ticks are times of jobs: come, start, end.
func ticks(h *history.History) [][3]int {
	var all [][3]int
	for _, o := range h.Jobs {
		in := func(d time.Duration) int {
			if d < 0 {
				return -1
			}
			return int(d / replay.DefaultTick)
		}
		all = append(all, [3]int{in(o.Submit), in(o.Start), in(o.End)})
	}
	return all
}

// TestJobsOfOneGPUStartInOrder plays random streams of jobs of one GPU in one queue. Where they are put makes no difference, so that the scheduler
// starts each exactly when first come, first served does.
func TestJobsOfOneGPUStartInOrder(t *testing.T) {
	t.Parallel()
	config := configured(t, allocate)
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // it is to be the same each time
			tr := &trace.Trace{Nodes: nodes(1+random.IntN(3), 1+random.IntN(3))}
			comes := make([]int, 30)
			for i := range comes {
				comes[i] = random.IntN(30)
			}
			slices.Sort(comes)
			for i, at := range comes {
				tr.Jobs = append(tr.Jobs, job(i, at, 1+random.IntN(20), 1, 1, ""))
			}
			want, err := run(t, tr, replay.Options{Rule: yardstick.Named("fifo")})
			check(t, err)
			got, err := run(t, tr, replay.Options{Config: config})
			check(t, err)
			if diff := cmp.Diff(ticks(want), ticks(got)); diff != "" {
				t.Errorf("jobs come, start and end (-fifo,+scheduler)\n%s", diff)
			}
		})
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestGangsHoldNothingUntilTheyAreWhole: two nodes, a job holds one of them until 10, the gang needs both.
func TestGangsHoldNothingUntilTheyAreWhole(t *testing.T) {
	t.Parallel()
	tr := &trace.Trace{Nodes: nodes(2, 8), Jobs: []trace.Job{job(0, 0, 10, 1, 8, ""), job(1, 1, 5, 2, 8, ""), job(2, 2, 3, 1, 8, "")}}
	h, err := run(t, tr, replay.Options{Config: configured(t, allocate)})
	check(t, err)
	if diff := cmp.Diff([][3]int{{0, 0, 10}, {1, 10, 15}, {2, 2, 5}}, ticks(h)); diff != "" {
		t.Errorf("jobs come, start and end (-want,+got)\n%s", diff)
	}
}

// TestAnEvictedJobComesBack: queue a holds both nodes, and b takes the one that it is due.
func TestAnEvictedJobComesBack(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		checkpoint time.Duration
		want       [][3]int
		lost       float64
	}{
		// The younger job of a is evicted at 7, leaves at 8, when b starts, and begins anew when b is done.
		"without progress":  {0, [][3]int{{0, 0, 30}, {1, 1, 18 + 29}, {7, 8, 18}}, 8 * 60},
		"from a checkpoint": {4 * replay.DefaultTick, [][3]int{{0, 0, 30}, {1, 1, 18 + 29 - 4}, {7, 8, 18}}, 8 * 20},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr := &trace.Trace{
				Nodes: nodes(2, 8), Queues: []trace.Queue{{Name: "a", Nodes: 1}, {Name: "b", Nodes: 1}},
				Jobs: []trace.Job{job(0, 0, 30, 1, 8, "a"), job(1, 1, 29, 1, 8, "a"), job(2, 7, 10, 1, 8, "b")},
			}
			h, err := run(t, tr, replay.Options{Config: configured(t, reclaim), Checkpoint: tc.checkpoint})
			check(t, err)
			if diff := cmp.Diff(tc.want, ticks(h)); diff != "" {
				t.Errorf("jobs come, start and end (-want,+got)\n%s", diff)
			}
			if o := h.Jobs[1]; o.Evictions != 1 || o.Lost != tc.lost {
				t.Errorf("it was evicted %d times and lost %g GPU seconds, want once and %g", o.Evictions, o.Lost, tc.lost)
			}
		})
	}
}

func TestAPartitionedQueueBorrowsNothing(t *testing.T) {
	t.Parallel()
	tr := &trace.Trace{
		Nodes: nodes(2, 8), Queues: []trace.Queue{{Name: "a", Nodes: 1}, {Name: "b", Nodes: 1}},
		Jobs: []trace.Job{job(0, 0, 10, 1, 8, "a"), job(1, 0, 10, 1, 8, "a")},
	}
	for partitioned, want := range map[bool][][3]int{false: {{0, 0, 10}, {0, 0, 10}}, true: {{0, 0, 10}, {0, 10, 20}}} {
		h, err := run(t, tr, replay.Options{Config: configured(t, allocate), Partitioned: partitioned})
		check(t, err)
		if diff := cmp.Diff(want, ticks(h)); diff != "" {
			t.Errorf("partitioned %t: jobs come, start and end (-want,+got)\n%s", partitioned, diff)
		}
	}
}

// TestAReplayEndsThoughAJobNeverFits: nobody else suffers, and the job is told as never started.
func TestAReplayEndsThoughAJobNeverFits(t *testing.T) {
	t.Parallel()
	tr := &trace.Trace{Nodes: nodes(1, 8), Jobs: []trace.Job{job(0, 0, 5, 2, 8, ""), job(1, 1, 5, 1, 8, "")}}
	for name, o := range map[string]replay.Options{"scheduler": {Config: configured(t, allocate)}, "easy": {Rule: yardstick.Named("easy")}} {
		h, err := run(t, tr, o)
		check(t, err)
		if diff := cmp.Diff([][3]int{{0, -1, -1}, {1, 1, 6}}, ticks(h)); diff != "" {
			t.Errorf("by %s jobs come, start and end (-want,+got)\n%s", name, diff)
		}
	}
}

// TestEqualInputGivesEqualOutput plays a stream with gangs, queues and evictions twice.
func TestEqualInputGivesEqualOutput(t *testing.T) {
	t.Parallel()
	tr := &trace.Trace{Nodes: nodes(6, 8), Queues: []trace.Queue{{Name: "a", Nodes: 1}, {Name: "b", Nodes: 2}, {Name: "c", Nodes: 3}}}
	for i := range 300 {
		tr.Jobs = append(tr.Jobs, job(i, 2*i, 20+i*37%150, 1+i%7/5, 1<<(i%4), string(rune('a'+i*i%3))))
	}
	var histories []*history.History
	for range 2 {
		h, err := run(t, tr, replay.Options{Config: configured(t, reclaim)})
		check(t, err)
		histories = append(histories, h)
	}
	if diff := cmp.Diff(histories[0], histories[1]); diff != "" {
		t.Errorf("one history and another (-first,+second)\n%s", diff)
	}
	evicted := 0
	for _, o := range histories[0].Jobs {
		evicted += o.Evictions
	}
	if evicted == 0 {
		t.Error("nobody was evicted: the test is to be of evictions, too")
	}
}

// TestGangsStayBelowASwitch: of two racks of three nodes two gangs take two nodes each. A third one finds one node free in each rack. It starts there
// unless it is to stay in a rack, else when the first is done.
func TestGangsStayBelowASwitch(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		topology trace.Topology
		start    int
	}{
		"hard, a rack":     {trace.Topology{Mode: trace.Hard, Tier: 1}, 10},
		"hard, the groups": {trace.Topology{Mode: trace.Hard, Tier: 2}, 2},
		"no matter":        {trace.Topology{}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr := &trace.Trace{
				Nodes: nodes(6, 8), Topology: tc.topology,
				Jobs: []trace.Job{job(0, 0, 10, 2, 8, ""), job(1, 1, 20, 2, 8, ""), job(2, 2, 5, 2, 8, "")},
			}
			for i := range tr.Nodes {
				tr.Nodes[i].Network = []string{"D", "P", "S" + strconv.Itoa(i/3)}
			}
			h, err := run(t, tr, replay.Options{Config: configured(t, strings.Replace(allocate, "{name: nodeorder}", "{name: nodeorder}, {name: network-topology-aware}", 1))})
			check(t, err)
			if got := ticks(h)[2][1]; got != tc.start {
				t.Errorf("the third gang starts at %d, want %d", got, tc.start)
			}
			for i, o := range h.Jobs {
				if o.Switches < 1 || o.Switches > 2 || tc.topology.Tier == 1 && o.Switches != 1 {
					t.Errorf("gang %d is below %d racks' switches", i, o.Switches)
				}
			}
		})
	}
}

// TestParts of GPUs are given out by cards: on a node with two of them four pods of 600, 600, 500 and 400 thousandths come. The third one fits neither,
// and is gone when the fourth comes.
func TestPartsOfGPUs(t *testing.T) {
	t.Parallel()
	tr := &trace.Trace{Nodes: []trace.Node{{Name: "n", MilliCPU: 8000, MemoryMiB: 8192, GPUs: 2, Model: "T4"}}, Once: true}
	for i, milli := range []int{600, 600, 500, 400} {
		tr.Jobs = append(tr.Jobs, trace.Job{
			ID: i, Submit: time.Duration(i) * trace.Every, Workers: 1, GPUs: 1, MilliGPU: milli, MilliCPU: 1000, MemoryMiB: 1, Models: []string{"P100", "T4"},
		})
	}
	// The kind by which fragmentation is measured wants half a GPU.
	tr.Usual = []trace.Job{tr.Jobs[2]}
	h, err := run(t, tr, replay.Options{Config: configured(t, shared)})
	check(t, err)
	want := []history.Arrival{
		{Asked: 0.6, Held: 0.6, Fragmented: 0.4}, {Asked: 1.2, Held: 1.2, Fragmented: 0.8}, {Asked: 1.7, Held: 1.2, Fragmented: 0.8}, {Asked: 2.1, Held: 1.6, Fragmented: 0.4},
	}
	if diff := cmp.Diff(want, h.Arrivals, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Errorf("arrivals (-want,+got)\n%s", diff)
	}
	if got := []bool{h.Jobs[0].Started(), h.Jobs[1].Started(), h.Jobs[2].Started(), h.Jobs[3].Started()}; !slices.Equal(got, []bool{true, true, false, true}) {
		t.Errorf("started are %v", got)
	}
}

func TestAReplayCanBeBrokenOff(t *testing.T) {
	t.Parallel()
	tr := &trace.Trace{Nodes: nodes(1, 8)}
	for i := range 1000 {
		tr.Jobs = append(tr.Jobs, job(i, i, 5, 1, 1, ""))
	}
	ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), ktesting.NewLogger(t, ktesting.NewConfig(ktesting.Verbosity(-1)))))
	defer cancel()
	_, err := replay.Run(ctx, tr, replay.Options{Config: configured(t, allocate), Now: begin, Progress: func(replay.Progress) { cancel() }})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
