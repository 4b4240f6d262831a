// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package replay_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caldera-scheduler/caldera/pkg/replay"
	"github.com/caldera-scheduler/caldera/pkg/replay/trace"
	"github.com/caldera-scheduler/caldera/pkg/replay/yardstick"
)

// eager is tiers in which room is reserved at once for the oldest job that does not fit, as EASY backfill does.
const eager = `actions: "allocate, backfill"
tiers:
- plugins:
  - {name: priority}
  - {name: gang}
  - {name: reservation, arguments: {reservation.after: 0s, reservation.backfillWithin: 0s, reservation.giveUpAfter: 0s}}
- plugins: [{name: predicates}, {name: nodeorder}, {name: binpack, arguments: {binpack.resources: nvidia.com/gpu}}]
`

// admitted are these tiers with admission. What is let in is bounded by what the cluster has, and most of that may be promised to who holds.
const admitted = `actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - {name: priority}
  - {name: gang}
  - {name: reservation, arguments: {reservation.after: 0s, reservation.backfillWithin: 0s, reservation.giveUpAfter: 0s}}
- plugins: [{name: overcommit}, {name: predicates}, {name: proportion}, {name: nodeorder}, {name: binpack, arguments: {binpack.resources: nvidia.com/gpu}}]
`

// lasting are how many ticks jobs run for. No two are rounded to the same, when it is asked who else may pass once one may not.
var lasting = []int{1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20}

// arrivals are 30 jobs that come a little after each other; of decides what each asks for.
func arrivals(seed int, of func(random *rand.Rand) (workers, gpus int)) []trace.Job {
	random := rand.New(rand.NewPCG(uint64(seed), 0)) //nolint:gosec // it is to be the same each time
	jobs := make([]trace.Job, 30)
	comes := 0
	for i := range jobs {
		comes += random.IntN(4)
		workers, gpus := of(random)
		jobs[i] = job(i, comes, lasting[random.IntN(len(lasting))], workers, gpus, "")
	}
	return jobs
}

// onOneNode is a stream of jobs of one pod on one node. Who starts when is a matter of amounts then.
func onOneNode(seed int) *trace.Trace {
	size := 4 + seed%5
	return &trace.Trace{Nodes: nodes(1, size), Jobs: arrivals(seed, func(random *rand.Rand) (workers, gpus int) { return 1, 1 + random.IntN(size) })}
}

// waited is for how many ticks jobs wait in sum.
func waited(times [][3]int) (sum int) {
	for _, at := range times {
		sum += at[1] - at[0]
	}
	return sum
}

// TestStartsAreThoseOfEASY plays jobs of one pod on one node. They start as by EASY backfill. By conservative backfill they start alike where it does not
// matter that room is reserved for one job of a queue at a time: a job that passes may keep another one waiting that has none reserved.
func TestStartsAreThoseOfEASY(t *testing.T) {
	t.Parallel()
	config := configured(t, eager)
	conservative, waits, byConservative := 0, 0, 0
	for seed := range *replay.Streams {
		tr := onOneNode(seed)
		want, err := run(t, tr, replay.Options{Rule: yardstick.Named("easy")})
		check(t, err)
		got, err := run(t, tr, replay.Options{Config: config, Ends: trace.Enforced})
		check(t, err)
		if diff := cmp.Diff(ticks(want), ticks(got)); diff != "" {
			t.Fatalf("stream %d: jobs come, start and end (-easy,+scheduler)\n%s", seed, diff)
		}
		other, err := run(t, tr, replay.Options{Rule: yardstick.Named("conservative")})
		check(t, err)
		if cmp.Equal(ticks(other), ticks(got)) {
			conservative++
		}
		waits, byConservative = waits+waited(ticks(got)), byConservative+waited(ticks(other))
	}
	t.Logf("%d of %d streams start as by conservative backfill; jobs wait for %d ticks in sum, by that for %d", conservative, *replay.Streams, waits, byConservative)
}

// TestAdmissionKeepsNobodyFromBackfill plays them with admission. What a holder was promised would keep all others out if it counted, since the cluster has no
// more. Who is let in as a guest comes after all others, so that some start in another order than by EASY.
func TestAdmissionKeepsNobodyFromBackfill(t *testing.T) {
	t.Parallel()
	config := configured(t, admitted)
	byEASY, waits := 0, 0
	for seed := range *replay.Streams {
		tr := onOneNode(seed)
		want, err := run(t, tr, replay.Options{Rule: yardstick.Named("easy")})
		check(t, err)
		got, err := run(t, tr, replay.Options{Config: config, Ends: trace.Enforced})
		check(t, err)
		byEASY, waits = byEASY+waited(ticks(want)), waits+waited(ticks(got))
	}
	t.Logf("jobs wait for %d ticks in sum, by EASY for %d", waits, byEASY)
	if 20*waits > 21*byEASY {
		t.Errorf("jobs wait for %d ticks in sum, want a twentieth more than the %d of EASY at most", waits, byEASY)
	}
}

// TestGangsStartAsByEASYOnNodesThatStay plays gangs of whole nodes. The scheduler starts them as EASY does, but for one rule: room is reserved on nodes, and
// stays there as long as the job can start by then.
func TestGangsStartAsByEASYOnNodesThatStay(t *testing.T) {
	t.Parallel()
	config := configured(t, eager)
	equal := 0
	for seed := range *replay.Streams {
		count := 3 + seed%5
		tr := &trace.Trace{Nodes: nodes(count, 1), Jobs: arrivals(seed, func(random *rand.Rand) (workers, gpus int) { return 1 + random.IntN(count), 1 })}
		easy, err := run(t, tr, replay.Options{Rule: yardstick.Named("easy")})
		check(t, err)
		got, err := run(t, tr, replay.Options{Config: config, Ends: trace.Enforced})
		check(t, err)
		if diff := cmp.Diff(starts(ticks(easy)), (&twin{moves: true}).play(tr)); diff != "" {
			t.Fatalf("stream %d: jobs start (-easy,+twin)\n%s", seed, diff)
		}
		if diff := cmp.Diff((&twin{}).play(tr), starts(ticks(got))); diff != "" {
			t.Fatalf("stream %d: jobs start (-twin,+scheduler)\n%s", seed, diff)
		}
		if cmp.Equal(starts(ticks(easy)), starts(ticks(got))) {
			equal++
		}
	}
	t.Logf("%d of %d streams start as by EASY itself", equal, *replay.Streams)
}

func starts(times [][3]int) []int {
	var all []int
	for _, at := range times {
		all = append(all, at[1])
	}
	return all
}

// twin is EASY backfill of gangs on whole nodes, written for simplicity.
type twin struct {
	// moves: the nodes that are reserved are chosen anew each time.
	moves bool
	// until is when each node is free.
	until []int
	// head is the job for which nodes are reserved, -1 for none. It needs so many, and starts at a time.
	head, needs, starts int
	reserved            []int
}

// play returns when the jobs of a trace start, in ticks.
func (w *twin) play(tr *trace.Trace) []int {
	w.until, w.head = make([]int, len(tr.Nodes)), -1
	began := make([]int, len(tr.Jobs))
	var waiting []int
	came := 0
	for now := 0; came < len(tr.Jobs) || len(waiting) > 0; now++ {
		for ; came < len(tr.Jobs) && int(tr.Jobs[came].Submit/replay.DefaultTick) <= now; came++ {
			waiting = append(waiting, came)
		}
		waiting = slices.DeleteFunc(waiting, func(id int) bool {
			workers, lasts := tr.Jobs[id].Workers, int(tr.Jobs[id].Duration/replay.DefaultTick)
			idle := w.idle(id, now, now+lasts)
			if len(idle) < workers {
				if w.head < 0 {
					w.head, w.needs = id, workers
					w.reserve(now)
				}
				return false
			}
			for _, n := range idle[:workers] {
				w.until[n] = now + lasts
			}
			if w.head == id {
				w.head = -1
			}
			began[id] = now
			return true
		})
	}
	return began
}

// idle are the nodes that a job may have now if it ends at a time.
func (w *twin) idle(id, now, ends int) []int {
	if w.moves && w.head >= 0 {
		w.reserve(now)
	}
	var nodes []int
	for n, until := range w.until {
		mine := w.head < 0 || w.head == id || ends <= w.starts || !slices.Contains(w.reserved, n)
		if until <= now && mine {
			nodes = append(nodes, n)
		}
	}
	if w.head == id {
		// It takes its own nodes first.
		slices.SortStableFunc(nodes, func(a, b int) int { return place(w.reserved, a) - place(w.reserved, b) })
	}
	return nodes
}

// place is 0 for what is in a list and else 1.
func place(list []int, n int) int {
	if slices.Contains(list, n) {
		return 0
	}
	return 1
}

// reserve finds the earliest time by which enough nodes are free. Of the nodes that are free by then it reserves those that are free last.
func (w *twin) reserve(now int) {
	order := make([]int, len(w.until))
	for n := range order {
		// Those that are idle are free since the same time.
		order[n], w.until[n] = n, max(w.until[n], now)
	}
	slices.SortStableFunc(order, func(a, b int) int { return w.until[a] - w.until[b] })
	w.starts = w.until[order[w.needs-1]]
	order = slices.DeleteFunc(order, func(n int) bool { return w.until[n] > w.starts })
	slices.SortStableFunc(order, func(a, b int) int { return w.until[b] - w.until[a] })
	w.reserved = order[:w.needs]
}
