// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package replay_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"k8s.io/component-base/metrics/legacyregistry"
	"pgregory.net/rapid"

	"github.com/caldera-scheduler/caldera/pkg/metrics"
	"github.com/caldera-scheduler/caldera/pkg/replay"
	"github.com/caldera-scheduler/caldera/pkg/replay/trace"
)

// reserving are tiers with reservation and its arguments.
func reserving(arguments string) string {
	return fmt.Sprintf(`actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}, {name: reservation, arguments: {%s}}]
- plugins: [{name: overcommit}, {name: predicates}, {name: proportion}, {name: nodeorder}, {name: binpack, arguments: {binpack.resources: nvidia.com/gpu}}]
`, arguments)
}

// stream is jobs of one node that follow each other without end on some nodes, each a little later than the one before, and a gang of all nodes.
func stream(nodesOf, comes int) *trace.Trace {
	tr := &trace.Trace{Nodes: nodes(nodesOf, 2)}
	add := func(at, runs, workers int) { tr.Jobs = append(tr.Jobs, job(0, at, runs, workers, 2, "")) }
	for i := range 20 * nodesOf {
		// On each node one job is done when the next has come.
		add(i*30/nodesOf, 32, 1)
	}
	add(comes, 20, nodesOf)
	slices.SortStableFunc(tr.Jobs, func(a, b trace.Job) int { return cmp.Compare(a.Submit, b.Submit) })
	for i := range tr.Jobs {
		tr.Jobs[i].ID = i
	}
	return tr
}

// gang is the job of a stream that asks for all nodes.
func gangOf(tr *trace.Trace) int {
	return slices.IndexFunc(tr.Jobs, func(j trace.Job) bool { return j.Workers > 1 })
}

// TestRoomIsReservedForAGang: a gang that asks for all nodes waits for the end of the stream, or for little more than a job of it lasts.
func TestRoomIsReservedForAGang(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		conf string
		ends trace.Ends
		// most is how many ticks it may wait, least how many it has to.
		least, most int
	}{
		"no room is reserved":        {conf: allocate, ends: trace.Enforced, least: 400, most: 700},
		"nobody says when jobs end":  {conf: reserving("reservation.after: 100s"), least: 10, most: 50},
		"jobs are stopped":           {conf: reserving("reservation.after: 100s"), ends: trace.Enforced, least: 10, most: 50},
		"jobs say it, nobody trusts": {conf: reserving("reservation.after: 100s"), ends: trace.Declared, least: 10, most: 50},
		"jobs say it, and are believed": {
			conf: reserving("reservation.after: 100s, reservation.trust: Declared"), ends: trace.Declared, least: 10, most: 50,
		},
		"at once": {conf: reserving("reservation.after: 0s"), ends: trace.Enforced, most: 36},
		// Jobs of 32 ticks may pass, but not for ever.
		"short jobs pass": {conf: reserving("reservation.after: 100s, reservation.backfillWithin: 10m"), ends: trace.Enforced, least: 10, most: 90},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr := stream(4, 60)
			h, err := run(t, tr, replay.Options{Config: configured(t, c.conf), Ends: c.ends})
			check(t, err)
			at := ticks(h)[gangOf(tr)]
			if waited := at[1] - at[0]; at[1] < 0 || waited < c.least || waited > c.most {
				t.Errorf("the gang came at tick %d and started at %d, want that it waits for %d to %d ticks", at[0], at[1], c.least, c.most)
			}
		})
	}
}

// reservations counts what became of reserved room in this process so far.
func reservations(t *testing.T) map[string]float64 {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	check(t, err)
	counts := map[string]float64{}
	for _, f := range families {
		if f.GetName() != "caldera_reservations_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			counts[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
		}
	}
	return counts
}

// TestHoldersStartByTheirBound plays random jobs that are stopped when their time is over. Whoever was told by when it would start does by then,
// and all jobs start.
func TestHoldersStartByTheirBound(t *testing.T) {
	// No other replay is to count meanwhile.
	metrics.RegisterCounters()
	rapid.Check(t, func(r *rapid.T) {
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "seed"), 0)) //nolint:gosec // it is to be the same each time
		conf := reserving(fmt.Sprintf("reservation.after: %ds, reservation.holders: %d, reservation.backfillWithin: %ds",
			random.IntN(300), 1+random.IntN(3), random.IntN(400)))
		tr := &trace.Trace{Nodes: nodes(2+random.IntN(4), 1+random.IntN(4))}
		size := tr.Nodes[0].GPUs
		comes := 0
		for i := range 30 {
			comes += random.IntN(4)
			workers := 1
			if random.IntN(5) == 0 {
				workers = 1 + random.IntN(len(tr.Nodes))
			}
			tr.Jobs = append(tr.Jobs, job(i, comes, 1+random.IntN(40), workers, 1+random.IntN(size), ""))
		}
		before := reservations(t)["late"]
		h, err := run(t, tr, replay.Options{Config: configured(t, conf), Ends: trace.Enforced})
		check(t, err)
		if late := reservations(t)["late"] - before; late > 0 {
			r.Errorf("%g jobs started later than they were told first: %s", late, conf)
		}
		for i, at := range ticks(h) {
			if at[1] < 0 {
				r.Errorf("job %d of %d workers with %d GPUs on %d nodes with %d never starts", i, tr.Jobs[i].Workers, tr.Jobs[i].GPUs, len(tr.Nodes), size)
			}
		}
	})
	counts := reservations(t)
	t.Logf("%v", counts)
	if counts["kept"] == 0 {
		t.Errorf("no room was reserved and used: %v", counts)
	}
}
