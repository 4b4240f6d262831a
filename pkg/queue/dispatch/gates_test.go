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
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
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

// open adds a gang without gates. Age makes it older than those with a smaller one.
func (d *fixture) open(job, queue string, size, age int, cpu string) {
	d.state.UpsertGroup(keyOf(job), &model.Group{UID: types.UID(job), Queue: queue, MinMember: size, Created: epoch.Add(-time.Duration(age) * time.Minute)})
	d.pods(job, size, cpu)
}

// wantLeads has turns be given out until none comes.
func (d *fixture) wantLeads(want ...types.UID) {
	d.t.Helper()
	if got := d.run(); !slices.Equal(got, want) {
		d.t.Fatalf("turns were led by %v, want %v", got, want)
	}
}

// TestTheGateKeepsTheOrderOfTurns among jobs with and without gates.
func TestTheGateKeepsTheOrderOfTurns(t *testing.T) {
	for name, gatedAge := range map[string]int{"the one without a gate is older": 1, "the one before the gate is older": 9} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := gatedQueue(t, 1)
				d.open("busy", "limited", 1, 99, "1")
				d.wantLeads("busy-0")
				d.open("free", "limited", 1, 5, "1")
				d.gated("gated", "limited", 1, 1, gatedAge, "1")
				d.wantLeads()
				d.wantThrough()
				d.state.DeletePod("busy-0")
				if gatedAge > 5 {
					d.wantThrough("gated-0")
					d.ungate("gated-0")
					d.wantLeads("gated-0")
					return
				}
				d.wantLeads("free-0")
				d.wantThrough()
				d.state.DeletePod("free-0")
				d.wantThrough("gated-0")
				d.ungate("gated-0")
				d.wantLeads("gated-0")
			})
		})
	}
}

func TestTheGateKeepsTheOrderOfQueues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tree := byCapacity
		tree.Switches = map[config.Switch]bool{config.EnableHierarchy: true}
		d := newFixtureWith(t, args("enqueue allocate backfill", byPriority, inGangs, tree))
		d.state.UpsertQueue(&model.Queue{Name: model.RootQueue})
		d.state.UpsertQueue(&model.Queue{Name: "all", Parent: model.RootQueue, Capability: cores(4)})
		d.state.UpsertQueue(&model.Queue{Name: "hi", Parent: "all", Priority: 10})
		d.state.UpsertQueue(&model.Queue{Name: "lo", Parent: "all"})
		d.state.UpsertQueue(&model.Queue{Name: model.DefaultQueue, Parent: model.RootQueue})
		d.gated("blocker", "lo", 1, 1, 99, "4")
		d.wantThrough("blocker-0")
		d.gated("old", "lo", 1, 1, 9, "4")
		d.gated("young", "hi", 1, 1, 1, "4")
		d.wantThrough()
		d.state.DeletePod("blocker-0")
		d.wantThrough("young-0")
	})
}

// TestWhatIsKeptBeyondALimit: two gangs were let through, and the limit sinks to what one of them needs. One has it.
func TestWhatIsKeptBeyondALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := gatedQueue(t, 8)
		d.gated("a", "limited", 4, 4, 9, "1")
		d.gated("b", "limited", 4, 4, 8, "1")
		d.wantThrough("a-0", "a-1", "a-2", "a-3", "b-0", "b-1", "b-2", "b-3")
		d.queue("limited", 4, false)
		d.ungate("a-0", "a-1", "a-2", "a-3", "b-0", "b-1", "b-2", "b-3")
		d.wantLeads("a-0")
		if got := d.last("b"); got.Kind != model.QueueFull {
			t.Errorf("the other one was told %v", got)
		}
		d.state.DeleteGroup(keyOf("a"))
		for i := range 4 {
			d.state.DeletePod(types.UID(fmt.Sprintf("a-%d", i)))
		}
		d.wantLeads("b-0")
	})
}

// TestAJobBeforeTheGateOfAStrictQueueHoldsUpOthers: with gates or without, before it is let through and until it starts.
func TestAJobBeforeTheGateOfAStrictQueueHoldsUpOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := gatedQueue(t, 4)
		d.queue("strict", 4, true)
		d.open("busy", "strict", 1, 99, "3")
		d.wantLeads("busy-0")
		d.gated("a", "strict", 2, 2, 9, "1")
		d.gated("b", "strict", 1, 1, 8, "1")
		d.open("free", "strict", 1, 7, "1")
		d.wantLeads()
		d.wantThrough()
		for _, job := range []string{"b", "free"} {
			if got := d.last(job); got.Kind != model.NotFirst && got.Kind != model.QueueFull {
				t.Errorf("%s was told %v", job, got)
			}
		}
		d.state.DeletePod("busy-0")
		d.wantThrough("a-0", "a-1")
		d.ungate("a-0")
		d.wantLeads()
		d.wantThrough()
		d.ungate("a-1")
		// Who is let through next depends on who is looked at first once it has started; the order stays.
		if leads := d.run(); len(leads) == 0 || leads[0] != "a-0" {
			t.Errorf("turns were led by %v, want a-0 first", leads)
		}
		d.wantThrough("b-0")
	})
}

// TestWhoIsLetThroughAndHeldIsToldWhy: a plugin keeps its pod out of the scheduling queue.
func TestWhoIsLetThroughAndHeldIsToldWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := gatedQueue(t, 1)
		d.gated("a", "limited", 1, 1, 9, "1")
		d.wantThrough("a-0")
		d.keepOut("a-0", "DynamicResources")
		d.ungate("a-0")
		synctest.Wait()
		if got := d.last("a"); got.Kind != model.SchedulingGated || got.Subject != "DynamicResources" {
			t.Errorf("was told %v", got)
		}
	})
}

// TestWhoCannotBeLetThroughIsToldWhy: its minimum takes a subgroup that lacks a pod.
func TestWhoCannotBeLetThroughIsToldWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := gatedQueue(t, 8)
		d.state.UpsertGroup(keyOf("b"), &model.Group{
			UID: "b", Queue: "limited", MinMember: 3, Created: epoch, Phase: model.PhaseInqueue,
			SubGroups: []model.SubGroupPolicy{{Name: "pair", Size: 2, Selector: labels.Everything(), Keys: []string{"pair"}}},
		})
		for i := range 3 {
			p := memberOf("b", i, "1")
			p.Labels = map[string]string{"pair": fmt.Sprint(i / 2)}
			p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: model.QueueGate}}
			d.state.UpsertPod(p)
		}
		d.wantThrough()
		if got := d.last("b"); got.Kind != model.SchedulingGated {
			t.Errorf("was told %v", got)
		}
	})
}

// TestAPodWithoutAGroupIsToldThatItsGateStays.
func TestAPodWithoutAGroupIsToldThatItsGateStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := gatedQueue(t, 1)
		p := memberOf("a", 0, "1")
		p.Annotations = map[string]string{model.QueueAnnotation: "limited"}
		p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: model.QueueGate}}
		d.state.UpsertPod(p)
		for range 3 {
			time.Sleep(time.Second)
			d.wantThrough("a-0")
			d.GateKept(d.state.Task("a-0"), errors.New("not allowed"))
		}
		key := model.JobKey{Source: model.FromPod, Namespace: p.Namespace, Name: p.Name}
		if got := d.lastOf(key); got.Kind != model.SchedulerError || !strings.Contains(got.Message, "not allowed") {
			t.Errorf("was told %v", got)
		}
	})
}
