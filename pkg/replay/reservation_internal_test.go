// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/pkg/replay/trace"
	"github.com/caldera-scheduler/caldera/pkg/simulate/memory"
	"github.com/caldera-scheduler/caldera/pkg/volcano/profile"
)

// The numbers of jobs: the one that runs, the gang, and one that comes after it.
const (
	running = iota
	gang
	small
)

// nodes is the resource of nodes.
var nodes = corev1.SchemeGroupVersion.WithResource("nodes")

// unlucky is a cluster of two nodes. A job runs on one of them, nobody knows for how long. A gang of two nodes has room reserved on both.
type unlucky struct {
	t    *testing.T
	w    *scheduled
	now  time.Duration
	gang *actor
	// whole are the jobs that have started, by their number.
	whole map[int]bool
}

func newUnlucky(t *testing.T) *unlucky {
	t.Helper()
	config, err := profile.Read("the.conf", []byte(`actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: reservation, arguments: {reservation.after: 1m}}]
- plugins: [{name: predicates}, {name: nodeorder}, {name: binpack, arguments: {binpack.resources: nvidia.com/gpu}}]
`), profile.Only)
	if err != nil {
		t.Fatal(err)
	}
	tr := &trace.Trace{Queues: []trace.Queue{{Name: "a", Nodes: 2}, {Name: "b", Nodes: 2}}}
	for _, name := range []string{"n0", "n1"} {
		tr.Nodes = append(tr.Nodes, trace.Node{Name: name, MilliCPU: 16000, MemoryMiB: 1 << 15, GPUs: 2})
	}
	w, err := newScheduled(t.Context(), tr, Options{Config: config, Now: time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.stop)
	u := &unlucky{t: t, w: w, whole: map[int]bool{}}
	u.come(running, 1, "b")
	u.play(10 * time.Second)
	u.gang = u.come(gang, 2, "a")
	u.play(5 * time.Minute)
	kept := w.box.Core.State.Nominated()
	if !u.whole[running] || u.whole[gang] || len(kept) != 2 || !kept[0].Reserved {
		t.Fatalf("there started %v, and room is kept for %d pods; want the first job, and two", u.whole, len(kept))
	}
	return u
}

// come submits a job of so many nodes.
func (u *unlucky) come(number, workers int, queue string) *actor {
	u.t.Helper()
	a := &actor{attempt: attempt{job: number}, Job: trace.Job{ID: number, Workers: workers, GPUs: 2, MilliGPU: 1000, MilliCPU: -1, MemoryMiB: -1, Queue: queue}}
	u.do(u.w.come(a))
	return a
}

func (u *unlucky) do(err error) {
	u.t.Helper()
	if err != nil {
		u.t.Fatal(err)
	}
}

// play lets time go by.
func (u *unlucky) play(long time.Duration) {
	u.t.Helper()
	for end := u.now + long; u.now < end; {
		u.now += 10 * time.Second
		whole, _, err := u.w.decide(u.now)
		u.do(err)
		for _, a := range whole {
			u.whole[a.job] = true
		}
	}
}

// node is where a job of one pod is.
func (u *unlucky) node(number int) string {
	u.t.Helper()
	o, err := u.w.box.API.Get(memory.Pods, namespace, attempt{job: number}.pod(0))
	u.do(err)
	return o.(*corev1.Pod).Spec.NodeName
}

// TestReservedRoomInAnUnluckyCluster: what becomes of the gang, and of a job of one node that comes later and has to leave the room.
func TestReservedRoomInAnUnluckyCluster(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		// happens changes the cluster while room is reserved for the gang. The small job comes afterwards.
		happens func(u *unlucky)
		// starts are those of the gang and the small job that do.
		starts map[int]bool
	}{
		"nothing happens: the room is the gang's": {happens: func(*unlucky) {}},
		"the gang is deleted":                     {happens: func(u *unlucky) { u.do(u.w.leave(u.gang)) }, starts: map[int]bool{small: true}},
		"its queue is closed": {
			happens: func(u *unlucky) {
				o, err := u.w.box.API.Get(volcano.SchemeGroupVersion.WithResource("queues"), "", "a")
				u.do(err)
				q := o.(*volcano.Queue)
				q.Status.State = volcano.QueueStateClosed
				u.do(u.w.box.API.Update(volcano.SchemeGroupVersion.WithResource("queues"), q, ""))
			},
			starts: map[int]bool{small: true},
		},
		"one of its pods is created again": {
			happens: func(u *unlucky) {
				o, err := u.w.box.API.Get(memory.Pods, namespace, u.gang.pod(1))
				u.do(err)
				again := o.(*corev1.Pod)
				u.do(u.w.box.API.Delete(memory.Pods, namespace, again.Name))
				u.play(10 * time.Second)
				again.UID, again.ResourceVersion = "again", ""
				u.w.actors[again.UID] = u.gang
				u.do(u.w.box.API.Add(again))
			},
		},
		"one of its pods is gone": {
			happens: func(u *unlucky) { u.do(u.w.box.API.Delete(memory.Pods, namespace, u.gang.pod(1))) },
			starts:  map[int]bool{small: true},
		},
		"a node that it waits for is gone, and there is another one": {
			happens: func(u *unlucky) {
				node := u.node(running)
				u.do(u.w.box.API.Remove(nodes, "", node))
				u.do(u.w.box.API.Remove(memory.Pods, namespace, attempt{job: running}.pod(0)))
				u.play(time.Minute)
				other := nodeOf(trace.Node{Name: "n2", MilliCPU: 16000, MemoryMiB: 1 << 15, GPUs: 2}, false)
				u.do(u.w.box.API.Add(other))
			},
			starts: map[int]bool{gang: true},
		},
		"what is in its way ends": {
			happens: func(u *unlucky) { u.do(u.w.box.API.Remove(memory.Pods, namespace, attempt{job: running}.pod(0))) },
			starts:  map[int]bool{gang: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newUnlucky(t)
			c.happens(u)
			u.come(small, 1, "b")
			u.play(8 * time.Minute)
			for _, number := range []int{gang, small} {
				if u.whole[number] != c.starts[number] {
					t.Errorf("job %d started: %t, want %t", number, u.whole[number], c.starts[number])
				}
			}
		})
	}
}
