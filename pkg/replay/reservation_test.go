// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package replay_test

import (
	stdcmp "cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	"pgregory.net/rapid"

	"github.com/caldera-scheduler/caldera/pkg/metrics"
	"github.com/caldera-scheduler/caldera/pkg/replay"
	"github.com/caldera-scheduler/caldera/pkg/replay/history"
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

// patient are tiers with a plugin each in the first two.
func patient(first, second string) string {
	return fmt.Sprintf(`actions: "enqueue, allocate, backfill"
tiers:
- plugins: [%s]
- plugins: [%s, {name: conformance}]
- plugins: [{name: overcommit}, {name: predicates}, {name: proportion}, {name: nodeorder}, {name: binpack, arguments: {binpack.resources: nvidia.com/gpu}}]
`, first, second)
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
	return inOrder(tr)
}

// gangOf is the job of a stream that asks for all nodes.
func gangOf(tr *trace.Trace) int {
	return slices.IndexFunc(tr.Jobs, func(j trace.Job) bool { return j.Workers > 1 })
}

// TestRoomIsReservedForAGang: a gang that asks for all nodes waits for the end of the stream, or for little more than a job of it lasts.
func TestRoomIsReservedForAGang(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		conf string
		ends trace.Ends
		// bound, estimate: it is told by when it starts at the latest, or when it is expected to.
		bound, estimate bool
		// most is how many ticks it may wait, least how many it has to.
		least, most int
	}{
		"no room is reserved":        {conf: allocate, ends: trace.Enforced, least: 400, most: 700},
		"nobody says when jobs end":  {conf: reserving("reservation.after: 100s"), least: 10, most: 50},
		"jobs are stopped":           {conf: reserving("reservation.after: 100s"), ends: trace.Enforced, bound: true, least: 10, most: 50},
		"jobs say it, nobody trusts": {conf: reserving("reservation.after: 100s"), ends: trace.Declared, least: 10, most: 50},
		"jobs say it, and are believed": {
			conf: reserving("reservation.after: 100s, reservation.trust: Declared, reservation.backfillWithin: 0s"), ends: trace.Declared, estimate: true, least: 10, most: 50,
		},
		"at once": {conf: reserving("reservation.after: 0s"), ends: trace.Enforced, bound: true, most: 36},
		"its waiting time is over, and sla votes before gang": {
			conf: patient("{name: sla, arguments: {sla-waiting-time: 100s}}", "{name: gang}"), ends: trace.Enforced, bound: true, least: 10, most: 50,
		},
		"gang votes first": {conf: patient("{name: gang}", "{name: sla, arguments: {sla-waiting-time: 100s}}"), ends: trace.Enforced, least: 400, most: 700},
		// Jobs of 32 ticks may pass, but not for ever.
		"short jobs pass": {conf: reserving("reservation.after: 100s, reservation.trust: Declared"), ends: trace.Declared, estimate: true, least: 51, most: 90},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr := stream(4, 60)
			h, err := run(t, tr, replay.Options{Config: configured(t, c.conf), Ends: c.ends})
			check(t, err)
			if told := h.Jobs[gangOf(tr)].Told; told.Bound != c.bound || told != (history.Told{}) != (c.bound || c.estimate) || told.Bound && h.Jobs[gangOf(tr)].Missed() {
				t.Errorf("the gang was told %v, and started at %s; want a bound: %t, an estimate: %t", told, h.Jobs[gangOf(tr)].Start, c.bound, c.estimate)
			}
			at := ticks(h)[gangOf(tr)]
			if waited := at[1] - at[0]; at[1] < 0 || waited < c.least || waited > c.most {
				t.Errorf("the gang came at tick %d and started at %d, want that it waits for %d to %d ticks", at[0], at[1], c.least, c.most)
			}
		})
	}
}

// TestAQueueKeepsItsLimitForAGang: the gang asks for all that its queue may hold, and nodes have room for more.
func TestAQueueKeepsItsLimitForAGang(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		conf        string
		least, most int
	}{
		"no room is reserved": {conf: allocate, least: 400, most: 700},
		"room is reserved":    {conf: reserving("reservation.after: 100s"), least: 10, most: 50},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr := stream(4, 60)
			tr.Nodes, tr.Queues = nodes(8, 2), []trace.Queue{{Name: "a", Nodes: 4}, {Name: "b", Nodes: 4}}
			for i := range tr.Jobs {
				tr.Jobs[i].Queue = "a"
			}
			h, err := run(t, tr, replay.Options{Config: configured(t, c.conf), Partitioned: true})
			check(t, err)
			at := ticks(h)[gangOf(tr)]
			if waited := at[1] - at[0]; at[1] < 0 || waited < c.least || waited > c.most {
				t.Errorf("the gang came at tick %d and started at %d, want that it waits for %d to %d ticks", at[0], at[1], c.least, c.most)
			}
		})
	}
}

// limiting is reserving with queues that are limited, and without admission, which would keep a queue's limit for who is let in.
func limiting(arguments string) string {
	return strings.NewReplacer("proportion", "capacity", "enqueue, ", "", "{name: overcommit}, ", "").Replace(reserving(arguments))
}

// inOrder numbers the jobs of a trace by when they come.
func inOrder(tr *trace.Trace) *trace.Trace {
	slices.SortStableFunc(tr.Jobs, func(a, b trace.Job) int { return stdcmp.Compare(a.Submit, b.Submit) })
	for i := range tr.Jobs {
		tr.Jobs[i].ID = i
	}
	return tr
}

// TestReservedRoomIsNobodyElses: what holders of other queues, short jobs, and a holder that never starts must not do.
func TestReservedRoomIsNobodyElses(t *testing.T) {
	t.Parallel()
	queues := func(a, b, c int) []trace.Queue {
		return []trace.Queue{{Name: "a", Nodes: a}, {Name: "b", Nodes: b}, {Name: "c", Nodes: c}}
	}
	short := []trace.Job{
		job(0, 0, 120, 1, 2, "b"), job(0, 0, 120, 1, 2, "b"), job(0, 0, 120, 1, 2, "b"), job(0, 0, 120, 1, 2, "b"), job(0, 0, 1300, 1, 1, "b"),
		job(0, 60, 20, 2, 2, "a"),
	}
	for i := range 80 {
		short = append(short, job(0, 80+i*15, 32, 1, 1, "a"))
	}
	for name, c := range map[string]struct {
		trace trace.Trace
		conf  string
		ends  trace.Ends
		// job starts by a tick.
		job, by int
	}{
		"the room of a second holder is on the same node": {
			trace: trace.Trace{Nodes: nodes(1, 3), Queues: queues(1, 1, 1), Jobs: []trace.Job{
				job(0, 0, 50, 1, 1, "c"), job(1, 0, 100, 1, 2, "c"), job(2, 1, 90, 1, 1, "a"), job(3, 2, 10, 1, 2, "b"),
			}},
			conf: limiting("reservation.after: 100s, reservation.holders: 2"), ends: trace.Enforced, job: 2, by: 53,
		},
		"who may pass the holder of another queue may not take what its own keeps": {
			trace: trace.Trace{Nodes: nodes(6, 2), Queues: queues(2, 20, 1), Jobs: []trace.Job{
				job(0, 0, 600, 1, 2, "b"), job(0, 0, 600, 1, 2, "b"), job(0, 0, 600, 1, 2, "b"), job(0, 0, 600, 1, 1, "b"), job(0, 0, 120, 1, 2, "b"),
				job(0, 60, 20, 2, 2, "a"), job(0, 60, 20, 4, 2, "b"), job(0, 90, 100, 1, 1, "a"),
			}},
			conf: limiting("reservation.after: 100s, reservation.holders: 2"), ends: trace.Enforced, job: 5, by: 123,
		},
		"short jobs do not follow each other for ever": {
			trace: trace.Trace{Nodes: nodes(6, 2), Queues: queues(2, 6, 1), Jobs: short},
			conf:  limiting("reservation.after: 100s, reservation.trust: Declared, reservation.backfillWithin: 10m"), ends: trace.Declared, job: 5, by: 180,
		},
		"a holder that gives up leaves its room": {
			trace: trace.Trace{Nodes: nodes(2, 2), Jobs: []trace.Job{job(0, 0, 3000, 1, 2, ""), job(1, 1, 10, 2, 2, ""), job(2, 100, 10, 1, 2, "")}},
			conf:  reserving("reservation.after: 100s, reservation.giveUpAfter: 20m"), job: 2, by: 140,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, err := run(t, inOrder(&c.trace), replay.Options{Partitioned: len(c.trace.Queues) > 0, Ends: c.ends, Config: configured(t, c.conf)})
			check(t, err)
			if at := ticks(h)[c.job][1]; at < 0 || at > c.by {
				t.Errorf("it starts at tick %d, want by %d", at, c.by)
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

// crowd is 20 random jobs on a few nodes with so many GPUs each. By proportion what queues are due shrinks as others ask for something, so that there are
// several of them only where they are limited.
func crowd(random *rand.Rand, limited bool) (tr *trace.Trace, size int) {
	tr = &trace.Trace{Nodes: nodes(2+random.IntN(4), 1+random.IntN(4))}
	size = tr.Nodes[0].GPUs
	queues := []trace.Queue{{Nodes: len(tr.Nodes)}}
	if limited {
		queues = []trace.Queue{{Name: "a"}, {Name: "b"}, {Name: "c"}}[:1+random.IntN(3)]
		for i := range queues {
			queues[i].Nodes = 1 + random.IntN(len(tr.Nodes))
		}
		tr.Queues = queues
	}
	comes := 0
	for i := range 20 {
		comes += random.IntN(4)
		workers, of := 1, queues[random.IntN(len(queues))]
		if random.IntN(5) == 0 {
			workers = 1 + random.IntN(of.Nodes)
		}
		tr.Jobs = append(tr.Jobs, job(i, comes, 1+random.IntN(40), workers, 1+random.IntN(size), of.Name))
	}
	return tr, size
}

// waitingCrowd is a crowd, and tiers in which room is reserved for some of it.
func waitingCrowd(random *rand.Rand) (conf string, tr *trace.Trace, size int) {
	with := reserving
	if random.IntN(2) == 0 {
		with = limiting
	}
	conf = with(fmt.Sprintf("reservation.after: %ds, reservation.holders: %d, reservation.backfillWithin: %ds",
		random.IntN(300), 1+random.IntN(3), random.IntN(400)))
	tr, size = crowd(random, strings.Contains(conf, "capacity"))
	return conf, tr, size
}

// TestHoldersStartByTheirBound plays random jobs that are stopped when their time is over. Whoever was told by when it would start does by then,
// and all jobs start.
func TestHoldersStartByTheirBound(t *testing.T) {
	// No other replay is to count meanwhile.
	metrics.RegisterCounters()
	rapid.Check(t, func(r *rapid.T) {
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "seed"), 0)) //nolint:gosec // it is to be the same each time
		text, tr, size := waitingCrowd(random)
		before := reservations(t)["late"]
		h, err := run(t, tr, replay.Options{Config: configured(t, text), Ends: trace.Enforced, Partitioned: len(tr.Queues) > 0})
		check(t, err)
		if late := reservations(t)["late"] - before; late > 0 {
			r.Errorf("%g jobs started later than they were told first: %s", late, text)
		}
		for i, at := range ticks(h) {
			if o := h.Jobs[i]; o.Told.Bound && o.Missed() {
				r.Errorf("job %d starts at %s, and was told %s: %s", i, o.Start, o.Told.By, text)
			}
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

// TestHoldersStartByTheirBoundThoughTheSchedulerRestarts plays them by a scheduler that is killed again and again. What it had written by then of who starts when
// holds, and all jobs start.
func TestHoldersStartByTheirBoundThoughTheSchedulerRestarts(t *testing.T) {
	t.Parallel()
	bounds, kills := 0, 0
	rapid.Check(t, func(r *rapid.T) {
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "seed"), 3)) //nolint:gosec // it is to be the same each time
		text, tr, _ := waitingCrowd(random)
		logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.Verbosity(-1)))
		played, err := replay.PlayRestarted(klog.NewContext(t.Context(), logger), tr, replay.Options{
			Config: configured(t, text), Ends: trace.Enforced, Partitioned: len(tr.Queues) > 0, Now: begin,
		}, random)
		check(t, err)
		bounds, kills = bounds+len(played.Bounds), kills+played.Kills
		for i, o := range played.Jobs {
			by, told := played.Bounds[i]
			switch {
			case o.Start < 0:
				r.Errorf("job %d never starts: %s", i, text)
			case told && o.Start > by:
				r.Errorf("job %d starts at %s, and was told %s: %s", i, o.Start, by, text)
			}
		}
	})
	if t.Logf("%d bounds were told, and the scheduler was killed %d times while room was reserved", bounds, kills); bounds == 0 || kills == 0 {
		t.Error("no bound was told, or nobody was killed")
	}
}

// TestPatienceWithoutEndChangesNothing: where no job ever waits for long enough, all start as if the plugin were not there. Where it is known how long
// jobs run, more of them are looked at by themselves, which may take longer than a tick.
func TestPatienceWithoutEndChangesNothing(t *testing.T) {
	t.Parallel()
	for seed := range *replay.Streams {
		random := rand.New(rand.NewPCG(uint64(seed), 1)) //nolint:gosec // it is to be the same each time
		conf := reserving
		if seed%2 == 0 {
			conf = limiting
		}
		with := conf("reservation.after: 720h")
		without := strings.Replace(with, ", {name: reservation, arguments: {reservation.after: 720h}}", "", 1)
		if without == with {
			t.Fatal("the tiers have no plugin to leave out")
		}
		tr, _ := crowd(random, seed%2 == 0)
		var played [][][3]int
		for _, text := range []string{without, with} {
			h, err := run(t, tr, replay.Options{Config: configured(t, text), Partitioned: len(tr.Queues) > 0})
			check(t, err)
			played = append(played, ticks(h))
		}
		if diff := cmp.Diff(played[0], played[1]); diff != "" {
			t.Fatalf("stream %d: jobs come, start and end (-without,+with)\n%s", seed, diff)
		}
	}
}
