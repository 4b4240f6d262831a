// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// gatedQueue returns a dispatcher with a queue that may hold so many cores, of 8 that there are.
func gatedQueue(t *testing.T, most int64) *fixture {
	d := newFixtureWith(t, args("enqueue allocate backfill", byPriority, inGangs, byCapacity))
	d.queue("limited", most, false)
	return d
}

func (d *fixture) queue(name string, most int64, fifo bool) {
	d.state.UpsertQueue(&model.Queue{Name: name, Capability: cores(most), FIFO: fifo})
}

// gated adds a gang whose pods stand before the gate of its queue. Age makes it older than those with a smaller one.
func (d *fixture) gated(job, queue string, least, size, age int, cpu string) {
	d.state.UpsertGroup(keyOf(job), &model.Group{
		UID: types.UID(job), Queue: queue, MinMember: least, Created: epoch.Add(-time.Duration(age) * time.Minute),
	})
	for i := range size {
		p := memberOf(job, i, cpu)
		p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: model.QueueGate}}
		d.state.UpsertPod(p)
	}
}

// through are the pods that were let through the gate since the last call, sorted.
func (d *fixture) through() []types.UID {
	synctest.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	through := slices.Sorted(slices.Values(d.ungated))
	d.ungated = nil
	return through
}

func (d *fixture) wantThrough(want ...types.UID) {
	d.t.Helper()
	if got := d.through(); !slices.Equal(got, want) {
		d.t.Fatalf("let through are %v, want %v", got, want)
	}
}

// ungate is the news that the gate of a pod is gone.
func (d *fixture) ungate(uids ...types.UID) {
	for _, uid := range uids {
		if t := d.state.Task(uid); t != nil {
			p := t.Pod.DeepCopy()
			p.Spec.SchedulingGates, p.Annotations[model.QueueAdmittedAnnotation] = nil, "true"
			d.state.UpsertPod(p)
		}
	}
}

func TestTheGateOpensInOrderAsTheQueueEmpties(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := gatedQueue(t, 4)
		d.gated("a", "limited", 2, 2, 9, "1")
		d.gated("b", "limited", 3, 3, 8, "1")
		d.gated("c", "limited", 2, 2, 7, "1")
		d.gated("elsewhere", "default", 1, 1, 6, "1")
		// The second gang asks for three cores, of which two are left: nobody of it is let through, and the one behind it is.
		d.wantThrough("a-0", "a-1", "c-0", "c-1", "elsewhere-0")
		if got := d.last("b"); got.Kind != model.QueueFull || !strings.Contains(got.Message, "3 asked for, limit 4") {
			t.Errorf("who is not let through was told %v", got)
		}
		d.want()
		d.ungate("a-0", "a-1", "c-0")
		if leads := d.run(); !slices.Equal(leads, []types.UID{"a-0"}) {
			t.Errorf("turns were led by %v, want a-0: one gate of c is not gone yet", leads)
		}
		d.ungate("c-1")
		if leads := d.run(); !slices.Equal(leads, []types.UID{"c-0"}) {
			t.Errorf("turns were led by %v, want c-0", leads)
		}
		d.wantThrough()
		d.state.DeletePod("a-0")
		d.wantThrough()
		d.state.DeletePod("c-0")
		d.state.DeletePod("a-1")
		d.wantThrough("b-0", "b-1", "b-2")
	})
}

func TestWhatIsLetThroughIsKeptFromOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := gatedQueue(t, 4)
		d.state.UpsertNode(&corev1.Node{})
		d.gated("a", "limited", 3, 3, 9, "1")
		d.wantThrough("a-0", "a-1", "a-2")
		// A job without gates may not have what was kept, though nobody holds it; what is left it may.
		d.state.UpsertGroup(keyOf("free"), &model.Group{UID: "free", Queue: "limited", MinMember: 1, Created: epoch})
		d.pods("free", 2, "1")
		if leads := d.run(); len(leads) != 1 {
			t.Errorf("%d pods without gates were placed, want one", len(leads))
		}
		if got := d.last("free"); got.Kind != model.QueueFull {
			t.Errorf("who has no gate was told %v, want that its queue is full", got)
		}
		// What is kept for them counts as theirs when they have their turn.
		d.ungate("a-0", "a-1", "a-2")
		if leads := d.run(); !slices.Equal(leads, []types.UID{"a-0"}) {
			t.Errorf("turns were led by %v, want a-0", leads)
		}
		// One that goes without ever having had a node gives back what was kept for it.
		d.gated("late", "default", 1, 1, 1, "1")
		d.wantThrough("late-0")
		d.state.DeletePod("a-1")
		if leads := d.run(); len(leads) != 1 {
			t.Errorf("%d pods had turns when one went, want one", len(leads))
		}
	})
}

func TestAGateThatDoesNotGoIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := gatedQueue(t, 1)
		d.gated("a", "limited", 1, 1, 9, "1")
		d.gated("b", "limited", 1, 1, 8, "1")
		d.wantThrough("a-0")
		d.GateKept(d.state.Task("a-0"), errors.New("not allowed"))
		// The first failure may have been bad luck; one that fails again lets others go first.
		d.wantThrough("a-0")
		d.GateKept(d.state.Task("a-0"), errors.New("not allowed"))
		d.wantThrough("b-0")
		if got := d.last("a"); got.Kind != model.SchedulerError || !strings.Contains(got.Message, "not allowed") {
			t.Errorf("who cannot be let through was told %v", got)
		}
		d.state.DeletePod("b-0")
		time.Sleep(10 * time.Second)
		d.wantThrough("a-0")
	})
}

func TestTheGateOfAStrictQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := gatedQueue(t, 4)
		d.queue("strict", 4, true)
		d.gated("a", "strict", 2, 2, 9, "1")
		d.gated("b", "strict", 3, 3, 8, "1")
		d.gated("c", "strict", 2, 2, 7, "1")
		d.wantThrough("a-0", "a-1")
		d.ungate("a-0", "a-1")
		d.run()
		// There is room for the last one, and the queue lets nobody pass the one before it.
		d.wantThrough()
		if got := d.last("c"); got.Kind != model.NotFirst {
			t.Errorf("who comes after another was told %v", got)
		}
		d.state.DeletePod("a-0")
		d.wantThrough("b-0", "b-1", "b-2")
	})
}

func TestTheGateOfAStrictQueueWaitsForJobsWithoutGates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := gatedQueue(t, 4)
		d.queue("strict", 16, true)
		d.submit("busy", 1, 99, "4")
		d.run()
		d.state.UpsertGroup(keyOf("free"), &model.Group{UID: "free", Queue: "strict", MinMember: 2, Created: epoch.Add(-time.Hour)})
		d.pods("free", 2, "3")
		d.run()
		d.gated("behind", "strict", 1, 1, 1, "1")
		d.wantThrough()
		if got := d.last("behind"); got.Kind != model.NotFirst {
			t.Errorf("who comes after another was told %v", got)
		}
		d.addNode("node-1", "8")
		d.run()
		d.wantThrough("behind-0")
	})
}

// TestNoClaimIsLost takes 1,000 random steps with pods before the gate of a queue, let through, placed and gone, with gates that do not go and
// news that comes late. At each step the queue keeps and holds what those pods come to and no more than it may, and whoever fits is let
// through. In the end everything is deleted, and a gang that asks for the whole queue is let through.
func TestNoClaimIsLost(t *testing.T) {
	const most = 6
	for seed := range uint64(3) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			d := gatedQueue(t, most)
			pending, claims, placed := []types.UID{}, map[types.UID]bool{}, map[types.UID]bool{}
			jobs := 0
			drop := func(uid types.UID) {
				d.state.DeletePod(uid)
				delete(claims, uid)
				delete(placed, uid)
			}
			settle := func() {
				d.run()
				// Nobody is at rest any more.
				time.Sleep(11 * time.Second)
				for _, uid := range d.through() {
					if claims[uid] || placed[uid] {
						t.Fatalf("pod %s was let through twice", uid)
					}
					claims[uid], pending = true, append(pending, uid)
				}
				d.run()
				for job := range d.state.Snapshot().Jobs {
					for _, task := range job.Tasks {
						if task.Status == model.Allocated && !placed[task.UID] {
							delete(claims, task.UID)
							placed[task.UID] = true
						}
					}
				}
			}
			for step := range 1000 {
				all := slices.Sorted(d.uids)
				switch n := random.IntN(10); {
				case n < 3 && len(all) < 40:
					size := 1 + random.IntN(4)
					d.gated(fmt.Sprintf("j%d", jobs), "limited", 1+random.IntN(size), size, -jobs, []string{"500m", "1", "2"}[random.IntN(3)])
					jobs++
				case n < 7 && len(pending) > 0:
					i := random.IntN(len(pending))
					uid := pending[i]
					pending = slices.Delete(pending, i, i+1)
					task := d.state.Task(uid)
					switch {
					case task == nil:
					case random.IntN(5) == 0:
						delete(claims, uid)
						d.GateKept(task, errors.New("not now"))
					default:
						d.ungate(uid)
					}
				case len(all) > 0:
					drop(all[random.IntN(len(all))])
				}
				settle()
				d.judge(step, most, claims, placed)
			}
			for uid := range d.uids {
				drop(uid)
			}
			settle()
			d.gated("last", "limited", most, most, 0, "1")
			if got := d.through(); len(got) != most {
				t.Fatalf("seed %d: of a gang for the whole queue %v were let through in the end", seed, got)
			}
		})
	}
}

// uids are all pods.
func (d *fixture) uids(yield func(types.UID) bool) {
	for job := range d.state.Snapshot().Jobs {
		for _, task := range job.Tasks {
			if !yield(task.UID) {
				return
			}
		}
	}
}

// judge compares what the queue limited keeps and holds with what it should.
func (d *fixture) judge(step int, most int64, claims, placed map[types.UID]bool) {
	d.t.Helper()
	var want, kept resource.Vector
	for _, set := range []map[types.UID]bool{claims, placed} {
		for uid := range set {
			want.Add(d.state.Task(uid).Request)
		}
	}
	for job := range d.state.Snapshot().Jobs {
		kept.Add(job.Usage.Claimed)
		kept.Add(job.Usage.Allocated)
	}
	idle := most*1000 - kept.Get("cpu")
	if !kept.Equal(want) || idle < 0 {
		d.t.Fatalf("step %d: the queue keeps and holds %s, want %s and at most %d cores", step, kept, want, most)
	}
	for job := range d.state.Snapshot().Jobs {
		ask := int64(0)
		for _, task := range job.NextThroughGate() {
			ask += task.Request.Get("cpu")
		}
		if ask > 0 && ask <= idle {
			d.t.Fatalf("step %d: job %s asks for %dm, %dm are left, and it is not let through: it was told %v", step, job.Key, ask, idle, d.lastOf(job.Key))
		}
	}
}
