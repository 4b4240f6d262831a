// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/replay/trace"
	"github.com/caldera-scheduler/caldera/pkg/volcano/profile"
)

// attended is a world in which it is noted whom holders wait for.
type attended struct {
	*scheduled
	// inTheWay are the jobs that a holder waited for when it became one.
	inTheWay map[*actor][]*actor
	// whole are the jobs that have started, and since when.
	whole map[*actor]time.Duration
	// killer kills the scheduler now and then; nil: nobody does. What it had written of holders counts then.
	killer *killer
}

func (w *attended) decide(now time.Duration) (whole, evicted []*actor, err error) {
	whole, evicted, err = w.scheduled.decide(now)
	for _, a := range whole {
		w.whole[a] = now
	}
	if w.killer != nil && err == nil {
		return whole, evicted, w.killer.strike(w.scheduled)
	}
	holders := map[model.JobKey]*actor{}
	for _, t := range w.box.Core.State.Nominated() {
		holders[t.Job] = w.actors[t.UID]
	}
	for key, d := range w.box.Core.Evictions.Holds.Departures() {
		a := holders[key]
		if a == nil {
			return nil, nil, fmt.Errorf("holder %s has no pods for which room is reserved", key)
		}
		if _, known := w.inTheWay[a]; known {
			continue
		}
		w.inTheWay[a] = nil
		for uid := range d.Pods {
			w.inTheWay[a] = append(w.inTheWay[a], w.actors[uid])
		}
	}
	return whole, evicted, err
}

// held are the jobs that were in the way of each holder when it became one.
func (w *attended) held() map[*actor][]*actor {
	if w.killer == nil {
		return w.inTheWay
	}
	held := map[*actor][]*actor{}
	for a := range w.whole {
		if n := w.killer.notes[a.job]; n != nil {
			held[a] = n.inTheWay
		}
	}
	return held
}

// TestHoldersStartSoonAfterWhatWasInTheirWay plays random gangs of whole nodes that say how long they run, and nothing sees to it. So no start is a bound, and
// jobs that run for backfillWithin at most may use the room meanwhile. A holder starts so long after the last pod at most that was in its way
// when it became one. So it does if the scheduler is killed again and again.
func TestHoldersStartSoonAfterWhatWasInTheirWay(t *testing.T) {
	t.Parallel()
	for name, kills := range map[string]bool{"one scheduler": false, "one after the other": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			startSoonAfter(t, kills)
		})
	}
}

func startSoonAfter(t *testing.T, kills bool) {
	held, killed := 0, 0
	for seed := range *Streams {
		random := rand.New(rand.NewPCG(uint64(seed), 2)) //nolint:gosec // it is to be the same each time
		within := time.Duration(random.IntN(12)) * DefaultTick
		config, err := profile.Read("the.conf", fmt.Appendf(nil, `actions: "allocate, backfill"
tiers:
- plugins:
  - {name: priority}
  - {name: gang}
  - {name: reservation, arguments: {reservation.after: %ds, reservation.holders: %d, reservation.backfillWithin: %s, reservation.trust: Declared}}
- plugins: [{name: predicates}, {name: capacity}, {name: nodeorder}]
`, random.IntN(120), 1+random.IntN(2), within), profile.Only)
		if err != nil {
			t.Fatal(err)
		}
		tr := packed(random)
		ctx := klog.NewContext(t.Context(), ktesting.NewLogger(t, ktesting.NewConfig(ktesting.Verbosity(-1))))
		p, err := newPlayer(ctx, tr, Options{
			Config: config, Tick: DefaultTick, Ends: trace.Declared, Partitioned: true, Now: time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC),
		})
		if err != nil {
			t.Fatal(err)
		}
		w := &attended{scheduled: p.world.(*scheduled), inTheWay: map[*actor][]*actor{}, whole: map[*actor]time.Duration{}}
		p.world = w
		if kills {
			w.killer = newKiller(random)
		}
		err = p.play()
		w.stop()
		if err != nil {
			t.Fatal(err)
		}
		if len(w.whole) != len(tr.Jobs) {
			t.Errorf("stream %d: %d of %d jobs start", seed, len(w.whole), len(tr.Jobs))
		}
		if kills {
			killed += w.killer.kills
		}
		for a, others := range w.held() {
			held++
			last := time.Duration(0)
			for _, other := range others {
				last = max(last, other.ends)
			}
			if at := w.whole[a]; at > last+within {
				t.Errorf("stream %d: job %d starts at %s, the last pod in its way ended at %s, and jobs of %s may pass", seed, a.job, at, last, within)
			}
		}
	}
	if held == 0 || kills != (killed > 0) {
		t.Error("no room was reserved, or nobody was killed")
	}
	t.Logf("room was reserved for %d jobs, and the scheduler was killed %d times while it was", held, killed)
}

// packed is 30 random gangs on nodes of one pod, in two queues.
func packed(random *rand.Rand) *trace.Trace {
	tr := &trace.Trace{}
	for i := range 3 + random.IntN(5) {
		tr.Nodes = append(tr.Nodes, trace.Node{Name: fmt.Sprintf("n%d", i), MilliCPU: 8000, MemoryMiB: 1 << 14, GPUs: 1})
	}
	for _, name := range []string{"a", "b"} {
		tr.Queues = append(tr.Queues, trace.Queue{Name: name, Nodes: 1 + random.IntN(len(tr.Nodes))})
	}
	comes := time.Duration(0)
	for i := range 30 {
		comes += time.Duration(random.IntN(4)) * DefaultTick
		queue := tr.Queues[random.IntN(len(tr.Queues))]
		tr.Jobs = append(tr.Jobs, trace.Job{
			ID: i, Submit: comes, Duration: time.Duration(1+random.IntN(30)) * DefaultTick, Workers: 1 + random.IntN(queue.Nodes), GPUs: 1,
			MilliGPU: 1000, MilliCPU: -1, MemoryMiB: -1, Queue: queue.Name,
		})
	}
	return tr
}
