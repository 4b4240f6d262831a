// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"cmp"
	"time"

	"github.com/caldera-scheduler/caldera/pkg/node/fragment"
	"github.com/caldera-scheduler/caldera/pkg/replay/history"
	"github.com/caldera-scheduler/caldera/pkg/replay/trace"
	"github.com/caldera-scheduler/caldera/pkg/replay/yardstick"
)

// world is the cluster of a replay, and who decides in it.
type world interface {
	// come has a job wait, leave takes it away with all that it holds.
	come(*actor) error
	leave(*actor) error
	// decide lets time be now, and who decides do all that can be done. It returns the jobs that are whole since, and those that were evicted.
	decide(now time.Duration) (whole, evicted []*actor, err error)
	// next is when it wants to look again though nothing happens; negative: never.
	next() time.Duration
	// fragmented is what the average pod could not use of what nobody holds, in GPUs.
	fragmented() float64
	// switches is how many switches next to the nodes a job's pods are below; 0 where that is not known.
	switches(*actor) int
	// promises calls tell with the jobs that are told by when they start. Bound: by then at the latest.
	promises(tell func(job int, by time.Duration, bound bool))
	// bound is how many pods got nodes so far.
	bound() int
	stop()
}

// ruled is a world in which a rule decides that sees GPUs alone.
type ruled struct {
	queue  *yardstick.Queue
	floor  *floor
	actors map[int]*actor
	pods   int
}

func newRuled(t *trace.Trace, rule *yardstick.Rule, tick time.Duration) *ruled {
	gpus := make([]int, len(t.Nodes))
	for i, n := range t.Nodes {
		gpus[i] = fragment.Whole * n.GPUs
	}
	shares := make([]yardstick.Share, len(t.Queues))
	for i, q := range t.Queues {
		shares[i] = yardstick.Share{Pool: q.Name, Nodes: q.Nodes}
	}
	if len(t.Queues) == 0 {
		shares = []yardstick.Share{{Pool: history.DefaultQueue, Nodes: len(t.Nodes)}}
	}
	return &ruled{queue: rule.New(tick, gpus, shares), floor: newFloor(t, func(trace.Job) int64 { return 0 }), actors: map[int]*actor{}}
}

func (w *ruled) come(a *actor) error {
	w.actors[a.job] = a
	w.queue.Come(&yardstick.Job{ID: a.job, Pool: cmp.Or(a.Queue, history.DefaultQueue), Workers: a.Workers, Each: a.GPUs * a.MilliGPU, Duration: a.left})
	return nil
}

func (w *ruled) leave(a *actor) error {
	delete(w.actors, a.job)
	w.queue.Leave(a.job)
	return nil
}

func (w *ruled) decide(now time.Duration) (whole, evicted []*actor, err error) {
	for _, id := range w.queue.Start(now) {
		whole = append(whole, w.actors[id])
		w.pods += w.actors[id].Workers
	}
	return whole, nil, nil
}

func (w *ruled) next() time.Duration { return -1 }

// fragmented looks at GPUs alone. They are whole but for what is left of one.
func (w *ruled) fragmented() float64 {
	w.queue.Left(func(node, left int) {
		m := &w.floor.nodes[node]
		for i := range m.GPUs {
			m.GPUs[i] = min(left, fragment.Whole)
			left -= m.GPUs[i]
		}
		w.floor.changed[node] = true
	})
	return w.floor.fragmented()
}

func (w *ruled) switches(*actor) int { return 0 }

func (w *ruled) promises(func(job int, by time.Duration, bound bool)) {}

func (w *ruled) bound() int { return w.pods }

func (w *ruled) stop() {}
