// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/gang"
	"github.com/caldera-scheduler/caldera/pkg/gang/room"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/policy"
	amounts "github.com/caldera-scheduler/caldera/pkg/resource"
)

type silent struct{}

func (silent) Turn(TurnPhase, TurnResult, time.Duration) {}
func (silent) Parked(model.ReasonKind)                   {}
func (silent) Retried()                                  {}
func (silent) Swept()                                    {}
func (silent) Reservation(ReservationResult)             {}
func (silent) Abandoned()                                {}
func (silent) Released(Break)                            {}
func (silent) Admitted(string, time.Duration)            {}

// crowd returns a dispatcher that has taken in so many jobs of one pod, spread over the leaves of a tree of four levels
// with 1,000 queues.
func crowd(b *testing.B, jobs int, capacity config.TierPlugin) *Dispatcher {
	policies, err := policy.Compile(&config.BatchQueueArgs{
		Actions: []config.Action{config.Allocate, config.Backfill},
		Tiers: []config.Tier{{Plugins: []config.TierPlugin{
			{Name: config.PluginPriority}, {Name: config.PluginGang}, {Name: config.PluginDRF}, capacity,
		}}},
	})
	if err != nil {
		b.Fatal(err)
	}
	state := model.NewState()
	state.AddScheduler("volcano")
	d := New(Config{
		State: state, Rules: Rules{Policies: policies}, MayFit: gang.MayFit, NeverFits: gang.NeverFits, Checks: func(string) room.Checks { return room.Checks{Resources: true} }, Clock: clock.RealClock{}, Recorder: silent{},
		Lead:   gang.TaskOrder(func(_, _ *model.Task) int { return 0 }).Lead,
		Report: func(model.JobKey, model.Reason, uint64) {}, Fault: func(*model.Queue, model.Reason) {},
	})
	d.running = true
	state.Observe(d.Notify)
	for i := range 100 {
		state.UpsertNode(&corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%d", i)},
			Status:     corev1.NodeStatus{Allocatable: corev1.ResourceList{"cpu": resource.MustParse("64"), "pods": resource.MustParse("110")}},
		})
	}
	var leaves []string
	queue := func(name, parent string) {
		state.UpsertQueue(&model.Queue{Name: name, Parent: parent, Weight: 1})
	}
	queue(model.RootQueue, "")
	for i := range 9 {
		division := fmt.Sprintf("d%d", i)
		queue(division, model.RootQueue)
		for k := range 10 {
			team := fmt.Sprintf("%s-t%d", division, k)
			queue(team, division)
			for m := range 10 {
				leaf := fmt.Sprintf("%s-q%d", team, m)
				queue(leaf, team)
				leaves = append(leaves, leaf)
			}
		}
	}
	for i := range jobs {
		name := fmt.Sprintf("job-%d", i)
		state.UpsertPod(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "ns", Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(time.Unix(int64(i), 0)),
				Annotations: map[string]string{model.QueueAnnotation: leaves[i%len(leaves)]},
			},
			Spec: corev1.PodSpec{SchedulerName: "volcano", Containers: []corev1.Container{{
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}},
			}}},
		})
	}
	d.waits.takeIn()
	d.outbox = outbox{}
	return d
}

// BenchmarkNext measures the choice of the next queue and job when nothing changed since the last.
func BenchmarkNext(b *testing.B) {
	for _, mode := range []struct {
		name   string
		plugin config.TierPlugin
	}{
		{"capacity-tree", config.TierPlugin{Name: config.PluginCapacity, Switches: map[config.Switch]bool{config.EnableHierarchy: true}}},
		{"proportion", config.TierPlugin{Name: config.PluginProportion}},
	} {
		for _, jobs := range []int{1000, 100_000} {
			b.Run(fmt.Sprintf("%s/queues=1000/jobs=%d", mode.name, jobs), func(b *testing.B) {
				d := crowd(b, jobs, mode.plugin)
				b.ReportAllocs()
				for b.Loop() {
					if d.selection.next() == nil {
						b.Fatal("nobody gets a turn")
					}
				}
			})
		}
	}
}

// BenchmarkNextBesideAStrictQueue measures the same beside a strict queue, of which so many jobs, no two of them alike, wait for a first one that
// has no room.
func BenchmarkNextBesideAStrictQueue(b *testing.B) {
	for _, behind := range []int{0, 500, 5000} {
		b.Run(fmt.Sprintf("behind=%d", behind), func(b *testing.B) {
			d := crowd(b, 1000, config.TierPlugin{Name: config.PluginProportion})
			state := d.cfg.State
			state.UpsertQueue(&model.Queue{Name: "strict", Weight: 1, FIFO: true})
			for i := range behind + 1 {
				name := fmt.Sprintf("strict-%d", i)
				state.UpsertPod(&corev1.Pod{
					ObjectMeta: metav1.ObjectMeta{
						Namespace: "ns", Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(time.Unix(int64(i), 0)),
						Annotations: map[string]string{model.QueueAnnotation: "strict"},
					},
					Spec: corev1.PodSpec{SchedulerName: "volcano", Containers: []corev1.Container{{
						Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": *resource.NewMilliQuantity(int64(1000+i), resource.DecimalSI)}},
					}}},
				})
			}
			d.waits.takeIn()
			first := d.lots.first("strict").lot
			d.lots.park(first, model.Reason{Kind: model.NotEnoughResources, FromNodes: true}, false)
			for d.lots.backlog.lines[lineKey{queue: "strict"}].at >= 0 {
				// Each is looked at once.
				d.selection.try(d.lots.backlog.first(d.lots.backlog.lines[lineKey{queue: "strict"}]), state.Totals(), false)
			}
			b.ReportAllocs()
			for b.Loop() {
				if d.selection.next() == nil {
					b.Fatal("nobody gets a turn")
				}
			}
		})
	}
}

// BenchmarkOpenAFullQueue measures what a pod that goes costs where so many jobs stand before the gate of its queue and none of them fits: alike,
// or each asking for something else.
func BenchmarkOpenAFullQueue(b *testing.B) {
	for _, jobs := range []int{500, 5000} {
		for _, shapes := range []int{1, jobs} {
			b.Run(fmt.Sprintf("jobs=%d/shapes=%d", jobs, shapes), func(b *testing.B) {
				d := crowd(b, 1000, config.TierPlugin{Name: config.PluginCapacity})
				state := d.cfg.State
				state.UpsertQueue(&model.Queue{Name: "full", Weight: 1, Capability: amounts.Vector{{Name: "cpu", Value: 1000}}})
				pod := func(name string, cpu int64) *corev1.Pod {
					return &corev1.Pod{
						ObjectMeta: metav1.ObjectMeta{
							Namespace: "ns", Name: name, UID: types.UID(name), Annotations: map[string]string{model.QueueAnnotation: "full"},
						},
						Spec: corev1.PodSpec{SchedulerName: "volcano", Containers: []corev1.Container{{
							Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": *resource.NewMilliQuantity(cpu, resource.DecimalSI)}},
						}}},
					}
				}
				for i := range jobs {
					p := pod(fmt.Sprintf("gated-%d", i), int64(2000+i%shapes))
					p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: model.QueueGate}}
					state.UpsertPod(p)
				}
				d.waits.takeIn()
				// Those that were let in.
				d.waits.update()
				if len(d.waits.gates.at) != jobs {
					b.Fatalf("%d jobs are before the gate, want %d", len(d.waits.gates.at), jobs)
				}
				b.ReportAllocs()
				for b.Loop() {
					p := pod("goes", 1000)
					state.UpsertPod(p)
					state.Assume("goes", "node-0")
					d.waits.takeIn()
					state.DeletePod("goes")
					d.waits.takeIn()
					d.waits.gates.open()
					d.outbox = outbox{}
				}
			})
		}
	}
}

// BenchmarkNewsOfRoom measures what a pod that goes costs where so many jobs, each asking for something else, were refused: because no node has what they
// ask for, or though each seems to have it.
func BenchmarkNewsOfRoom(b *testing.B) {
	for _, jobs := range []int{1000, 10000} {
		for name, cpu := range map[string]int64{"short": 65000, "enough": 1000} {
			b.Run(fmt.Sprintf("jobs=%d/%s", jobs, name), func(b *testing.B) {
				d := crowd(b, 0, config.TierPlugin{Name: config.PluginCapacity})
				state := d.cfg.State
				pod := func(name string, cpu int64) *corev1.Pod {
					return &corev1.Pod{
						ObjectMeta: metav1.ObjectMeta{
							Namespace: "ns", Name: name, UID: types.UID(name), Annotations: map[string]string{model.QueueAnnotation: "d0-t0-q0"},
						},
						Spec: corev1.PodSpec{SchedulerName: "volcano", Containers: []corev1.Container{{
							Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": *resource.NewMilliQuantity(cpu, resource.DecimalSI)}},
						}}},
					}
				}
				for i := range jobs {
					state.UpsertPod(pod(fmt.Sprintf("waits-%d", i), cpu+int64(i)))
				}
				d.waits.update()
				for _, l := range d.lots.backlog.lots {
					d.lots.refuse(l, &turn{}, Refusal{Reason: machineNoRoom})
				}
				if parked := len(d.lots.backlog.aside[parked]); parked != jobs {
					b.Fatalf("%d jobs are parked, want %d", parked, jobs)
				}
				b.ReportAllocs()
				for b.Loop() {
					state.UpsertPod(pod("goes", 1000))
					state.Assume("goes", "node-0")
					d.waits.update()
					state.DeletePod("goes")
					d.waits.update()
					d.outbox = outbox{}
				}
			})
		}
	}
}

// BenchmarkTurn measures what the end of a turn costs between two plans: a job was placed, the accounts follow, and the
// next one is chosen.
func BenchmarkTurn(b *testing.B) {
	d := crowd(b, 100_000, config.TierPlugin{Name: config.PluginCapacity, Switches: map[config.Switch]bool{config.EnableHierarchy: true}})
	b.ReportAllocs()
	for b.Loop() {
		t := d.selection.next()
		if t == nil {
			b.Fatal("nobody gets a turn")
		}
		d.cfg.State.Assume(t.lead.UID, "node-0")
		d.waits.takeIn()
		d.cfg.State.Forget(t.lead.UID)
		d.waits.takeIn()
		d.outbox = outbox{}
	}
}

// BenchmarkLookAtDues measures a look at 1,000 queues, none of which is below its due, with so many jobs that wait: alike in each queue, or each
// asking for something else. It happens once a second at most, and takes no more than a hundredth of the time.
func BenchmarkLookAtDues(b *testing.B) {
	for _, jobs := range []int{1000, 100_000} {
		b.Run(fmt.Sprintf("alike/jobs=%d", jobs), func(b *testing.B) {
			d := crowd(b, jobs, config.TierPlugin{Name: config.PluginCapacity})
			b.ReportAllocs()
			for b.Loop() {
				d.dues.look()
			}
		})
	}
	b.Run("apart/jobs=10000", func(b *testing.B) {
		d := crowd(b, 1000, config.TierPlugin{Name: config.PluginCapacity})
		d.cfg.State.UpsertQueue(&model.Queue{Name: "wide", Deserved: amounts.Vector{{Name: "cpu", Value: 1000}}})
		for i := range 10_000 {
			name := fmt.Sprintf("apart-%d", i)
			d.cfg.State.UpsertPod(&corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: "ns", Name: name, UID: types.UID(name), Annotations: map[string]string{model.QueueAnnotation: "wide"},
				},
				Spec: corev1.PodSpec{SchedulerName: "volcano", Containers: []corev1.Container{{
					Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": *resource.NewMilliQuantity(int64(2000+i), resource.DecimalSI)}},
				}}},
			})
		}
		d.waits.takeIn()
		b.ReportAllocs()
		for b.Loop() {
			d.dues.look()
		}
	})
}
